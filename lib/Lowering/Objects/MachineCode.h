// LLVM's back ends, for who makes code in this process: processors, NVIDIA and AMD.
#ifndef CTXC_LIB_LOWERING_MACHINECODE_H
#define CTXC_LIB_LOWERING_MACHINECODE_H

#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

namespace ctxc {

/// Initialises LLVM's back end of that name (X86, AArch64, NVPTX, AMDGPU) and no other; any number
/// of threads may ask for it.
void initialiseBackend(llvm::StringRef name);

/// What code is made for, in LLVM's words.
struct MachineName {
  llvm::StringRef backend, triple, cpu, features;
};

/// The machine for position-independent code, of an initialised or yet to be initialised back end.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machineFor(const MachineName &name);

/// Gives `module` the machine's triple and layout.
void setMachine(llvm::Module &module, const llvm::TargetMachine &machine);

/// LLVM's pipeline of `level` with `tuning`.
void optimise(llvm::Module &module, llvm::TargetMachine &machine,
              const llvm::PipelineTuningOptions &tuning = {},
              llvm::OptimizationLevel level = llvm::OptimizationLevel::O3);

/// Writes assembly or an object file of `module`, by LLVM's code generator but for the passes
/// `leftOut`, by their arguments.
llvm::Error writeCode(llvm::Module &module, llvm::TargetMachine &machine,
                      llvm::CodeGenFileType type, llvm::raw_pwrite_stream &os,
                      llvm::ArrayRef<llvm::StringRef> leftOut = {});

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_MACHINECODE_H
