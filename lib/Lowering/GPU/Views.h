// Sizes and addresses as linear functions of the numbers of visible tokens.
//
// A GPU kernel has a fixed number of rows. Each size in the bufferised kernel is therefore
// constant, or grows linearly with the tokens that one of the runs sees.
#ifndef CTXC_LIB_LOWERING_GPU_VIEWS_H
#define CTXC_LIB_LOWERING_GPU_VIEWS_H

#include "ctxc/Lowering/GPU.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/AffineMap.h"
#include <optional>

namespace ctxc::gpu_lowering {

Extent operator+(const Extent &a, const Extent &b);
Extent operator*(const Extent &a, int64_t factor);
/// None where the product is not linear.
std::optional<Extent> product(const Extent &a, const Extent &b);
inline Extent fixedExtent(int64_t n) { return {n, {0, 0}}; }
/// Whether a ≤ b, or a < b, for all numbers of visible tokens (at least 1 each).
bool isAtMost(const Extent &a, const Extent &b);
bool isLess(const Extent &a, const Extent &b);

/// The value of an index of the bufferised kernel; none where it depends on anything but the
/// visible tokens.
std::optional<Extent> extentOf(mlir::Value index);
std::optional<Extent> sizeOf(mlir::Value memref, int64_t dimension);
/// The number of elements of a memref.
std::optional<Extent> elementsOf(mlir::Value memref);

/// The op of which `root` is the result, where that is the numbers of a quantised matrix; else
/// null.
kernel::QuantizedOp quantizedOf(mlir::Value root);

/// A memref as a part of the memory that it lies in, which is an argument or an allocation, or the
/// numbers of a quantised matrix. Element
/// (i, j, …) is at offset + i·strides[0] + j·strides[1] + …, in elements.
struct View {
  mlir::Value root;
  Extent offset;
  llvm::SmallVector<Extent> strides;
};

std::optional<View> viewOf(mlir::Value memref);

/// A view that is accessed in a nest of loops. Each iteration accesses the element at offset + Σ_d
/// steps[d]·(index of loop d).
struct Access {
  View view;
  Extent offset;
  llvm::SmallVector<Extent> steps;
};

/// None where the map has other results than dimensions and constants.
std::optional<Access> accessOf(const View &view, mlir::AffineMap map);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_VIEWS_H
