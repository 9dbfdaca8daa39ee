#include "Variable.h"
#include <Eigen/Eigenvalues>
#include <Eigen/QR>

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
  // small = U Σ Vᵀ. With U alone the product is the same for any division of Σ.
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(small * small.transpose());
  const Eigen::MatrixXd &u = solver.eigenvectors();
  Eigen::VectorXd roots = solver.eigenvalues().cwiseMax(0).array().pow(0.25);
  const double least = 1e-6 * roots.maxCoeff();
  roots = least > 0 ? roots.cwiseMax(least).eval() : Eigen::VectorXd::Ones(roots.size());
  left = (a * u * roots.asDiagonal()).cast<float>();
  right =
      (roots.cwiseInverse().asDiagonal() * (u.transpose() * small) * b.transpose()).cast<float>();
}
