// The parts of the checker: each holds one kind of claim against its block.
#ifndef CTXC_LIB_PROOF_CLAIMS_H
#define CTXC_LIB_PROOF_CLAIMS_H

#include "Flow.h"
#include "ctxc/Proof/CheckProof.h"

namespace ctxc::proof {

/// A claim with what it is about, and where to complain.
class Subject {
public:
  Subject(const Structure &structure, const Claim &claim, const Proof &proof,
          std::vector<std::string> &problems)
      : structure(structure), claim(claim), proof(proof), text(structure.block),
        flow(structure, proof.sites), problems(problems) {}

  /// "block 'b', layers 0-3: WHAT"
  void wrong(const llvm::Twine &what);
  /// "…: WHAT: found FOUND, expected EXPECTED"; whether they are equal.
  bool expect(const llvm::Twine &what, llvm::StringRef found, llvm::StringRef expected);
  bool expect(const llvm::Twine &what, const Names &found, const Names &expected);
  /// The values come one after the other in the block.
  void expectOrder(const llvm::Twine &what, llvm::ArrayRef<mlir::Value> values);
  /// Null, with a problem, where the block has no value of this name.
  mlir::Value value(const llvm::Twine &what, llvm::StringRef name);
  mlir::Operation *op(const llvm::Twine &what, llvm::StringRef name);

  const Structure &structure;
  const Claim &claim;
  const Proof &proof;
  BlockText text;
  Flow flow;

private:
  std::vector<std::string> &problems;
};

/// The claim with its values looked up: what a success patches.
struct ResolvedOutput {
  mlir::Operation *site = nullptr, *matrix = nullptr; ///< G; what shares its change, or null
  struct Link {
    mlir::Operation *op;
    unsigned operand;
  };
  llvm::SmallVector<Link> links;
  mlir::Value goal;
  xf::Split split = xf::Split::Even; ///< of a link that leaves a choice

  mlir::Operation *first() const { return matrix ? matrix : site; }
};
struct ResolvedPlan {
  llvm::SmallVector<mlir::Operation *> cut;
  llvm::SmallVector<ResolvedOutput> outputs;
};

/// Controllable and output-only, by structure. None where a value or link does not exist,
/// so that there is nothing to run.
std::optional<ResolvedPlan> checkSuccess(Subject &subject);

/// Rejected, by structure. Whether there is something to run.
bool checkRejection(Subject &subject);

void checkUndecided(Subject &subject);

/// In numbers. What does not hold goes to the subject's problems.
Replay replaySuccess(Subject &subject, const ResolvedPlan &plan, const CheckOptions &options);
Replay replayRejection(Subject &subject, const CheckOptions &options);

llvm::StringRef textOf(xf::Obligation needs);
llvm::StringRef textOf(xf::Zeros zeros);

} // namespace ctxc::proof

#endif // CTXC_LIB_PROOF_CLAIMS_H
