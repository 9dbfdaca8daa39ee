// Helpers for the inference of result types.
#ifndef CTXC_DIALECTS_XF_INFERTYPES_H
#define CTXC_DIALECTS_XF_INFERTYPES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace ctxc::xf {

/// Types are inferred before a parsed op's attributes get their defaults.
inline int64_t valueOr(mlir::IntegerAttr attr, int64_t absent) {
  return attr ? attr.getInt() : absent;
}

inline mlir::RankedTensorType ranked(mlir::Type type) {
  return mlir::cast<mlir::RankedTensorType>(type);
}

/// The type of an activation: float32.
inline mlir::RankedTensorType activation(mlir::MLIRContext *context,
                                         llvm::ArrayRef<int64_t> shape) {
  return mlir::RankedTensorType::get(shape, mlir::Float32Type::get(context));
}

} // namespace ctxc::xf

#endif
