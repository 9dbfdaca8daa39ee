// The ops that have kernels of their own: contractions, experts and attention; and the ops that
// fill their results with zeros.
#ifndef CTXC_LIB_LOWERING_GPU_OWNKERNELS_H
#define CTXC_LIB_LOWERING_GPU_OWNKERNELS_H

#include "lib/Lowering/GPU/Steps.h"

namespace ctxc::gpu_lowering {

/// The kind of step for attention and for a contraction with a stored matrix or of experts, in a
/// kernel of `rows` rows; none where `op` is neither, or has no kernel of its own.
std::optional<Step::Kind> ownKindOf(const RowOp &op, int64_t rows);
/// Why a contraction has no kernel of its own.
llvm::StringRef whyNone(kernel::ContractOp op, const RowOp &row);
/// The op that fills the contraction's result with zeros and does nothing else, if there is one.
std::optional<size_t> zerosOf(llvm::ArrayRef<RowOp> ops, size_t contraction);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_OWNKERNELS_H
