// Makes generated code safe to store and distribute: it tells whether it can run on a machine.
#ifndef CTXC_LOWERING_GUARDLIBRARY_H
#define CTXC_LOWERING_GUARDLIBRARY_H

#include "ctxc/Lowering/CpuTarget.h"
#include "llvm/IR/Module.h"

namespace ctxc {

/// Adds `<prefix>_refusal` of ctxc_kernel.h, and makes each entry return CTXC_WRONG_CPU first of
/// all where the machine lacks what `target` needs. All code that runs before this check is
/// compiled for the architecture's baseline. The library's only variable, `<prefix>_cpu`, keeps the
/// result of ctxc_cpu_runs. A kernel that has the name of one of these symbols is an error.
llvm::Error guardLibrary(llvm::Module &module, const CpuTarget &target, llvm::StringRef prefix);

} // namespace ctxc

#endif // CTXC_LOWERING_GUARDLIBRARY_H
