// What makes generated code safe to keep and to hand on: it says whether it can be used here.
#ifndef CTXC_LOWERING_GUARDLIBRARY_H
#define CTXC_LOWERING_GUARDLIBRARY_H

#include "ctxc/Lowering/CpuTarget.h"
#include "llvm/IR/Module.h"

namespace ctxc {

/// Adds `<prefix>_refusal` of ctxc_kernel.h, and has each entry return CTXC_WRONG_CPU before
/// anything else where the machine lacks what `target` needs. All that runs before is compiled for
/// the architecture's baseline. The one word that the library keeps, `<prefix>_cpu`, is the answer
/// of ctxc_cpu_runs. An error where a kernel has a name of the library's.
llvm::Error guardLibrary(llvm::Module &module, const CpuTarget &target, llvm::StringRef prefix);

} // namespace ctxc

#endif // CTXC_LOWERING_GUARDLIBRARY_H
