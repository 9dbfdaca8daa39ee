// The parts of the checker: each holds one kind of claim against its block.
#ifndef CTXC_LIB_PROOF_CLAIMS_H
#define CTXC_LIB_PROOF_CLAIMS_H

#include "Flow.h"
#include "ctxc/Proof/CheckProof.h"
#include <Eigen/Core>

namespace ctxc::proof {

/// A claim, the structure that it is about, and the list of problems.
class Subject {
public:
  Subject(const Structure &structure, const Claim &claim, const Proof &proof,
          std::vector<std::string> &problems)
      : structure(structure), claim(claim), proof(proof), text(structure.block),
        flow(structure, proof.sites), problems(problems) {}

  /// "block 'b', layers 0-3: WHAT"
  void wrong(const llvm::Twine &what);
  /// Reports "…: WHAT: found FOUND, expected EXPECTED" unless they are equal; returns whether they
  /// are.
  bool expect(const llvm::Twine &what, llvm::StringRef found, llvm::StringRef expected);
  bool expect(const llvm::Twine &what, const Names &found, const Names &expected);
  /// Whether the values come one after the other in the block.
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

/// A successful claim with its values looked up: what it patches.
struct ResolvedOutput {
  mlir::Operation *site = nullptr,
                  *matrix = nullptr; ///< G; the matrix that shares its change, or null
  struct Link {
    mlir::Operation *op;
    unsigned operand;
  };
  llvm::SmallVector<Link> links;
  mlir::Value goal;
  xf::Split split = xf::Split::Even; ///< for a link that leaves a choice

  mlir::Operation *first() const { return matrix ? matrix : site; }
};
struct ResolvedPlan {
  llvm::SmallVector<mlir::Operation *> cut;
  llvm::SmallVector<ResolvedOutput> outputs;
};

/// Checks a controllable or output-only claim by structure. None where a value or link does not
/// exist, so that nothing can be run.
std::optional<ResolvedPlan> checkSuccess(Subject &subject);

/// Checks, of a claim whose values exist, that where chains are solved for parts all parts have
/// one.
void checkParts(Subject &subject, const ResolvedPlan &plan);

/// Outputs that are combinations of the same vectors: of `fixed`, which no patch moves, and of
/// `moving` others, fewer than there are outputs.
struct MixedOutputs {
  llvm::SmallVector<mlir::Value> fixed;
  int64_t moving = 0;
};
/// None where the outputs are no such combinations, or have not the same size.
std::optional<MixedOutputs> mixedOutputs(const Flow &flow, llvm::ArrayRef<int64_t> outputs);

class BlockRun;
/// A lower bound of the distance of `target`, the `outputs` outputs of the full run one after the
/// other, from all such combinations, in which `fixed` are those of the reduced run.
double distanceOf(const MixedOutputs &mixed, const BlockRun &reduced, const Eigen::VectorXd &target,
                  int64_t outputs);

/// Checks a rejected claim by structure. Returns whether it can be run.
bool checkRejection(Subject &subject);

void checkUndecided(Subject &subject);

/// Check a claim in numbers, and report problems to the subject.
Replay replaySuccess(Subject &subject, const ResolvedPlan &plan, const CheckOptions &options);
Replay replayRejection(Subject &subject, const CheckOptions &options);

llvm::StringRef textOf(xf::Obligation needs);
llvm::StringRef textOf(xf::Zeros zeros);

} // namespace ctxc::proof

#endif // CTXC_LIB_PROOF_CLAIMS_H
