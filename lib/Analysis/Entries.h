#ifndef CTXC_LIB_ANALYSIS_ENTRIES_H
#define CTXC_LIB_ANALYSIS_ENTRIES_H

#include "mlir/IR/BuiltinTypes.h"

namespace ctxc {

/// How many numbers a value has; one, where its type does not say.
inline int64_t entries(mlir::Value value) {
  auto type = mlir::dyn_cast<mlir::RankedTensorType>(value.getType());
  return type && type.hasStaticShape() ? type.getNumElements() : 1;
}

} // namespace ctxc

#endif
