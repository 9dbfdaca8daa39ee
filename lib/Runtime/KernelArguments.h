// What stands behind a kernel's arguments, whatever machine it runs on: the bytes of settings, and
// the parts of patches that kernels take and give.
#ifndef CTXC_LIB_RUNTIME_KERNELARGUMENTS_H
#define CTXC_LIB_RUNTIME_KERNELARGUMENTS_H

#include "ctxc/Lowering/Kernel.h"
#include "ctxc/Program/PatchParts.h"
#include "ctxc/Program/Program.h"
#include "llvm/Support/Error.h"

namespace ctxc {

/// One value for some tokens, row after row.
using Rows = std::vector<float>;

/// The numbers of one row of an argument.
int64_t elementsOf(mlir::Type type);

/// A setting's value in a step, as its kernels read it.
std::vector<char> settingBytes(ProgramStep step, llvm::StringRef name);

/// How one parameter's patch goes into a kernel or out of it: an argument for each of its parts.
struct PatchArg {
  struct Part {
    int64_t size;   ///< numbers of one row
    bool isIndices; ///< whose bits are int32's
  };
  PatchedParameter parameter;
  llvm::SmallVector<Part, 3> parts;
};

/// All patches that a kernel takes and gives, each in the order of its arguments.
struct PatchArgs {
  std::vector<PatchArg> loads, stores;
};
llvm::Expected<PatchArgs> patchArgs(ProgramStep step, llvm::ArrayRef<KernelArg> args);

/// The parts of `patch` for each Load argument, in order. Memory of `loaded` is used again.
llvm::Error loadParts(llvm::ArrayRef<PatchArg> loads, const Patch &patch,
                      std::vector<Rows> &loaded);

/// The changes of stored tensors that row `row` of `parts`, one for each Store argument, is; added
/// to `patch`.
llvm::Error readParts(llvm::ArrayRef<PatchArg> stores, llvm::ArrayRef<Rows> parts, int64_t row,
                      Patch &patch);

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_KERNELARGUMENTS_H
