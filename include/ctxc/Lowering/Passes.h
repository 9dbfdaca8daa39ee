//===- Passes.h - the lowering's passes, and the pipelines of them --------===//
//
// A pass stands in the file that has its code; Passes.td describes all of them. The executors,
// `ctxc compile` and `ctxc-opt --ctxc-cpu-pipeline` run what is built here.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LOWERING_PASSES_H
#define CTXC_LOWERING_PASSES_H

#include "ctxc/Lowering/GPU.h"
#include "mlir/Pass/Pass.h"

namespace ctxc {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ctxc/Lowering/Passes.h.inc"

/// From tensors to memrefs, in place where that is possible: the common ground of all targets.
void buildBufferizePipeline(mlir::OpPassManager &pm);

/// From kernels in linalg (BlocksToLinalg) to the LLVM dialect.
void buildCpuPipeline(mlir::OpPassManager &pm, const CpuTarget &target);
/// Its two halves. After the first, contractions are functions that depend on nothing else in the
/// module, so that they may be lowered in modules of their own.
void buildContractPipeline(mlir::OpPassManager &pm, const CpuTarget &target);
void buildContractedToLLVMPipeline(mlir::OpPassManager &pm, const CpuTarget &target);

/// From kernels in linalg to launches and a gpu.module, for kernels of `rows` rows. The kernels
/// that are left out are added to `refusals`, which lives as long as the passes, where it is given.
void buildGpuPipeline(mlir::OpPassManager &pm, const GpuTarget &target, int64_t rows = 1,
                      std::vector<GpuRefusal> *refusals = nullptr);

/// --ctxc-bufferize, and with the options `target` and `from-blocks` --ctxc-cpu-pipeline and
/// --ctxc-gpu-pipeline, which has `rows` too, and `to-code` for GpuTarget::addCodePasses.
void registerLoweringPipelines();

} // namespace ctxc

#endif // CTXC_LOWERING_PASSES_H
