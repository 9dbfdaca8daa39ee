// The products with stored matrices, shared by the ops of xf and those of patch.
#ifndef CTXC_LIB_REFERENCE_MATRIXOPS_H
#define CTXC_LIB_REFERENCE_MATRIXOPS_H

#include "ctxc/Reference/Evaluation.h"

namespace ctxc::reference {

/// (n × in) times the stored matrix, (out, in), or (in, out) where `transposed`: (n × out).
Matrix multiply(const StoredTensor &w, const Eigen::Ref<const Matrix> &x, bool transposed);

/// `y = W x` for each vector of `data` along its last dimension; `weight` is
/// (out, in), or (in, out) where `transposed`. Gives (S × … out).
Matrix linear(Evaluation &e, mlir::Value weight, mlir::Value data, bool transposed);

struct ExpertOperands {
  mlir::Value bank, selected, data;
  bool transposed;
};
/// Sets `result` to `y_j = W_{sel_j} x_j` for each token, as xf.expert_linear has it. An expert
/// that is none of the bank's is an error at `op`.
llvm::Error expertLinear(mlir::Operation *op, Evaluation &e, const ExpertOperands &operands,
                         mlir::Value result);

/// Whether a parameter is multiplied with vectors that are rounded to 8 bits (kernel.integer).
bool roundsVectors(mlir::Value weight);
/// Each row as ctxc_round_to_bytes has it (ctxc/Numerics/ByteVectors.h).
Matrix roundedToBytes(const Eigen::Ref<const Matrix> &x);

} // namespace ctxc::reference

#endif // CTXC_LIB_REFERENCE_MATRIXOPS_H
