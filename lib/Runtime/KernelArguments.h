// The values of a kernel's arguments, on any machine: the bytes of settings, and
// the parts of patches that kernels load and store.
#ifndef CTXC_LIB_RUNTIME_KERNELARGUMENTS_H
#define CTXC_LIB_RUNTIME_KERNELARGUMENTS_H

#include "ctxc/Lowering/Kernel.h"
#include "ctxc/Program/PatchParts.h"
#include "ctxc/Program/Program.h"
#include "llvm/Support/Error.h"

namespace ctxc {

/// One value for some tokens, one row for each.
using Rows = std::vector<float>;

/// The numbers of one row of an argument.
int64_t elementsOf(mlir::Type type);

/// A setting's value in a step, as its kernels read it.
std::vector<char> settingBytes(ProgramStep step, llvm::StringRef name);

/// How a kernel loads or stores one parameter's patch: an argument for each of its parts.
struct PatchArg {
  struct Part {
    int64_t size;   ///< numbers of one row
    bool isIndices; ///< the bits are int32's
  };
  PatchedParameter parameter;
  llvm::SmallVector<Part, 3> parts;
};

/// All patches that a kernel loads and stores, each in the order of its arguments.
struct PatchArgs {
  std::vector<PatchArg> loads, stores;
};
llvm::Expected<PatchArgs> patchArgs(ProgramStep step, llvm::ArrayRef<KernelArg> args);

/// The parts of `patch` for each Load argument, in order. The memory of `loaded` is reused.
llvm::Error loadParts(llvm::ArrayRef<PatchArg> loads, const Patch &patch,
                      std::vector<Rows> &loaded);

/// Row `row` of `parts`, which has one for each Store argument, as changes of stored tensors, added
/// to `patch`.
llvm::Error readParts(llvm::ArrayRef<PatchArg> stores, llvm::ArrayRef<Rows> parts, int64_t row,
                      Patch &patch);

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_KERNELARGUMENTS_H
