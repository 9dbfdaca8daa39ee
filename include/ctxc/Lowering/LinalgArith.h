//===- LinalgArith.h - arithmetic for the lowerings of ops ----------------===//
//
// Short names for float32 arithmetic inside the bodies of linalg ops, and helpers that several ops
// share, for implementations of LinalgLoweringOpInterface.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LOWERING_LINALGARITH_H
#define CTXC_LOWERING_LINALGARITH_H

#include "ctxc/Lowering/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace ctxc {

template <typename Model, typename Op>
using Lowering = LinalgLoweringOpInterface::ExternalModel<Model, Op>;

/// Allows sums to be reassociated: each kernel then fixes one order.
constexpr auto kFast = mlir::arith::FastMathFlags::reassoc | mlir::arith::FastMathFlags::contract;

inline mlir::RankedTensorType ranked(mlir::Value v) {
  return mlir::cast<mlir::RankedTensorType>(v.getType());
}
inline mlir::Value constant(mlir::OpBuilder &b, mlir::Location loc, double x) {
  return mlir::arith::ConstantOp::create(b, loc, b.getF32FloatAttr(float(x)));
}
inline mlir::Value add(mlir::OpBuilder &b, mlir::Location l, mlir::Value x, mlir::Value y) {
  return mlir::arith::AddFOp::create(b, l, x, y);
}
inline mlir::Value sub(mlir::OpBuilder &b, mlir::Location l, mlir::Value x, mlir::Value y) {
  return mlir::arith::SubFOp::create(b, l, x, y);
}
inline mlir::Value mul(mlir::OpBuilder &b, mlir::Location l, mlir::Value x, mlir::Value y) {
  return mlir::arith::MulFOp::create(b, l, x, y);
}
inline mlir::Value div(mlir::OpBuilder &b, mlir::Location l, mlir::Value x, mlir::Value y) {
  return mlir::arith::DivFOp::create(b, l, x, y);
}

/// cap · tanh(x / cap).
mlir::Value softcap(mlir::OpBuilder &b, mlir::Location l, mlir::Value x, double cap);

/// softmax along the last dimension of a tensor.
mlir::Value softmax(KernelEmitter &e, mlir::Value x);

/// The entries [from, from + size) of dimension `dim`, or every `stride`-th of them.
mlir::Value slice(KernelEmitter &e, mlir::Value x, int64_t dim, int64_t from, int64_t size,
                  int64_t stride);
/// `into` with `part` written to these entries.
mlir::Value insert(KernelEmitter &e, mlir::Value part, mlir::Value into, int64_t dim, int64_t from,
                   int64_t stride);

} // namespace ctxc

#endif // CTXC_LOWERING_LINALGARITH_H
