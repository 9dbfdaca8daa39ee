// Products with a matrix, among the ops of a kernel.
#ifndef CTXC_LIB_LOWERING_GPU_PRODUCTS_H
#define CTXC_LIB_LOWERING_GPU_PRODUCTS_H

#include "lib/Lowering/GPU/Steps.h"

namespace ctxc::gpu_lowering {

/// Whether the op adds a product of its inputs, widened, to its result.
bool isProduct(mlir::linalg::GenericOp op);

/// Whether a contraction's matrix, the input `matrix`, is stored, and its sizes are fixed.
bool isOfStored(const RowOp &row, size_t matrix);

/// A remark at each product with a parameter that has no kernel of its own among the kernel's
/// steps.
void remarkProducts(llvm::ArrayRef<Step> steps, mlir::func::FuncOp kernel);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_PRODUCTS_H
