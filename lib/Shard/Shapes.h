// Sizes of a block's values.
#ifndef CTXC_LIB_SHARD_SHAPES_H
#define CTXC_LIB_SHARD_SHAPES_H

#include "dialects/XF/XF.h"

namespace ctxc::shard {

/// Empty for what is no tensor.
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  auto type = llvm::dyn_cast<mlir::RankedTensorType>(value.getType());
  return type ? type.getShape() : llvm::ArrayRef<int64_t>();
}

inline double elementsOf(mlir::Value value) {
  double elements = 1;
  for (int64_t size : shapeOf(value))
    elements *= double(size);
  return elements;
}

/// The bytes in which a parameter is stored.
double bytesOf(xf::ParamOp param);

} // namespace ctxc::shard

#endif // CTXC_LIB_SHARD_SHAPES_H
