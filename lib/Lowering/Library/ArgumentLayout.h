// What an argument of a kernel is in memory, for the header and the manifest.
#ifndef CTXC_LOWERING_ARGUMENTLAYOUT_H
#define CTXC_LOWERING_ARGUMENTLAYOUT_H

#include "ctxc/Lowering/Kernel.h"

namespace ctxc {

/// How elements of `shape` lie in memory: row by row without gaps, unless `strides` is empty.
struct ArrayLayout {
  std::string type;                     ///< f32, bf16, i32, …; q6_k; address; ctxc_scaled_matrix
  llvm::SmallVector<std::string> shape; ///< a number, "S", or "visible[0]"
  llvm::SmallVector<int64_t> strides;   ///< in elements; none of a quantised matrix
  int64_t alignment = 1;                ///< in bytes
  std::string text() const;             ///< "f32 [S x 640] strides [640, 1] aligned to 4"
};

struct ArgumentLayout {
  KernelArg arg;
  std::string identifier; ///< unique in the kernel, and part of a C identifier
  std::string part;       ///< of a patch: u, v, selected, delta; else empty
  llvm::StringRef meaning;
  llvm::StringRef access; ///< read, write, read-write, add
  ArrayLayout array;
  std::optional<ArrayLayout> slice; ///< of a bank: what each address leads to
};

/// The arguments of a kernel, in order.
std::vector<ArgumentLayout> argumentLayouts(mlir::func::FuncOp kernel);

/// Whether a parameter's scales lie apart, so that it, or a slice of it, is a ctxc_scaled_matrix.
bool hasScalesApart(const KernelArg &arg);

} // namespace ctxc

#endif // CTXC_LOWERING_ARGUMENTLAYOUT_H
