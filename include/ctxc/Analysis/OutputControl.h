//===- OutputControl.h - output controllability as a solvable chain --------===//
//
// The g of Theorem 3 is output-controllable if an assignable op G feeds the target value through
// links that can be solved, one after the other, for G's output. Everything else that the links
// read must be known, that is, not reachable from G.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_ANALYSIS_OUTPUTCONTROL_H
#define CTXC_ANALYSIS_OUTPUTCONTROL_H

#include "ctxc/Analysis/OutputChain.h"
#include "ctxc/Analysis/Sites.h"

namespace ctxc {

/// Why a walk back from the target value stopped: `op`, reached through its result,
/// cannot be solved for its operand, or may not be assigned.
struct ChainBreak {
  mlir::Operation *op;
  std::string reason;
  bool isSite; ///< true: `op` would be G, but its status forbids it; false: it cannot be a link
};

/// The chains that end in one target value.
struct OutputChains {
  llvm::SmallVector<OutputChain> chains; ///< nearest to the value first
  /// Chains through ops that are solved for a part (isSolvedInParts), nearest first. Each brings
  /// one part to its target, and one chain is needed for every part.
  llvm::SmallVector<OutputChain> partial;
  llvm::SmallVector<ChainBreak> breaks; ///< nearest first
};

/// All chains from an assignable op to `wanted`, and where the walk back from it stopped.
OutputChains findOutputChains(const BlockGraph &graph, const Sites &sites, const ZeroRange &zeros,
                              mlir::Value wanted);

/// Why the chain cannot be solved, in words; empty if it can. An independent check, link by link.
std::string checkChain(const BlockGraph &graph, const ZeroRange &zeros, const OutputChain &chain);

/// Values through which the whole context reaches the block's outputs: every path from a vertex of
/// `sources` to an output, except through `closed`, passes each of them. The outermost comes first;
/// if only one output depends on the context, it is the first.
llvm::SmallVector<mlir::Value> findWaists(const BlockGraph &graph, const BlockGraph::Set &sources,
                                          const BlockGraph::Set &closed);

} // namespace ctxc

#endif // CTXC_ANALYSIS_OUTPUTCONTROL_H
