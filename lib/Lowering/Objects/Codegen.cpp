#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Numerics/BlockFormats.h"
#include "ctxc/Numerics/ByteVectors.h"
#include "ctxc/Numerics/ExpertGroups.h"
#include "ctxc/Numerics/FixedVectors.h"
#include "ctxc/Numerics/KernelABI.h"
#include "ctxc/Numerics/ScaledFormats.h"
#include "ctxc/Support/Error.h"
#include "dialects/Patch/Patch.h"
#include "lib/Lowering/Objects/GuardLibrary.h"
#include "lib/Lowering/Objects/MachineCode.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/xxhash.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace ctxc;

void ctxc::registerCodegenDialects(DialectRegistry &registry) {
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registry.insert<xf::XFDialect, patch::PatchDialect, kernel::KernelDialect>();
  registerLoweringModels(registry);
}

std::string ctxc::kernelName(xf::BlockOp block, StringRef prefix) {
  StringRef symbol = block.getSymName();
  std::string name = (prefix + "_" + symbol).str(), written = name;
  for (char &c : name)
    if (!llvm::isAlnum(c))
      c = '_';
  // Without a digest, @l.a and @l_a would get the same name.
  if (name != written)
    name += "_" + llvm::utohexstr(uint32_t(llvm::xxh3_64bits(symbol)), /*LowerCase=*/true);
  return name;
}

llvm::SmallVector<xf::BlockOp> ctxc::kernelBlocks(const Program &program) {
  llvm::SetVector<xf::BlockOp> blocks;
  for (const ProgramStep &step : program.steps)
    for (xf::BlockOp block : {step.block, step.dual, step.applied})
      if (block)
        blocks.insert(block);
  return blocks.takeVector();
}

void ctxc::markProducts(Operation *kernel, PromptProducts products) {
  if (products == PromptProducts::Split)
    kernel::mark<kernel::Split>(kernel);
  if (products == PromptProducts::Rounded)
    kernel::mark<kernel::Rounded>(kernel);
}

FailureOr<OwningOpRef<ModuleOp>> ctxc::buildKernelModule(ArrayRef<xf::BlockOp> blocks,
                                                         StringRef prefix, StateLayout layout) {
  xf::BlockOp first = blocks.front();
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(first.getLoc());
  for (xf::BlockOp block : blocks)
    if (failed(lowerBlockToLinalg(block, *kernels, kernelName(block, prefix), layout)))
      return failure();
  return kernels;
}

//===----------------------------------------------------------------------===//
// LLVM IR and object files
//===----------------------------------------------------------------------===//

static llvm::orc::JITTargetMachineBuilder machineBuilder(const CpuTarget &target) {
  llvm::Triple triple(target.triple.empty() ? llvm::sys::getProcessTriple() : target.triple);
  initialiseBackend(triple.isAArch64() ? "AArch64" : "X86");
  llvm::orc::JITTargetMachineBuilder builder{triple};
  builder.setCPU(target.cpu);
  for (auto feature : llvm::split(target.features, ','))
    if (!feature.empty())
      builder.getFeatures().AddFeature(feature.drop_front(), feature.front() == '+');
  builder.setCodeGenOptLevel(*llvm::CodeGenOpt::getLevel(target.optimisation));
  builder.setRelocationModel(llvm::Reloc::PIC_);
  // The position of a contraction's short inner loop relative to cache lines changed its time by 3
  // to 5 %; loops therefore start at a line.
  builder.getOptions().LoopAlignment = 64;
  // Only code that is loaded into this process may be placed anywhere in memory; code for a library
  // can use the small model.
  if (!target.triple.empty())
    builder.setCodeModel(llvm::CodeModel::Small);
  return builder;
}

/// No unrolling and no interleaving: contractions are already unrolled as they should be, and in
/// the short loops of everything else these would take most of the compile time.
static llvm::PipelineTuningOptions tuning() {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = false;
  tuning.LoopInterleaving = false;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = false;
  return tuning;
}

static llvm::OptimizationLevel levelOf(const CpuTarget &target) {
  static const llvm::OptimizationLevel levels[] = {
      llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1, llvm::OptimizationLevel::O2,
      llvm::OptimizationLevel::O3};
  return levels[target.optimisation];
}

/// Whether a function is called from outside its object: an entry, the function that gives the size
/// of its workspace, or a function for the other objects of a library.
static bool isCallable(const llvm::Function &f) {
  return f.hasHiddenVisibility() || f.getName().ends_with("_workspace") ||
         f.getParent()->getFunction((f.getName() + "_workspace").str());
}

llvm::Expected<std::unique_ptr<llvm::Module>> ctxc::translateKernels(ModuleOp lowered,
                                                                     llvm::LLVMContext &context,
                                                                     const CpuTarget &target,
                                                                     StringRef prefix) {
  auto machine = machineBuilder(target).createTargetMachine();
  if (!machine)
    return machine.takeError();
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(lowered, context, "ctxc");
  if (!module)
    return makeError("the kernels could not be translated to LLVM IR");
  setMachine(*module, **machine);
  for (llvm::Function &f : *module)
    if (!f.isDeclaration()) {
      f.addFnAttr("target-cpu", target.cpu);
      f.addFnAttr("target-features", target.features);
      f.addFnAttr("prefer-vector-width", std::to_string(32 * target.lanes));
      if (!isCallable(f))
        f.setLinkage(llvm::GlobalValue::InternalLinkage);
    }
  if (!prefix.empty())
    if (llvm::Error error = guardLibrary(*module, target, prefix))
      return std::move(error);
  optimise(*module, **machine, tuning(), levelOf(target));
  return module;
}

llvm::Error ctxc::emitMachineCode(llvm::Module &module, const CpuTarget &target,
                                  llvm::CodeGenFileType type, llvm::raw_pwrite_stream &os) {
  CpuTarget able = target;
  // At level 0, LLVM's code generator fails on tiles that are carried through loops.
  if (module.getFunction("llvm.x86.tdpbf16ps.internal"))
    able.optimisation = std::max(able.optimisation, 1);
  auto machine = machineBuilder(able).createTargetMachine();
  if (!machine)
    return machine.takeError();
  // Loop strength reduction and the pass that prepares it take a third of the compile time; kernels
  // are as fast without them.
  return writeCode(module, **machine, type, os, {"canon-freeze", "loop-reduce"});
}

//===----------------------------------------------------------------------===//
// In process
//===----------------------------------------------------------------------===//

namespace {

class JitLibrary : public KernelLibrary {
public:
  explicit JitLibrary(std::unique_ptr<llvm::orc::LLJIT> jit) : jit(std::move(jit)) {}

  llvm::Expected<Kernel> kernel(StringRef name) override {
    auto symbol = jit->lookup(name);
    if (!symbol)
      return symbol.takeError();
    return symbol->toPtr<Kernel>();
  }
  llvm::Expected<Workspace> workspace(StringRef name) override {
    auto symbol = jit->lookup((name + "_workspace").str());
    if (!symbol)
      return symbol.takeError();
    return symbol->toPtr<Workspace>();
  }

private:
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

} // namespace

llvm::Expected<std::unique_ptr<KernelLibrary>>
KernelLibrary::load(std::vector<std::unique_ptr<llvm::MemoryBuffer>> objects) {
  auto jit = llvm::orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(machineBuilder(CpuTarget::host()))
                 .create();
  if (!jit)
    return jit.takeError();
  llvm::orc::JITDylib &library = (*jit)->getMainJITDylib();
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      (*jit)->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  library.addGenerator(std::move(*process));
  // The support functions are given by address, since the executable does not export them.
  llvm::orc::SymbolMap support;
  auto define = [&](StringRef name, auto *function) {
    support[(*jit)->mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(function),
                                              llvm::JITSymbolFlags::Exported |
                                                  llvm::JITSymbolFlags::Callable};
  };
#define CTXC_SUPPORT_FUNCTION(name) define(#name, &name);
#include "ctxc/Numerics/SupportFunctions.def"
  if (auto failed = library.define(llvm::orc::absoluteSymbols(std::move(support))))
    return std::move(failed);
  for (std::unique_ptr<llvm::MemoryBuffer> &object : objects)
    if (auto failed = (*jit)->addObjectFile(std::move(object)))
      return std::move(failed);
  return std::make_unique<JitLibrary>(std::move(*jit));
}
