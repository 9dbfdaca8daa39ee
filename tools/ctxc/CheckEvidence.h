//===- CheckEvidence.h - what `ctxc check` shows in numbers ---------------===//
//
// --try: each plan executed by the reference on random activations, and on random
// weights where the model has none. --witness: a counterexample for each verdict
// against. --replay: a stored counterexample evaluated again.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TOOLS_CTXC_CHECKEVIDENCE_H
#define CTXC_TOOLS_CTXC_CHECKEVIDENCE_H

#include "ctxc/Evidence/Trial.h"
#include "ctxc/Evidence/Witness.h"
#include "tools/CommandLine/ModelArguments.h"

namespace ctxc::driver {

/// --try, --witness, --replay.
std::vector<OptionSpec> evidenceOptions();

/// `ctxc check --replay FILE`: prints what each witness of the file claims and what was
/// found; ExitAgainst where one is not confirmed.
llvm::Expected<int> replayWitnesses(llvm::StringRef path);

class CheckEvidence {
public:
  /// Does what the options ask for. Errors: a bad seed, a file that cannot be written.
  static llvm::Expected<CheckEvidence> gather(const Arguments &arguments, Model &model,
                                              llvm::ArrayRef<VerdictGroup> groups);

  /// Adds "trial" and "witness" to each of the report's groups that has one.
  void addTo(llvm::json::Value &report) const;
  void print(llvm::raw_ostream &os, llvm::ArrayRef<VerdictGroup> groups) const;
  /// Whether every plan that was tried is exact, and every witness stands.
  bool isGood() const;

private:
  llvm::Error tryPlans(const Arguments &arguments, Model &model,
                       llvm::ArrayRef<VerdictGroup> groups);
  llvm::Error findWitnesses(const Arguments &arguments, llvm::ArrayRef<VerdictGroup> groups);
  void printTrials(llvm::raw_ostream &os, llvm::ArrayRef<VerdictGroup> groups) const;
  void printWitnesses(llvm::raw_ostream &os, llvm::ArrayRef<VerdictGroup> groups) const;

  struct GroupTrial {
    Trial trial;
    std::string failure; ///< why there are no numbers; empty where there are
  };
  struct GroupWitness {
    std::optional<Witness> witness; ///< none: none was found
    Replay replay;
    std::optional<PatchSearch> search; ///< where no witness was found
    std::string failure;
  };
  std::vector<std::optional<GroupTrial>> trials;      ///< one a group
  std::vector<std::optional<GroupWitness>> witnesses; ///< one a group
  std::string weights;                                ///< whose they are, in words
  uint64_t seed = 1;
};

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_CHECKEVIDENCE_H
