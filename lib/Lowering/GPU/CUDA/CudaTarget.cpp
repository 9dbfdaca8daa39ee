// NVIDIA: gpu → nvvm → PTX, in this process and without a toolkit. The driver makes machine code of
// PTX for the device at hand.
#include "ctxc/Support/Error.h"
#include "lib/Lowering/GPU/Targets.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/GPUCommon/GPUCommonPass.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace {

struct Architecture {
  StringRef name, features; ///< LLVM's, with the version of PTX that all drivers for it read
};
constexpr Architecture architectures[] = {{"sm_80", "+ptx70"}, {"sm_90", "+ptx78"}};

class CudaTarget : public GpuTarget {
public:
  explicit CudaTarget(const Architecture &architecture) : architecture(architecture) {}

  std::string name() const override { return ("cuda:" + architecture.name).str(); }
  StringRef stage() const override { return "ptx"; }
  int64_t subgroup() const override { return 32; }
  bool readsFloat16() const override { return true; }
  llvm::Expected<std::string> emit(ModuleOp module) const override;

private:
  Architecture architecture;
};

} // namespace

llvm::Expected<std::unique_ptr<GpuTarget>> gpu_lowering::makeCudaTarget(StringRef name) {
  for (const Architecture &architecture : architectures)
    if (architecture.name == name)
      return std::make_unique<CudaTarget>(architecture);
  return makeError("cuda: found '" + name + "', expected sm_80 or sm_90");
}

/// A buffer whose size follows from the visible tokens is an address like any other: kernels ask
/// for no size.
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

/// As -convert-gpu-to-nvvm does it, but that functions of numbers which are instructions (fma,
/// floor, sqrt) stay such, where that pass calls a library of the toolkit.
static LogicalResult convertToNVVM(gpu::GPUModuleOp kernels) {
  MLIRContext *context = kernels.getContext();
  PassManager before(context, gpu::GPUModuleOp::getOperationName());
  before.addPass(createSCFToControlFlowPass());
  if (failed(before.run(kernels)))
    return failure();

  LowerToLLVMOptions options(context);
  options.overrideIndexBitwidth(32);
  options.useBarePtrCallConv = true;
  LLVMTypeConverter converter(context, options);
  configureGpuToNVVMTypeConverter(converter);
  RewritePatternSet patterns(context);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns, /*approximateLog1p=*/true,
                                       /*benefit=*/10);
  populateGpuToNVVMConversionPatterns(converter, patterns);
  ConversionTarget target(*context);
  target.addLegalDialect<LLVM::LLVMDialect, NVVM::NVVMDialect>();
  target.addLegalOp<gpu::GPUModuleOp>();
  target.addIllegalDialect<gpu::GPUDialect>();
  target.addLegalOp<gpu::GPUModuleOp>();
  if (failed(applyFullConversion(kernels, target, std::move(patterns))))
    return failure();
  // One block a multiprocessor is enough to ask for: the assembler would rather spill than have
  // fewer than as many as there are threads for.
  for (auto function : kernels.getOps<LLVM::LLVMFuncOp>())
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      Builder(context).getI32IntegerAttr(1));
  PassManager after(context, gpu::GPUModuleOp::getOperationName());
  after.addPass(createReconcileUnrealizedCastsPass());
  after.addPass(createCanonicalizerPass());
  after.addPass(createCSEPass());
  return after.run(kernels);
}

static std::unique_ptr<llvm::TargetMachine> machineFor(const Architecture &architecture) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, architecture.name, architecture.features, llvm::TargetOptions(), llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

static void optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

llvm::Expected<std::string> CudaTarget::emit(ModuleOp module) const {
  OwningOpRef<ModuleOp> copy(module.clone());
  gpu::GPUModuleOp kernels = kernelsOf(*copy);
  nameSizes(kernels);
  if (failed(convertToNVVM(kernels)))
    return makeError(name() + ": the kernels could not be lowered to nvvm; see the messages above");
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(kernels, context, "ctxc");
  auto machine = machineFor(architecture);
  if (!code || !machine)
    return makeError(name() + ": the kernels could not be translated to LLVM IR");
  code->setTargetTriple(machine->getTargetTriple());
  code->setDataLayout(machine->createDataLayout());
  optimise(*code, *machine);
  SmallVector<char, 0> text;
  llvm::raw_svector_ostream os(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, os, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return makeError(name() + ": LLVM cannot write PTX");
  passes.run(*code);
  return std::string(text.begin(), text.end());
}
