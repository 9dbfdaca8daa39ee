// A mixture's experts on a GPU. On the processor each expert's matrix is found by its address, by a
// loop over the selected ones (MixtureToLinalg.cpp); on a GPU they lie in one buffer, one after the
// other, and a launch reads the matrices that a selection in memory names.
#ifndef CTXC_LIB_LOWERING_GPU_EXPERTS_H
#define CTXC_LIB_LOWERING_GPU_EXPERTS_H

#include "lib/Lowering/GPU/Steps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ctxc::gpu_lowering {

/// What a call of GpuCallExperts says; null where it is another.
struct ExpertCall {
  mlir::Value bank, x, selected, y;
  bool transposed;
};
std::optional<ExpertCall> expertCall(mlir::Operation *op);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_EXPERTS_H
