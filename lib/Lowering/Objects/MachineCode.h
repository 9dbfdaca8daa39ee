// LLVM's back ends for code that is generated in this process: for processors, NVIDIA and AMD.
#ifndef CTXC_LIB_LOWERING_MACHINECODE_H
#define CTXC_LIB_LOWERING_MACHINECODE_H

#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

namespace ctxc {

/// Initialises only the LLVM back end of that name (X86, AArch64, NVPTX, AMDGPU). Any number of
/// threads may call it.
void initialiseBackend(llvm::StringRef name);

/// The machine that code is generated for, in LLVM's terms.
struct MachineName {
  llvm::StringRef backend, triple, cpu, features;
};

/// The target machine for position-independent code. Initialises the back end where needed.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machineFor(const MachineName &name);

/// Gives `module` the machine's triple and layout.
void setMachine(llvm::Module &module, const llvm::TargetMachine &machine);

/// Runs LLVM's pipeline of optimisation `level` with `tuning`.
void optimise(llvm::Module &module, llvm::TargetMachine &machine,
              const llvm::PipelineTuningOptions &tuning = {},
              llvm::OptimizationLevel level = llvm::OptimizationLevel::O3);

/// Writes assembly or an object file of `module` with LLVM's code generator, without the passes
/// whose arguments are in `leftOut`.
llvm::Error writeCode(llvm::Module &module, llvm::TargetMachine &machine,
                      llvm::CodeGenFileType type, llvm::raw_pwrite_stream &os,
                      llvm::ArrayRef<llvm::StringRef> leftOut = {});

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_MACHINECODE_H
