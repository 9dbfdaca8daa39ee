// How the arguments of a kernel lie in memory, for the header and the manifest.
#ifndef CTXC_LOWERING_ARGUMENTLAYOUT_H
#define CTXC_LOWERING_ARGUMENTLAYOUT_H

#include "ctxc/Lowering/Kernel.h"

namespace ctxc {

/// How elements of `shape` lie in memory: row by row without gaps; a quantised matrix has no
/// strides.
struct ArrayLayout {
  std::string type;                     ///< f32, bf16, i32, …; q6_k; address; ctxc_scaled_matrix
  llvm::SmallVector<std::string> shape; ///< each a number, "S", or "visible[0]"
  llvm::SmallVector<int64_t> strides;   ///< in elements; empty for a quantised matrix
  int64_t alignment = 1;                ///< in bytes
  std::string text() const;             ///< "f32 [S x 640] strides [640, 1] aligned to 4"
};

struct ArgumentLayout {
  KernelArg arg;
  std::string identifier; ///< unique in the kernel, and part of a C identifier
  std::string part;       ///< part of a patch (u, v, selected, delta); otherwise empty
  llvm::StringRef meaning;
  llvm::StringRef access; ///< read, write, read-write, add
  ArrayLayout array;
  std::optional<ArrayLayout> slice; ///< for a bank: the matrix that each address points to
};

/// The arguments of a kernel, in order.
std::vector<ArgumentLayout> argumentLayouts(mlir::func::FuncOp kernel);

/// Whether the scales of a parameter are stored apart from its elements, so that it, or each slice
/// of it, is passed as a ctxc_scaled_matrix.
bool hasScalesApart(const KernelArg &arg);

} // namespace ctxc

#endif // CTXC_LOWERING_ARGUMENTLAYOUT_H
