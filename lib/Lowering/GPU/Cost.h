// The memory traffic and arithmetic of a launch, counted from its ops before they become a kernel.
#ifndef CTXC_LIB_LOWERING_GPU_COST_H
#define CTXC_LIB_LOWERING_GPU_COST_H

#include "lib/Lowering/GPU/Steps.h"

namespace ctxc::gpu_lowering {

/// None where a number is not a linear function of the numbers of visible tokens.
std::optional<GpuCost> costOf(const Step &step);

/// Attaches a cost to a launch, and reads it back; none where the launch has no cost.
void setCost(mlir::Operation *launch, const GpuCost &cost);
std::optional<GpuCost> getCost(mlir::Operation *launch);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_COST_H
