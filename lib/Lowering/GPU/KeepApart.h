// Whether blocks of a group of ops, one for each index of their outer loops, may run side by side.
#ifndef CTXC_LIB_LOWERING_GPU_KEEPAPART_H
#define CTXC_LIB_LOWERING_GPU_KEEPAPART_H

#include "lib/Lowering/GPU/Steps.h"

namespace ctxc::gpu_lowering {

/// Whether one index of the outer loops, of these sizes, touches, of what the ops write, nothing
/// that another does.
bool keepApart(llvm::ArrayRef<RowOp> ops, llvm::ArrayRef<int64_t> outer);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_KEEPAPART_H
