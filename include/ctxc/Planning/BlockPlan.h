//===- BlockPlan.h - which parameters of a block are patched, and how -----===//
//
// What planning hands to the transforms: plain data about the ops of one
// xf.block, valid while the block is unchanged.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PLANNING_BLOCKPLAN_H
#define CTXC_PLANNING_BLOCKPLAN_H

#include "dialects/XF/XF.h"
#include "llvm/ADT/SmallVector.h"

namespace ctxc {

/// One link of the output chain: `op` is solved for its operand `operand`.
struct ChainLink {
  mlir::Operation *op;
  unsigned operand;
};

/// A data-dependent condition of a plan.
struct PlanObligation {
  mlir::Operation *site;   ///< the assignable op
  xf::Obligation kind;     ///< what must hold of its data operand
  xf::Zeros likelihood;    ///< where it can fail, by the zero analysis
  std::string lemma;       ///< the paper's lemma it belongs to
};

/// The plan of a block (Theorem 3, "unified"): F and G of theory's sections 3
/// and 4.
struct BlockPlan {
  /// F: assignable ops that get the target they had in the full run, in block
  /// order. Empty in a parallel block, and where only the output is controlled.
  llvm::SmallVector<mlir::Operation *> inputSites;

  /// G: the assignable op whose output absorbs what is left.
  mlir::Operation *outputSite = nullptr;

  /// From G's result to the block's output, in that order; the last link's
  /// result is the value that is yielded (result number `output`).
  llvm::SmallVector<ChainLink> chain;
  unsigned output = 0;

  /// Where G is the scale of an RMS norm whose input an assignable matrix
  /// computes: that matrix, patched with it by an update variant (least,
  /// balanced, stable, scaled). Null otherwise, and then the scale alone is
  /// patched (naive).
  mlir::Operation *normMatrix = nullptr;

  llvm::SmallVector<PlanObligation> obligations;
};

} // namespace ctxc

#endif // CTXC_PLANNING_BLOCKPLAN_H
