// How the ops' gradients are attached: each file of ops overloads `evaluateOp` and `pullBackOp`,
// and attaches its own.
#ifndef CTXC_LIB_GRADIENT_MODELS_H
#define CTXC_LIB_GRADIENT_MODELS_H

#include "ctxc/Gradient/Tape.h"

namespace ctxc::gradient {

void attachSources(mlir::MLIRContext &context);
void attachMatrixOps(mlir::MLIRContext &context);
void attachTokenOps(mlir::MLIRContext &context);
void attachShapeOps(mlir::MLIRContext &context);
void attachAttention(mlir::MLIRContext &context);

/// The overloads are found where attach is called, so they must be declared before.
template <typename OpT> struct Model : DifferentiableOpInterface::ExternalModel<Model<OpT>, OpT> {
  llvm::Error evaluate(mlir::Operation *op, Tape &tape) const {
    return evaluateOp(mlir::cast<OpT>(op), tape);
  }
  llvm::Error pullBack(mlir::Operation *op, Tape &tape) const {
    return pullBackOp(mlir::cast<OpT>(op), tape);
  }
};

template <typename... Ops> void attach(mlir::MLIRContext &context) {
  (Ops::template attachInterface<Model<Ops>>(context), ...);
}

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

/// The same numbers with a row for each vector along the value's last dimension.
inline Eigen::Map<const Rows> vectors(const Rows &rows, int64_t width) {
  return {rows.data(), rows.size() / width, width};
}
inline Eigen::Map<Rows> vectors(Rows &rows, int64_t width) {
  return {rows.data(), rows.size() / width, width};
}
/// How wide a value's last dimension is in `rows`, of which some entries may have been chosen.
inline int64_t lastWidth(const Rows &rows, mlir::Value value) {
  llvm::ArrayRef<int64_t> shape = shapeOf(value);
  return shape.size() < 2 ? rows.cols() : shape.back();
}

} // namespace ctxc::gradient

#endif // CTXC_LIB_GRADIENT_MODELS_H
