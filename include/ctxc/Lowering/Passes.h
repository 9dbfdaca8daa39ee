//===- Passes.h - the lowering's passes, and the pipelines of them --------===//
//
// Each pass is defined in the file that has its code; Passes.td describes all of them. Executors,
// `ctxc compile` and `ctxc-opt --ctxc-cpu-pipeline` all run the pipelines that are built here.
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

/// Adds the passes from tensors to memrefs, in place where that is possible. All targets share
/// them.
void buildBufferizePipeline(mlir::OpPassManager &pm);

/// Adds the passes from kernels in linalg (BlocksToLinalg) to the LLVM dialect.
void buildCpuPipeline(mlir::OpPassManager &pm, const CpuTarget &target);
/// The two halves of the CPU pipeline. After the first, contractions are functions that depend on
/// nothing else in the module, so that they can be lowered in modules of their own.
void buildContractPipeline(mlir::OpPassManager &pm, const CpuTarget &target);
void buildContractedToLLVMPipeline(mlir::OpPassManager &pm, const CpuTarget &target);

/// Adds the passes from kernels in linalg to launches and a gpu.module, for kernels of `rows` rows.
/// Kernels that are left out are appended to `refusals`, if given, which must live as long as the
/// passes.
void buildGpuPipeline(mlir::OpPassManager &pm, const GpuTarget &target, int64_t rows = 1,
                      std::vector<GpuRefusal> *refusals = nullptr);

/// Registers --ctxc-bufferize; and with the options `target` and `from-blocks` --ctxc-cpu-pipeline
/// and --ctxc-gpu-pipeline, which also has `rows`, and `to-code` to add GpuTarget::addCodePasses.
void registerLoweringPipelines();

} // namespace ctxc

#endif // CTXC_LOWERING_PASSES_H
