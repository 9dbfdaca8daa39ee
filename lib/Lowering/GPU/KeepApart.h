// Decides whether a group of ops can run as one block for each index of their outer loops.
#ifndef CTXC_LIB_LOWERING_GPU_KEEPAPART_H
#define CTXC_LIB_LOWERING_GPU_KEEPAPART_H

#include "lib/Lowering/GPU/Steps.h"

namespace ctxc::gpu_lowering {

/// Whether no index of the outer loops, whose sizes are `outer`, touches memory that the ops write
/// at another index.
bool keepApart(llvm::ArrayRef<RowOp> ops, llvm::ArrayRef<int64_t> outer);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_KEEPAPART_H
