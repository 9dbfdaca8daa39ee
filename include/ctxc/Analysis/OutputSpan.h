//===- OutputSpan.h - outputs that are combinations of the same vectors ----===//
//
// Some blocks mix streams with coefficients that depend on the streams: o_i = Σ_k c_ik v_k, where
// patches may change every number c_ik, and some of the vectors v_k. Let P project onto the
// orthogonal complement of the vectors that no patch moves. For every patch, the rank of (P o_1, …,
// P o_n) is at most the number of vectors that move. A full run whose outputs have a higher rank is
// therefore out of reach, by at least
//
//     √(Σ_{i > r} σ_i²),   σ_1 ≥ σ_2 ≥ … the singular values of (P o_1, …, P o_n) of the full run
//
// for r vectors that move (Eckart and Young).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_ANALYSIS_OUTPUTSPAN_H
#define CTXC_ANALYSIS_OUTPUTSPAN_H

#include "ctxc/Analysis/Moved.h"

namespace ctxc {

struct OutputSpan {
  llvm::SmallVector<unsigned> outputs;          ///< by number; of equal size, each value once
  llvm::SmallVector<mlir::Value> fixed, moving; ///< vectors v_k, in the order of the block
};

/// The sets of the block's outputs for which fewer vectors move than there are outputs.
std::vector<OutputSpan> findOutputSpans(const BlockGraph &graph, const Moved &moved);

} // namespace ctxc

#endif // CTXC_ANALYSIS_OUTPUTSPAN_H
