// How an op of a bufferised kernel is read as a step of loops (Steps.h).
#ifndef CTXC_LIB_LOWERING_GPU_READOPS_H
#define CTXC_LIB_LOWERING_GPU_READOPS_H

#include "lib/Lowering/GPU/Steps.h"

namespace ctxc::gpu_lowering {

/// Fails, with the reason, where `op` has no GPU form on `target`.
mlir::FailureOr<RowOp> readOp(mlir::Operation *op, const GpuTarget &target, std::string &reason);

/// Whether there is a GPU form of the kernel support function.
bool isSupported(llvm::StringRef function);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_READOPS_H
