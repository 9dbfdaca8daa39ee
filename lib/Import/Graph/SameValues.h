//===- SameValues.h - values that are made alike ---------------------------===//
#ifndef CTXC_IMPORT_SAMEVALUES_H
#define CTXC_IMPORT_SAMEVALUES_H

#include "mlir/IR/Value.h"

namespace ctxc::pt2 {

/// Whether two values are the same one, or are made by the same few ops of the same values.
bool areSame(mlir::Value a, mlir::Value b, unsigned depth = 4);
bool areAllSame(llvm::ArrayRef<mlir::Value> values);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_SAMEVALUES_H
