// The pipelines that lower kernels in linalg to a target.
#include "ctxc/Lowering/Passes.h"
#include "dialects/Patch/Patch.h"
#include "lib/Lowering/CPU/ByteProduct.h"
#include "lib/Lowering/RunPipeline.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace ctxc;

namespace ctxc {
void registerXFLoweringModels(MLIRContext *context);
void registerSourceLoweringModels(MLIRContext *context);
void registerMixtureLoweringModels(MLIRContext *context);
void registerContextLoweringModels(MLIRContext *context);
void registerRecurrenceLoweringModels(MLIRContext *context);
void registerLinearAttentionLoweringModel(MLIRContext *context);
void registerPatchLoweringModels(MLIRContext *context);
} // namespace ctxc

void ctxc::registerLoweringModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, xf::XFDialect *) {
    registerXFLoweringModels(context);
    registerSourceLoweringModels(context);
    registerMixtureLoweringModels(context);
    registerContextLoweringModels(context);
    registerRecurrenceLoweringModels(context);
    registerLinearAttentionLoweringModel(context);
  });
  registry.addExtension(
      +[](MLIRContext *context, patch::PatchDialect *) { registerPatchLoweringModels(context); });
}

//===----------------------------------------------------------------------===//
// Processors
//===----------------------------------------------------------------------===//

void ctxc::buildContractPipeline(OpPassManager &pm, const CpuTarget &target) {
  buildBufferizePipeline(pm);
  pm.addPass(createLowerCalls());
  pm.addPass(createCopiesToLinalg());
  pm.addPass(createLowerContractionsFor(target));
}

void ctxc::buildContractedToLLVMPipeline(OpPassManager &pm, const CpuTarget &target) {
  pm.addPass(createLowerAttention(
      {target.lanes, target.registers, target.tiles, target.bytesAhead, target.asksInLine}));
  pm.addPass(createLowerScans());
  pm.addPass(createShareRows());
  pm.addPass(createPlaceBuffers());
  pm.addPass(createAddEntryPoints());

  pm.addPass(createLinalgToLoops());
  pm.addPass(memref::createFoldMemRefAliasOpsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
  pm.addPass(createKeepSumsInRegisters());
  pm.addPass(createApproximateFunctions());
  pm.addPass(createExpandMissingInstructions({target.fma, target.halfPrecision}));
  pm.addPass(createMarkParallelLoops());

  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createMarkParallelAccesses());
}

void ctxc::buildCpuPipeline(OpPassManager &pm, const CpuTarget &target) {
  buildContractPipeline(pm, target);
  buildContractedToLLVMPipeline(pm, target);
}

LogicalResult ctxc::lowerKernelsToLLVM(ModuleOp module, const CpuTarget &target) {
  return runPipeline(module, [&](OpPassManager &pm) { buildCpuPipeline(pm, target); });
}

//===----------------------------------------------------------------------===//
// Names for ctxc-opt
//===----------------------------------------------------------------------===//

namespace {

struct PipelineOptions : mlir::detail::PassOptions {
  Option<bool> fromBlocks{*this, "from-blocks", llvm::cl::desc("begin with ctxc-blocks-to-linalg"),
                          llvm::cl::init(false)};
};

struct CpuPipelineOptions : PipelineOptions {
  Option<std::string> target{*this, "target",
                             llvm::cl::desc("native, x86-64-v2, x86-64-v3, x86-64-v4, aarch64, or "
                                            "LLVM's name of a processor of x86-64"),
                             llvm::cl::init("native")};

  llvm::Error build(OpPassManager &pm) const {
    auto found = CpuTarget::named(target);
    if (!found)
      return found.takeError();
    buildCpuPipeline(pm, *found);
    return llvm::Error::success();
  }
};

struct GpuPipelineOptions : PipelineOptions {
  Option<std::string> target{*this, "target", llvm::cl::desc(GpuTarget::names()),
                             llvm::cl::init("cuda:sm_80")};
  Option<int64_t> rows{*this, "rows", llvm::cl::desc("rows of a call"), llvm::cl::init(1)};
  Option<bool> toCode{
      *this, "to-code",
      llvm::cl::desc("go on to the llvm or the spirv dialect, for the kernels alone"),
      llvm::cl::init(false)};

  llvm::Error build(OpPassManager &pm) const {
    auto found = GpuTarget::named(target);
    if (!found)
      return found.takeError();
    buildGpuPipeline(pm, **found, rows);
    if (toCode)
      (*found)->addCodePasses(pm);
    return llvm::Error::success();
  }
};

} // namespace

/// PassPipelineRegistration cannot report that a target's name is wrong.
template <typename Options> static void registerPipeline(StringRef name, StringRef summary) {
  registerPassPipeline(
      name, summary,
      [name](OpPassManager &pm, StringRef text,
             function_ref<LogicalResult(const Twine &)> reportError) -> LogicalResult {
        Options options;
        if (failed(options.parseFromString(text)))
          return failure();
        if (options.fromBlocks)
          pm.addPass(createBlocksToLinalg());
        if (llvm::Error error = options.build(pm))
          return reportError(name + ": target: " + llvm::toString(std::move(error)));
        return success();
      },
      [](function_ref<void(const mlir::detail::PassOptions &)> visit) { visit(Options()); });
}

void ctxc::registerLoweringPipelines() {
  PassPipelineRegistration<>("ctxc-bufferize", "turn kernels on tensors into kernels on memrefs",
                             buildBufferizePipeline);
  registerPipeline<CpuPipelineOptions>("ctxc-cpu-pipeline",
                                       "lower kernels in linalg to the LLVM dialect");
  registerPipeline<GpuPipelineOptions>("ctxc-gpu-pipeline",
                                       "lower kernels in linalg to launches and a gpu.module");
}
