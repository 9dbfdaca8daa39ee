//===- BlockPlan.h - which parameters of a block are patched, and how -----===//
//
// What planning passes to the transforms: plain data about the ops of one xf.block, valid while the
// block is unchanged.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PLANNING_BLOCKPLAN_H
#define CTXC_PLANNING_BLOCKPLAN_H

#include "ctxc/Analysis/OutputChain.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <optional>

namespace ctxc {

/// A data-dependent condition of a plan.
struct PlanObligation {
  mlir::Operation *site;  ///< the assignable op, or the link of the chain
  xf::Obligation kind;    ///< what must hold of its data operand
  xf::Zeros likelihood;   ///< where it can fail, by the zero analysis
  std::string lemma;      ///< the paper's lemma it belongs to
  mlir::Value value = {}; ///< what it is about: the site's data, or a link's known factor
};

/// An op of G with the value that its patch serves: the chain is solved for the op's output so that
/// `goal` gets the value that it had in the full run.
struct OutputPatch : OutputChain {
  /// The last link's result (G's own result if there is no link): a yielded value, or a value
  /// inside the block through which the whole context reaches the outputs (the sum before a final
  /// norm), so that the outputs are as in the full run too.
  mlir::Value goal;

  /// If G is the scale of an RMS norm whose input an assignable matrix computes: this matrix, which
  /// is patched together with the scale by an update variant (least, balanced, stable, scaled).
  /// Otherwise null, and only the scale is patched (naive).
  mlir::Operation *normMatrix = nullptr;

  /// What is patched first: the norm matrix if there is one, otherwise G.
  mlir::Operation *first() const { return normMatrix ? normMatrix : site; }
};

/// The plan of a block (Theorem 3, "unified"): F, patched to keep the inside of the MLP as in the
/// full run, and G, patched to absorb the remaining difference at the outputs.
struct BlockPlan {
  /// F: assignable ops that get the output that they had in the full run, in block order. Empty in
  /// a parallel block, and if only the output is controlled.
  llvm::SmallVector<mlir::Operation *> inputSites;

  /// G: one op, or one for each of several goals, in block order of the ops. Empty if no op reads
  /// the context, so that there is nothing to absorb.
  llvm::SmallVector<OutputPatch, 1> outputs;

  /// How a change is split over the experts of a mixture that a chain goes through.
  xf::Split split = xf::Split::Even;

  /// One for every patched op, in block order (Obligation::None for a bias), then
  /// one for every known factor that the chains divide by, then one for every
  /// selection that F makes the same in both runs.
  llvm::SmallVector<PlanObligation> obligations;

  /// In how many runs of its layer with the same parameters one change has to serve: its rank.
  /// Above 1 the plan is one matrix, of which a joint patch is made (docs/joint.md).
  unsigned runs = 1;

  bool isEmpty() const { return outputs.empty(); }

  /// The ops whose parameters are patched, in block order: F, the matrices before
  /// post-norms, and G. The i-th has obligation i.
  llvm::SmallVector<mlir::Operation *> patchedOps() const;
  /// The output patch that `op` belongs to (as its site or its norm matrix); null for F.
  const OutputPatch *outputOf(mlir::Operation *op) const;

  /// An order of `outputs` in which each is solved after everything that its chain or its data
  /// reads, and after every patch that reaches its goal; none if two wait for each other.
  std::optional<llvm::SmallVector<unsigned>> solvingOrder() const;
};

/// All ops of the block that read a result of `op`, directly or not.
using OpSet = llvm::SmallPtrSet<mlir::Operation *, 16>;
OpSet dependentsOf(mlir::Operation *op);

/// The ops whose reduced run must wait for the patch of `first`: its dependents, and, if a
/// contextual op is among these, every later contextual op with its dependents. So the contextual
/// ops of a block have the same order in all of its forms.
OpSet waitingFor(mlir::Operation *first);

} // namespace ctxc

#endif // CTXC_PLANNING_BLOCKPLAN_H
