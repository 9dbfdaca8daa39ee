//===- CheckEvidence.h - what `ctxc check` shows in numbers ---------------===//
//
// --try: the reference runs each plan on random activations, and on random weights where the model
// has none. --witness: a counterexample for each negative verdict. --replay: a stored
// counterexample is evaluated again.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TOOLS_CTXC_CHECKEVIDENCE_H
#define CTXC_TOOLS_CTXC_CHECKEVIDENCE_H

#include "ctxc/Evidence/Trial.h"
#include "ctxc/Evidence/Witness.h"
#include "tools/CommandLine/ModelArguments.h"

namespace ctxc::driver {

/// The options --try, --witness and --replay.
std::vector<OptionSpec> evidenceOptions();

/// `ctxc check --replay FILE`: prints the claim of each witness in the file and what the evaluation
/// gave. Returns ExitAgainst where a witness is not confirmed.
llvm::Expected<int> replayWitnesses(llvm::StringRef path);

class CheckEvidence {
public:
  /// Gathers what the options ask for. Errors: a bad seed, a file that cannot be written.
  static llvm::Expected<CheckEvidence> gather(const Arguments &arguments, Model &model,
                                              llvm::ArrayRef<VerdictGroup> groups);

  /// Adds "trial" and "witness" to the groups of the report that have them.
  void addTo(llvm::json::Value &report) const;
  void print(llvm::raw_ostream &os, llvm::ArrayRef<VerdictGroup> groups) const;
  /// Whether every plan that was tried is exact, and every witness was confirmed.
  bool isGood() const;

private:
  llvm::Error tryPlans(const Arguments &arguments, Model &model,
                       llvm::ArrayRef<VerdictGroup> groups);
  llvm::Error findWitnesses(const Arguments &arguments, llvm::ArrayRef<VerdictGroup> groups);
  void printTrials(llvm::raw_ostream &os, llvm::ArrayRef<VerdictGroup> groups) const;
  void printWitnesses(llvm::raw_ostream &os, llvm::ArrayRef<VerdictGroup> groups) const;

  /// Of the layers of a group whose settings are equal.
  struct CaseTrial {
    llvm::SmallVector<unsigned> layers;
    Trial trial;
    std::string failure; ///< why there are no numbers; empty where there are

    /// How far it is from exact.
    double badness() const;
  };
  struct CaseWitness {
    llvm::SmallVector<unsigned> layers;
    std::optional<Witness> witness; ///< none where none was found
    Replay replay;
    std::optional<PatchSearch> search; ///< where no witness was found
    std::string failure;

    double leastError() const { return witness ? witness->leastError : 0; }
  };
  static llvm::Expected<CaseWitness> findWitness(const VerdictGroup &group, const VerdictCase &one);

  std::vector<std::vector<CaseTrial>> trials;      ///< of each group's cases; empty if none
  std::vector<std::vector<CaseWitness>> witnesses; ///< the same
  std::string weights;                             ///< where they come from, in words
  uint64_t seed = 1;
};

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_CHECKEVIDENCE_H
