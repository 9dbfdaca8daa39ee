#include "JointFit.h"

using namespace ctxc;

JointFit::JointFit(const Matrix &left, const Matrix &right)
    : outputs(left.rows()), inputs(right.cols()), q(right.data(), right.data() + right.size()) {
  const Matrix rows = left.transpose();
  l.assign(rows.data(), rows.data() + rows.size());
}

Matrix JointFit::products(const FloatMatrix &data) const {
  return (data.cast<double>() * basis().transpose()) * written();
}

bool JointFit::grow(const Vector &data, const Vector &missing, double scale, double least) {
  constexpr double rounding = 1e-4, noise = 1e-6; // data and products are known to float32
  Vector own = basis() * data, rest = data - basis().transpose() * own;
  // Gram and Schmidt twice: what the first time's roundings leave of the span is gone.
  const Vector again = basis() * rest;
  rest -= basis().transpose() * again;
  own += again;
  const double length = data.norm(), distance = length > 0 ? rest.norm() / length : 0;
  rests.push_back(distance);
  const bool depends = distance < least;
  if (distance >= noise) {
    // Also of a row that it leaves: no later row may write in the part that is its own.
    const double height = rest.norm();
    const Vector direction = rest / height,
                 column = depends ? Vector(Vector::Zero(outputs)) : Vector(missing / height);
    q.insert(q.end(), direction.data(), direction.data() + inputs);
    l.insert(l.end(), column.data(), column.data() + outputs);
    own.conservativeResize(own.size() + 1);
    own[own.size() - 1] = height;
  }
  coefficients.push_back(std::move(own));
  if (!depends)
    independence = std::min(independence, distance);
  return !depends || missing.norm() <= rounding * scale;
}

JointFit::Nearest JointFit::nearestTo(size_t row) const {
  constexpr double same = 1e-5;
  const Vector &own = coefficients[row];
  Nearest found;
  double most = 0;
  for (size_t i = 0; i < row; ++i) {
    const Vector &other = coefficients[i];
    const int64_t common = std::min(other.size(), own.size());
    const double cosine = std::abs(other.head(common).dot(own.head(common))) /
                          std::max(other.norm() * own.norm(), 1e-300);
    if (cosine > most) {
      most = cosine;
      found = {i, cosine > 1 - same * same && rests[row] < same};
    }
  }
  return found;
}

double JointFit::norm() const { return written().norm(); }

std::vector<int64_t> JointFit::used(int64_t first) const {
  std::vector<int64_t> columns;
  for (int64_t j = first; j < rank(); ++j)
    if (!written().row(j).isZero(0))
      columns.push_back(j);
  return columns;
}

Matrix JointFit::left(int64_t first) const {
  const std::vector<int64_t> columns = used(first);
  Matrix some(outputs, columns.size());
  for (auto [i, j] : llvm::enumerate(columns))
    some.col(i) = written().row(j).transpose();
  return some;
}

Matrix JointFit::right(int64_t first) const {
  const std::vector<int64_t> columns = used(first);
  Matrix some(columns.size(), inputs);
  for (auto [i, j] : llvm::enumerate(columns))
    some.row(i) = basis().row(j);
  return some;
}

/// ΔW = L Qᵀ writes Y = C Lᵀ for rows C Qᵀ; of min ‖C Aᵀ − Y‖² + λ ‖A‖² the solution is
/// A = L S (S + λ)⁻¹ with S = CᵀC.
Matrix JointFit::ridgedLeft(double strength, llvm::function_ref<bool(size_t row)> counted) const {
  const std::vector<int64_t> columns = used();
  if (columns.empty())
    return left();
  Matrix gram = Matrix::Zero(rank(), rank()), own = gram;
  for (auto [row, some] : llvm::enumerate(coefficients)) {
    Vector all = Vector::Zero(rank());
    all.head(some.size()) = some;
    gram += all * all.transpose();
    if (counted(row))
      own += all * all.transpose();
  }
  const double lambda = strength * own.squaredNorm() / std::max(own.trace(), 1e-300);
  Matrix held = gram;
  held.diagonal().array() += lambda;
  const Matrix whole = Eigen::LLT<Eigen::MatrixXd>(held).solve(gram * written()).transpose();
  Matrix some(outputs, columns.size());
  for (auto [i, j] : llvm::enumerate(columns))
    some.col(i) = whole.col(j);
  return some;
}

/// The eigenvectors of LᵀL, as columns, by their descending eigenvalues: with ΔW = L Qᵀ = U Σ Vᵀ
/// they are Qᵀ V.
static Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> directionsOf(const Matrix &left) {
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(-(left.transpose() * left));
}

std::vector<double> JointFit::spectrum() const {
  const Matrix all = left();
  if (all.cols() == 0)
    return {};
  const Vector squares = -directionsOf(all).eigenvalues();
  std::vector<double> values;
  for (double square : squares)
    values.push_back(std::sqrt(std::max(square, 0.0)));
  return values;
}

std::vector<std::vector<double>> JointFit::shares() const {
  const Matrix all = left();
  const std::vector<int64_t> columns = used();
  std::vector<std::vector<double>> shares;
  if (columns.empty())
    return std::vector<std::vector<double>>(rows());
  const auto directions = directionsOf(all);
  const Vector squares = (-directions.eigenvalues()).cwiseMax(0);
  for (const Vector &row : coefficients) {
    Vector own = Vector::Zero(columns.size());
    for (auto [i, j] : llvm::enumerate(columns))
      if (j < row.size())
        own[i] = row[j];
    own = (directions.eigenvectors().transpose() * own).array().square() * squares.array();
    const double sum = own.sum();
    if (sum > 0)
      own /= sum;
    shares.emplace_back(own.data(), own.data() + own.size());
  }
  return shares;
}
