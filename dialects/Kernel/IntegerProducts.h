//===- IntegerProducts.h - the mark of matrices multiplied in integers ----===//
//
// `kernel.integer`, on a quantised parameter, on `kernel.quantized` and on `kernel.experts`: the
// matrix is multiplied in integers, with vectors that are rounded to 8 bits, with a scale for each
// 32 numbers (ctxc/Numerics/ByteVectors.h).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_DIALECTS_KERNEL_INTEGERPRODUCTS_H
#define CTXC_DIALECTS_KERNEL_INTEGERPRODUCTS_H

#include "dialects/Kernel/Kernel.h"

namespace ctxc::kernel {

inline bool isInteger(mlir::Operation *op) { return op && isMarked<Integer>(op); }
/// Marks `to` where `from` is marked.
inline void copyIntegerMark(mlir::Operation *from, mlir::Operation *to) {
  if (isInteger(from))
    mark<Integer>(to);
}

/// Whether vectors can be multiplied with a matrix of this type in integers.
bool multipliesInIntegers(mlir::Type matrix);
/// Marks every parameter of such a type.
void markIntegerProducts(mlir::ModuleOp module);

} // namespace ctxc::kernel

#endif // CTXC_DIALECTS_KERNEL_INTEGERPRODUCTS_H
