// How the ops' meanings are attached: each file of ops overloads `evaluateOp` and
// attaches its own.
#ifndef CTXC_LIB_REFERENCE_MODELS_H
#define CTXC_LIB_REFERENCE_MODELS_H

#include "ctxc/Reference/Evaluation.h"

namespace ctxc::reference {

void attachTokenOps(mlir::MLIRContext &context);
void attachMatrixOps(mlir::MLIRContext &context);
void attachMixtureOps(mlir::MLIRContext &context);
void attachContextualOps(mlir::MLIRContext &context);
void attachPatchOps(mlir::MLIRContext &context);

/// Makes the overload `evaluateOp(OpT, Evaluation &)` the op's meaning. The
/// overload is found where attach is called, so it must be declared before.
template <typename OpT> struct Model : ReferenceOpInterface::ExternalModel<Model<OpT>, OpT> {
  llvm::Error evaluate(mlir::Operation *op, Evaluation &evaluation) const {
    return evaluateOp(mlir::cast<OpT>(op), evaluation);
  }
};

template <typename... Ops> void attach(mlir::MLIRContext &context) {
  (Ops::template attachInterface<Model<Ops>>(context), ...);
}

/// The same numbers with a row for each vector along the value's last
/// dimension: (S × … × d) as (S … × d).
inline Eigen::Map<const Matrix> vectors(const Matrix &rows, mlir::Value value) {
  llvm::ArrayRef<int64_t> shape = mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
  int64_t count = rows.rows();
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    count *= shape[i];
  return {rows.data(), count, shape.empty() ? 1 : shape.back()};
}

inline llvm::MutableArrayRef<double> all(Matrix &m) {
  return {m.data(), static_cast<size_t>(m.size())};
}

} // namespace ctxc::reference

#endif // CTXC_LIB_REFERENCE_MODELS_H
