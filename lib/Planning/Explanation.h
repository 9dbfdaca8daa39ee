// The explanation of a failure, in two files: what is shown (Diagnose.cpp), and what is not
// (Undecided.cpp).
#ifndef CTXC_LIB_PLANNING_EXPLANATION_H
#define CTXC_LIB_PLANNING_EXPLANATION_H

#include "Diagnose.h"
#include "ctxc/Analysis/ContextChange.h"
#include "ctxc/Analysis/PatchReach.h"

namespace ctxc {

class Explanation {
public:
  Explanation(const BlockFacts &facts, const PlanOptions &options, Verdict &verdict)
      : facts(facts), options(options), verdict(verdict),
        reach(facts.graph, facts.sites, facts.zeros),
        change(facts.graph, facts.zeros, facts.context.inputsAreSources()),
        subject("block '" + facts.graph.getBlock().getSymName().str() + "'") {}

  void explain();

private:
  mlir::Operation *findUnabsorbed(mlir::Value output) const;
  bool standsAlone(mlir::Operation *unabsorbed, const Reach &r) const;
  bool reject(mlir::Value output, unsigned number);
  void rejectFixed(mlir::Operation *unabsorbed, unsigned output);
  void rejectBounded(const Reach &r);
  void rejectThin(const Reach &r, int64_t dimensions);
  void rejectOneSided(const Reach &r);
  bool rejectFewVectors();
  void cause(llvm::StringRef rule, mlir::Operation *op, const llvm::Twine &message) {
    verdict.causes.push_back({op, message.str(), rule});
  }
  void note(mlir::Operation *op, const llvm::Twine &message) {
    verdict.causes.back().notes.push_back({op, message.str()});
  }
  void advise(const llvm::Twine &text) { verdict.causes.back().advice = text.str(); }
  void noteOrigins(const Reach &r);
  void notePathPastGoals();
  void undecided();
  void refuted(double leastError);
  void unconfirmed(const std::string &why);
  std::string wayRound();
  std::string planOfContextualPart() const;

  const BlockFacts &facts;
  const PlanOptions &options;
  Verdict &verdict;
  PatchReach reach;
  ContextChange change;
  std::string subject;            ///< "block 'name'"
  std::optional<std::string> way; ///< what wayRound() gave
};

} // namespace ctxc

#endif // CTXC_LIB_PLANNING_EXPLANATION_H
