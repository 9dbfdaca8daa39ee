// Reads an op of a bufferised kernel as an op of a step (Steps.h).
#ifndef CTXC_LIB_LOWERING_GPU_READOPS_H
#define CTXC_LIB_LOWERING_GPU_READOPS_H

#include "lib/Lowering/GPU/Steps.h"

namespace ctxc::gpu_lowering {

/// Fails, with the reason, where `op` has no GPU form on `target`.
mlir::FailureOr<RowOp> readOp(mlir::Operation *op, const GpuTarget &target, std::string &reason);

/// Whether the kernel support function has a GPU form.
bool isSupported(kernel::SupportFunction function);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_READOPS_H
