// What a launch moves and computes, counted from its ops before they become a kernel.
#ifndef CTXC_LIB_LOWERING_GPU_COST_H
#define CTXC_LIB_LOWERING_GPU_COST_H

#include "lib/Lowering/GPU/Steps.h"

namespace ctxc::gpu_lowering {

/// None where a number is no linear function of the visible tokens.
std::optional<GpuCost> costOf(const Step &step);

/// A cost as an attribute of a launch, and back; none where the launch has none.
void setCost(mlir::Operation *launch, const GpuCost &cost);
std::optional<GpuCost> getCost(mlir::Operation *launch);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_COST_H
