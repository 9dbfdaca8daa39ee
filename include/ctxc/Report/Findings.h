//===- Findings.h - what a check finds, and how severe it is ---------------===//
//
// The causes of rejected and undecided verdicts and the warnings of plans, in one list, each with
// the severity that the -W options give its rule.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_REPORT_FINDINGS_H
#define CTXC_REPORT_FINDINGS_H

#include "ctxc/Planning/ModelCheck.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace ctxc {

enum class Severity { Ignored, Remark, Warning, Error };

/// The severity of each rule. A cause of a rejected or undecided verdict is an error with all
/// options; a remark or warning can be raised, lowered or left out.
class Severities {
public:
  /// Parses -W options (without the -W); the last one wins: with "RULE" the rule gives a warning,
  /// with "no-RULE" nothing, with "error=RULE" an error, with "no-error=RULE" at most a warning;
  /// "error" makes all warnings errors. Fails on a name that is not a rule of warnings; the error
  /// names the nearest one.
  static llvm::Expected<Severities> parse(llvm::ArrayRef<llvm::StringRef> options);

  Severity of(llvm::StringRef rule) const;

private:
  llvm::StringMap<Severity> chosen;
  llvm::StringMap<bool> keepsWarning; ///< -Wno-error=RULE
  bool warningsAreErrors = false;
};

/// A finding on a group of layers.
struct GroupFinding {
  unsigned group; ///< index of the VerdictGroup
  Finding finding;
  Severity severity; ///< not Ignored
};

/// Group by group: the causes of the verdict, then the warnings of the plan.
std::vector<GroupFinding> collectFindings(llvm::ArrayRef<VerdictGroup> groups,
                                          const Severities &severities);

/// Emits the findings as MLIR diagnostics, at their places.
void emitFindings(llvm::ArrayRef<VerdictGroup> groups, llvm::ArrayRef<GroupFinding> findings);

} // namespace ctxc

#endif // CTXC_REPORT_FINDINGS_H
