#include "JointFit.h"

using namespace ctxc;

/// The row before `row` whose direction is the nearest to it.
static int64_t nearest(const FloatMatrix &data, int64_t row) {
  int64_t found = 0;
  double most = -1;
  for (int64_t other = 0; other < row; ++other) {
    double cosine = data.row(row).cast<double>().dot(data.row(other).cast<double>()) /
                    std::max<double>(data.row(other).cast<double>().norm(), 1e-300);
    if (std::abs(cosine) > most) {
      most = std::abs(cosine);
      found = other;
    }
  }
  return found;
}

JointFit ctxc::fitJointly(const JointRows &rows) {
  // Data and products are known to float32: a smaller distance from the span of other rows says
  // nothing.
  constexpr double least = 1e-5, rounding = 1e-4;
  const int64_t count = rows.data.rows();
  using Columns = Eigen::MatrixXd;
  const Eigen::HouseholderQR<Columns> qr(Columns(rows.data.transpose().cast<double>()));
  const Columns r = qr.matrixQR().topRows(count).triangularView<Eigen::Upper>();
  Columns left = Columns::Zero(rows.missing.cols(), count);
  JointFit fit;
  std::vector<int64_t> used;
  for (int64_t j = 0; j < count; ++j) {
    // What the ranks before leave of it.
    Vector rest = rows.missing.row(j).transpose() - left.leftCols(j) * r.col(j).head(j);
    const double length = r.col(j).norm();
    const double distance = length > 0 ? std::abs(r(j, j)) / length : 0;
    const bool isServed = rest.norm() <= rounding * rows.scale;
    if (distance < least && !isServed) {
      fit.conflict = {nearest(rows.data, j), j};
      return fit;
    }
    if (distance >= least)
      fit.independence = std::min(fit.independence, distance);
    if (distance < least || rest.isZero(0))
      continue;
    left.col(j) = rest / r(j, j);
    used.push_back(j);
  }
  fit.left.resize(left.rows(), used.size());
  fit.right.resize(used.size(), rows.data.cols());
  const Columns q = qr.householderQ() * Columns::Identity(rows.data.cols(), count);
  for (auto [i, j] : llvm::enumerate(used)) {
    fit.left.col(i) = left.col(j);
    fit.right.row(i) = q.col(j).transpose();
  }
  return fit;
}

std::vector<double> ctxc::spectrumOf(const JointFit &fit) {
  if (fit.left.cols() == 0)
    return {};
  const Eigen::MatrixXd gram = fit.left.transpose() * fit.left;
  Vector squares = Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(gram, Eigen::EigenvaluesOnly)
                       .eigenvalues()
                       .cwiseMax(0);
  std::vector<double> values(squares.size());
  for (int64_t i = 0; i < squares.size(); ++i)
    values[i] = std::sqrt(squares[squares.size() - 1 - i]);
  return values;
}
