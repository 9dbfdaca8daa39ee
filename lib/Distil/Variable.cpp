#include "Variable.h"
#include <Eigen/QR>
#include <Eigen/SVD>

using namespace ctxc;

using Floats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The triangular factor of `columns`, which become orthonormal.
static Eigen::MatrixXd factor(Eigen::MatrixXd &columns) {
  const auto rank = columns.cols();
  Eigen::HouseholderQR<Eigen::MatrixXd> qr(columns);
  Eigen::MatrixXd upper = qr.matrixQR().topRows(rank).triangularView<Eigen::Upper>();
  columns = qr.householderQ() * Eigen::MatrixXd::Identity(columns.rows(), rank);
  return upper;
}

void ctxc::balance(MatrixChange &change) {
  if (change.rank > std::min(change.rows, change.columns))
    return;
  Eigen::Map<Floats> left(change.left.data(), change.rows, change.rank);
  Eigen::Map<Floats> right(change.right.data(), change.rank, change.columns);
  Eigen::MatrixXd a = left.cast<double>(), b = right.transpose().cast<double>();
  Eigen::MatrixXd small = factor(a) * factor(b).transpose();
  Eigen::BDCSVD<Eigen::MatrixXd> svd(small, Eigen::ComputeFullU | Eigen::ComputeFullV);
  Eigen::VectorXd roots = svd.singularValues().cwiseSqrt();
  left = (a * svd.matrixU() * roots.asDiagonal()).cast<float>();
  right = (b * svd.matrixV() * roots.asDiagonal()).transpose().cast<float>();
}
