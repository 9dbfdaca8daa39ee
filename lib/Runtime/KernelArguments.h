// What stands behind a kernel's arguments, whatever machine it runs on: the bytes of settings, and
// the parts of patches that kernels take and give.
#ifndef CTXC_LIB_RUNTIME_KERNELARGUMENTS_H
#define CTXC_LIB_RUNTIME_KERNELARGUMENTS_H

#include "ctxc/Lowering/Kernel.h"
#include "ctxc/Runtime/Patch.h"
#include "ctxc/Runtime/Program.h"
#include "llvm/Support/Error.h"

namespace ctxc {

/// One value for some tokens, row after row.
using Rows = std::vector<float>;

/// The numbers of one row of an argument.
int64_t elementsOf(mlir::Type type);

/// A setting's value in a step, as its kernels read it.
std::vector<char> settingBytes(ProgramStep step, llvm::StringRef name);

/// The parts of `patch` that a kernel with `args` takes, one for each Load argument, in order; of
/// indices the bits of int32. Memory of `loaded` is used again.
llvm::Error loadParts(ProgramStep step, llvm::ArrayRef<KernelArg> args, const Patch &patch,
                      std::vector<Rows> &loaded);

/// The changes of stored tensors that row `row` of `parts`, one for each Store argument, is; added
/// to `patch`.
llvm::Error readParts(ProgramStep step, llvm::ArrayRef<KernelArg> args, llvm::ArrayRef<Rows> parts,
                      int64_t row, Patch &patch);

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_KERNELARGUMENTS_H
