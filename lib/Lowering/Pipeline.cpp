// From kernels in linalg to the LLVM dialect.
#include "dialects/Patch/Patch.h"
#include "lib/Lowering/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace ctxc;

namespace ctxc {
void registerXFLoweringModels(MLIRContext *context);
void registerMixtureLoweringModels(MLIRContext *context);
void registerContextLoweringModels(MLIRContext *context);
void registerPatchLoweringModels(MLIRContext *context);
} // namespace ctxc

void ctxc::registerLoweringModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, xf::XFDialect *) {
    registerXFLoweringModels(context);
    registerMixtureLoweringModels(context);
    registerContextLoweringModels(context);
  });
  registry.addExtension(
      +[](MLIRContext *context, patch::PatchDialect *) { registerPatchLoweringModels(context); });
}

/// memref.copy of a strided buffer would call into a runtime library; a loop does not.
static void copiesToLinalg(ModuleOp module) {
  module.walk([](memref::CopyOp copy) {
    if (copy.getSource() != copy.getTarget()) {
      OpBuilder b(copy);
      linalg::makeMemRefCopyOp(b, copy.getLoc(), copy.getSource(), copy.getTarget());
    }
    copy.erase();
  });
}

void ctxc::approximateFunctions(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
    return llvm::is_contained({"math.exp", "math.tanh", "math.erf", "math.log", "math.log1p"},
                              name);
  });
  (void)applyPatternsGreedily(module, std::move(patterns));
}

/// Gives each reader of a filled tensor one of its own: of one for several, which write over it,
/// there would be copies.
static void unshareFills(ModuleOp module) {
  SmallVector<linalg::FillOp> fills;
  module.walk([&](linalg::FillOp fill) {
    if (!fill->use_empty())
      fills.push_back(fill);
  });
  for (linalg::FillOp fill : fills)
    for (OpOperand &use : llvm::make_early_inc_range(llvm::drop_begin(fill->getUses()))) {
      OpBuilder b(use.getOwner());
      IRMapping own;
      if (auto empty = fill.getOutputs().front().getDefiningOp<tensor::EmptyOp>())
        own.map(empty.getResult(), b.clone(*empty)->getResult(0));
      use.set(b.clone(*fill, own)->getResult(0));
    }
}

LogicalResult ctxc::bufferizeKernels(ModuleOp module) {
  PassManager simplify(module.getContext());
  simplify.addPass(memref::createResolveShapedTypeResultDimsPass());
  simplify.addPass(createCanonicalizerPass());
  simplify.addPass(createCSEPass());
  if (failed(simplify.run(module)))
    return failure();
  unshareFills(module);
  PassManager bufferize(module.getContext());
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = false;
  bufferize.addPass(bufferization::createOneShotBufferizePass(options));
  bufferize.addPass(createCanonicalizerPass());
  bufferize.addPass(createCSEPass());
  return bufferize.run(module);
}

LogicalResult ctxc::bufferizeAndContract(ModuleOp module, const CpuTarget &target) {
  if (failed(bufferizeKernels(module)))
    return failure();
  copiesToLinalg(module);
  return lowerContractions(module, target);
}

LogicalResult ctxc::lowerKernelsToLLVM(ModuleOp module, const CpuTarget &target) {
  return success(succeeded(bufferizeAndContract(module, target)) &&
                 succeeded(lowerContractedToLLVM(module, target)));
}

LogicalResult ctxc::lowerContractedToLLVM(ModuleOp module, const CpuTarget &target) {
  MLIRContext *context = module.getContext();
  if (failed(shareRows(module, target)) || failed(placeBuffers(module)))
    return failure();
  addEntryPoints(module);

  if (failed(linalgToLoops(module, target)))
    return failure();
  PassManager loops(context);
  loops.addPass(memref::createFoldMemRefAliasOpsPass());
  loops.addPass(createCanonicalizerPass());
  loops.addPass(createCSEPass());
  loops.addPass(createLoopInvariantCodeMotionPass());
  if (failed(loops.run(module)))
    return failure();
  keepSumsInRegisters(module);
  approximateFunctions(module);
  withoutMissingInstructions(module, target);
  markParallelLoops(module);

  PassManager lower(context);
  lower.addPass(createSCFToControlFlowPass());
  lower.addPass(memref::createExpandStridedMetadataPass());
  lower.addPass(createLowerAffinePass());
  lower.addPass(createConvertVectorToLLVMPass());
  lower.addPass(createConvertMathToLLVMPass());
  lower.addPass(createConvertMathToLibmPass());
  lower.addPass(createConvertToLLVMPass());
  lower.addPass(createReconcileUnrealizedCastsPass());
  lower.addPass(createCanonicalizerPass());
  lower.addPass(createCSEPass());
  if (failed(lower.run(module)))
    return failure();
  markParallelAccesses(module);
  return success();
}
