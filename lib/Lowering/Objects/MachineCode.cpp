#include "lib/Lowering/Objects/MachineCode.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include <mutex>

using namespace ctxc;
using llvm::StringRef;

void ctxc::initialiseBackend(StringRef name) {
  // LLVM's target registry is not thread-safe.
  static std::mutex mutex;
  static llvm::StringSet<> done;
  std::lock_guard<std::mutex> guard(mutex);
  if (!done.insert(name).second)
    return;
#define LLVM_TARGET(NAME)                                                                          \
  if (name == #NAME) {                                                                             \
    LLVMInitialize##NAME##TargetInfo();                                                            \
    LLVMInitialize##NAME##Target();                                                                \
    LLVMInitialize##NAME##TargetMC();                                                              \
  }
#include "llvm/Config/Targets.def"
#define LLVM_ASM_PRINTER(NAME)                                                                     \
  if (name == #NAME)                                                                               \
    LLVMInitialize##NAME##AsmPrinter();
#include "llvm/Config/AsmPrinters.def"
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>> ctxc::machineFor(const MachineName &name) {
  initialiseBackend(name.backend);
  llvm::Triple triple(name.triple);
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return makeError(name.triple + ": this LLVM has no code for it: " + message);
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, name.cpu, name.features, llvm::TargetOptions(), llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
}

void ctxc::setMachine(llvm::Module &module, const llvm::TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
}

void ctxc::optimise(llvm::Module &module, llvm::TargetMachine &machine,
                    const llvm::PipelineTuningOptions &tuning, llvm::OptimizationLevel level) {
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(level).run(module, modules);
}

namespace {

/// The passes of the code generator without some of them. LLVM can leave out passes only by global
/// command-line options, which would also apply to all other uses of LLVM in the process.
class CodePasses : public llvm::legacy::PassManager {
public:
  explicit CodePasses(llvm::ArrayRef<StringRef> leftOut) : leftOut(leftOut) {}

  void add(llvm::Pass *pass) override {
    auto *info = llvm::PassRegistry::getPassRegistry()->getPassInfo(pass->getPassID());
    if (info && llvm::is_contained(leftOut, info->getPassArgument()))
      delete pass;
    else
      PassManager::add(pass);
  }

private:
  llvm::ArrayRef<StringRef> leftOut;
};

} // namespace

llvm::Error ctxc::writeCode(llvm::Module &module, llvm::TargetMachine &machine,
                            llvm::CodeGenFileType type, llvm::raw_pwrite_stream &os,
                            llvm::ArrayRef<StringRef> leftOut) {
  CodePasses passes(leftOut);
  if (machine.addPassesToEmitFile(passes, os, nullptr, type))
    return makeError(machine.getTargetTriple().str() + ": LLVM cannot write this code");
  passes.run(module);
  return llvm::Error::success();
}
