#include "lib/Lowering/GPU/LlvmKernels.h"
#include "ctxc/Lowering/Passes.h"
#include "ctxc/Support/Error.h"
#include "lib/Lowering/GPU/Targets.h"
#include "lib/Lowering/RunPipeline.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

namespace ctxc {
#define GEN_PASS_DEF_GPUTOLLVM
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

/// Gives a buffer whose size depends on the visible tokens a static type, so that it is passed as a
/// plain address: kernels never ask for its size.
static void nameSizes(gpu::GPUModuleOp kernels) {
  for (auto function : kernels.getOps<gpu::GPUFuncOp>()) {
    SmallVector<Type> types;
    for (BlockArgument argument :
         function.getArguments().take_front(function.getFunctionType().getNumInputs())) {
      if (auto type = dyn_cast<MemRefType>(argument.getType()); type && !type.hasStaticShape())
        argument.setType(
            MemRefType::get({std::numeric_limits<int32_t>::max()}, type.getElementType()));
      types.push_back(argument.getType());
    }
    function.setFunctionType(FunctionType::get(function.getContext(), types, {}));
  }
}

/// Declares arguments of a launch as noalias, so that reads need not wait for earlier writes: no
/// two arguments are the same memory where one of them is written. Kernels in which threads
/// exchange values through buffers are left out: LLVM would assume that a barrier does not change
/// the memory behind a noalias argument.
static void nameBuffers(LLVM::LLVMFuncOp kernel) {
  auto meets = kernel.walk([](Operation *op) {
    bool isBarrier = op->getName().stripDialect().contains("barrier");
    return isBarrier ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (meets.wasInterrupted())
    return;
  for (BlockArgument argument : kernel.getArguments())
    if (isa<LLVM::LLVMPointerType>(argument.getType()))
      kernel.setArgAttr(argument.getArgNumber(), LLVM::LLVMDialect::getNoAliasAttrName(),
                        UnitAttr::get(kernel.getContext()));
}

LogicalResult LlvmKernels::convert(gpu::GPUModuleOp kernels) const {
  MLIRContext *context = kernels.getContext();
  nameSizes(kernels);
  LowerToLLVMOptions options(context);
  options.overrideIndexBitwidth(32);
  options.useBarePtrCallConv = true;
  LLVMTypeConverter converter(context, options);
  configure(converter);
  RewritePatternSet patterns(context);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns, /*approximateLog1p=*/true,
                                       /*benefit=*/10);
  populate(converter, patterns);
  ConversionTarget target(*context);
  target.addLegalDialect<LLVM::LLVMDialect, NVVM::NVVMDialect, ROCDL::ROCDLDialect>();
  target.addIllegalDialect<gpu::GPUDialect>();
  target.addLegalOp<gpu::GPUModuleOp>();
  if (failed(applyFullConversion(kernels, target, std::move(patterns))))
    return failure();
  for (auto kernel : kernels.getOps<LLVM::LLVMFuncOp>()) {
    nameBuffers(kernel);
    finish(kernel);
  }
  return success();
}

namespace {

struct GpuToLLVM : ctxc::impl::GpuToLLVMBase<GpuToLLVM> {
  using Base::Base;

  LogicalResult initialize(MLIRContext *context) override {
    auto named = GpuTarget::named(target);
    if (named && (*named)->llvmKernels()) {
      gpu = std::move(*named);
      return success();
    }
    auto error = emitError(UnknownLoc::get(context), "ctxc-gpu-to-llvm: target: ");
    return named ? error << "LLVM makes no code for " << (*named)->name()
                 : error << llvm::toString(named.takeError());
  }
  void runOnOperation() override {
    if (failed(gpu->llvmKernels()->convert(getOperation())))
      signalPassFailure();
  }

  std::shared_ptr<const GpuTarget> gpu;
};

} // namespace

void LlvmKernels::addPasses(OpPassManager &pm, const GpuTarget &target) const {
  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>();
  kernels.addPass(createSCFToControlFlowPass());
  kernels.addPass(createGpuToLLVM({target.name()}));
  kernels.addPass(createReconcileUnrealizedCastsPass());
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
}

llvm::Expected<std::string> LlvmKernels::emit(ModuleOp module, const MachineName &machineName,
                                              const GpuTarget &target,
                                              llvm::CodeGenFileType type) const {
  OwningOpRef<ModuleOp> copy(module.clone());
  if (failed(runPipeline(*copy, [&](OpPassManager &pm) { addPasses(pm, target); })))
    return makeError(target.name() +
                     ": the kernels could not be lowered to the llvm dialect; see the "
                     "messages above");
  auto machine = machineFor(machineName);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(kernelsOf(*copy), context, "ctxc");
  if (!code)
    return makeError(target.name() + ": the kernels could not be translated to LLVM IR");
  setMachine(*code, **machine);
  finish(*code);
  optimise(*code, **machine);
  SmallVector<char, 0> text;
  llvm::raw_svector_ostream os(text);
  if (llvm::Error error = writeCode(*code, **machine, type, os))
    return std::move(error);
  return std::string(text.begin(), text.end());
}
