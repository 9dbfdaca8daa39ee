// The body of an op over numbers, applied to vectors.
#ifndef CTXC_LIB_LOWERING_CPU_VECTORBODY_H
#define CTXC_LIB_LOWERING_CPU_VECTORBODY_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace ctxc {

/// Whether each op of `body` but its terminator has a form over vectors.
bool hasVectorForm(mlir::Block &body);

/// `scalar` in each lane of a vector of rowLanes.
mlir::Value broadcastLanes(mlir::OpBuilder &b, mlir::Location loc, mlir::Value scalar);

/// Applies the ops of `body`, but its terminator and `except`, to vectors of rowLanes. `wide` maps
/// the body's arguments to vectors, and then its other values too. Constants may lie outside the
/// body.
void applyToVectors(mlir::OpBuilder &b, mlir::Location loc, mlir::Block &body,
                    mlir::IRMapping &wide, mlir::Operation *except = nullptr);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_VECTORBODY_H
