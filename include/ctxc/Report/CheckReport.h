//===- CheckReport.h - verdicts on a model, as text and as JSON -----------===//
#ifndef CTXC_REPORT_CHECKREPORT_H
#define CTXC_REPORT_CHECKREPORT_H

#include "ctxc/Planning/ModelVerdict.h"
#include "ctxc/Report/Findings.h"
#include "ctxc/Report/Place.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace ctxc {

struct CheckReportOptions {
  bool plans = false; ///< also list every plan that a block has (enumeratePlans)
  /// The verdict on the model as a whole; null if there is none.
  const ModelVerdict *model = nullptr;
  /// Why nothing says that an exported program was read rightly (Model::notCompared); else empty.
  llvm::StringRef notCompared;
  /// The line of a program at a place, or an empty one; null where there is no program.
  std::function<std::string(const Place &)> lineOf = nullptr;
};

/// Writes for each group of layers its verdict, the parameters patched for the input
/// and for the output with the lemma that each rests on, and what must hold of the
/// activations; for a rejected or undecided verdict the rule, which emitVerdict's messages explain;
/// and the same for the model, if it has its own causes. At most 100 columns, except for long
/// names.
void printCheckReport(llvm::raw_ostream &os, llvm::ArrayRef<VerdictGroup> groups,
                      const CheckReportOptions &options = {});

/// The same as an object: "groups" [{"layers", "block", "verdict", "input", "output",
/// "obligations", "causes" [{"rule", "message", "location", "module", "op", "notes", "advice"}],
/// "warnings" [the same and "severity"], "rule" (the theorem), "remark", "bound"}], "summary"
/// {verdict: layers}, "model" {"name", "verdict", "causes"} (null if there is none); and in each
/// group, if requested, "plans" [{"parameters", "verdict", "chosen", "numbers", "vectorDivisions",
/// "elementDivisions", "fragility"}].
llvm::json::Value checkReportJson(llvm::ArrayRef<VerdictGroup> groups,
                                  llvm::ArrayRef<GroupFinding> findings,
                                  const CheckReportOptions &options = {});

/// Whether every verdict is controllable or output-only.
bool isPatchable(llvm::ArrayRef<VerdictGroup> groups);

} // namespace ctxc

#endif // CTXC_REPORT_CHECKREPORT_H
