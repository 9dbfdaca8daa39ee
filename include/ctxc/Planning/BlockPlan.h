//===- BlockPlan.h - which parameters of a block are patched, and how -----===//
//
// What planning hands to the transforms: plain data about the ops of one
// xf.block, valid while the block is unchanged.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PLANNING_BLOCKPLAN_H
#define CTXC_PLANNING_BLOCKPLAN_H

#include "ctxc/Analysis/OutputChain.h"

namespace ctxc {

/// A data-dependent condition of a plan.
struct PlanObligation {
  mlir::Operation *site;  ///< the assignable op, or the link of the chain
  xf::Obligation kind;    ///< what must hold of its data operand
  xf::Zeros likelihood;   ///< where it can fail, by the zero analysis
  std::string lemma;      ///< the paper's lemma it belongs to
  mlir::Value value = {}; ///< of which it must hold: the site's data, or a link's known factor
};

/// The plan of a block (Theorem 3, "unified"): F, patched to keep the inside of the MLP
/// as in the full run, and G, patched to absorb what is left at the output.
struct BlockPlan {
  /// F: assignable ops that get the target they had in the full run, in block
  /// order. Empty in a parallel block, and where only the output is controlled.
  llvm::SmallVector<mlir::Operation *> inputSites;

  /// G: the assignable op whose output absorbs what is left.
  mlir::Operation *outputSite = nullptr;

  /// From G's result to the value that gets what it had in the full run, in that
  /// order: the last link's result (G's own where there is no link). It is the
  /// block's yielded value number `output`, or, where `waist` is not null, that
  /// value inside the block, which carries all of the context to the outputs
  /// (the sum under a final norm), so that they follow.
  llvm::SmallVector<ChainLink> chain;
  unsigned output = 0;
  mlir::Value waist = {};

  /// Where G is the scale of an RMS norm whose input an assignable matrix
  /// computes: that matrix, patched with it by an update variant (least,
  /// balanced, stable, scaled). Null otherwise, and then the scale alone is
  /// patched (naive).
  mlir::Operation *normMatrix = nullptr;

  /// One for every patched op, in block order (Obligation::None for a bias), then
  /// one for every known factor that the chain divides by.
  llvm::SmallVector<PlanObligation> obligations;
};

} // namespace ctxc

#endif // CTXC_PLANNING_BLOCKPLAN_H
