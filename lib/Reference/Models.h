// How the ops' meanings are attached: each file of ops overloads `evaluateOp` and
// attaches its own.
#ifndef CTXC_LIB_REFERENCE_MODELS_H
#define CTXC_LIB_REFERENCE_MODELS_H

#include "ctxc/Reference/Evaluation.h"

namespace ctxc::reference {

void attachTokenOps(mlir::MLIRContext &context);
void attachMatrixOps(mlir::MLIRContext &context);
void attachContextualOps(mlir::MLIRContext &context);
void attachPatchOps(mlir::MLIRContext &context);

/// Makes the overload `evaluateOp(OpT, Evaluation &)` the op's meaning. The
/// overload is found where attach is called, so it must be declared before.
template <typename OpT>
struct Model : ReferenceOpInterface::ExternalModel<Model<OpT>, OpT> {
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
  int64_t d = mlir::cast<mlir::RankedTensorType>(value.getType()).getShape().back();
  return {rows.data(), d ? rows.size() / d : 0, d};
}

inline llvm::MutableArrayRef<double> all(Matrix &m) {
  return {m.data(), static_cast<size_t>(m.size())};
}

} // namespace ctxc::reference

#endif // CTXC_LIB_REFERENCE_MODELS_H
