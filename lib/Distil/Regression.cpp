#include "Regression.h"
#include "ctxc/Numerics/Dense.h"
#include "ctxc/Support/Error.h"
#include <algorithm>

using namespace ctxc;

MatrixChange ctxc::changeOf(const Matrix &left, const Matrix &right, const SplitMatrix &matrix,
                            const std::string &name) {
  auto numbersOf = [](const FloatMatrix &all) {
    return std::vector<float>(all.data(), all.data() + all.size());
  };
  FloatMatrix first = (matrix.transposed ? Matrix(right.transpose()) : left).cast<float>();
  FloatMatrix second = (matrix.transposed ? Matrix(left.transpose()) : right).cast<float>();
  return {name,
          first.rows(),
          second.cols(),
          first.cols(),
          numbersOf(first),
          numbersOf(second),
          matrix.transposed};
}

/// A relative pivot below this says that the matrix has no inverse, as data in float32 tell it.
constexpr double leastPivot = 1e-12;

/// With a weaker penalty than this, the dual of more rows than inputs is near to having no inverse.
constexpr double leastDualStrength = 1e-6;

static void multiplyInto(const FloatMatrix &a, const FloatMatrix &b, Matrix &c,
                         const ParallelFor &threads) {
  multiplyTransposed(a.data(), a.rows(), b.data(), b.rows(), a.cols(), c.data(), threads);
}
static void multiplyInto(const Matrix &a, const Matrix &b, Matrix &c, const ParallelFor &threads) {
  multiplyTransposed(a.data(), a.rows(), b.data(), b.rows(), a.cols(), c.data(), threads);
}

/// The matrix of columns × rows numbers number(row, column), by blocks that stay in the cache.
template <typename Number>
static Matrix transposed(int64_t rows, int64_t columns, const ParallelFor &threads, Number number) {
  constexpr int64_t size = 16;
  Matrix result(columns, rows);
  threads((columns + size - 1) / size, [&](int64_t begin, int64_t end) {
    for (int64_t from = 0; from < rows; from += size)
      for (int64_t column = begin * size; column < std::min(end * size, columns); ++column)
        for (int64_t row = from; row < std::min(from + size, rows); ++row)
          result(column, row) = number(row, column);
  });
  return result;
}

/// a bᵀ.
template <typename Rows> Matrix Ridge::multiply(const Rows &a, const Rows &b) const {
  Matrix product(a.rows(), b.rows());
  multiplyInto(a, b, product, *threads);
  return product;
}

std::vector<int64_t> ctxc::withoutSinks(int64_t count, llvm::ArrayRef<int64_t> sinks) {
  std::vector<int64_t> others;
  for (int64_t row = 0; row < count; ++row)
    if (int64_t(sinks.size()) == count || !llvm::is_contained(sinks, row))
      others.push_back(row);
  return others;
}

llvm::Expected<double> ctxc::penaltyOf(const Matrix &gram, double lambda0) {
  const double trace = gram.trace();
  if (!std::isfinite(trace) || trace <= 0)
    return makeError(std::isfinite(trace)
                         ? "what the matrix reads is zero in every row; there is nothing to fit"
                         : "what the matrix reads is not finite");
  return lambda0 * gram.squaredNorm() / trace;
}

llvm::Error ctxc::factorWith(Matrix &gram, double lambda, const ParallelFor &threads) {
  gram.diagonal().array() += lambda;
  if (factorCholesky(gram.data(), gram.rows(), threads)) {
    Eigen::ArrayXd pivots = gram.diagonal().array().square();
    if (pivots.minCoeff() > leastPivot * pivots.maxCoeff())
      return llvm::Error::success();
  }
  return makeError("the rows of the text depend on each other, so that the fit has no one answer; "
                   "expected more regularisation, or other text");
}

/// Σ h hᵀ of some rows.
static Matrix gramOfColumns(const FloatMatrix &rows, llvm::ArrayRef<int64_t> some,
                            const ParallelFor &threads) {
  const FloatMatrix transposed = rows(std::vector<int64_t>(some), Eigen::all).transpose();
  Matrix gram(rows.cols(), rows.cols());
  multiplySymmetric(transposed.data(), transposed.data(), transposed.rows(), transposed.cols(),
                    gram.data(), threads);
  return gram;
}

llvm::Expected<Ridge> Ridge::make(const FloatMatrix &rows, const Vector &weights,
                                  llvm::ArrayRef<int64_t> sinks, double lambda0,
                                  const ParallelFor &threads) {
  Ridge ridge(threads);
  // With about as many rows as inputs, the dual needs fewer products; without a penalty it would
  // have no inverse.
  const bool isRegular = lambda0 >= leastDualStrength;
  ridge.isDual = rows.rows() < (isRegular ? rows.cols() + rows.cols() / 4 : rows.cols());
  ridge.roots = weights.cwiseSqrt();
  ridge.data = ridge.roots.cast<float>().asDiagonal() * rows;
  const std::vector<int64_t> others = withoutSinks(rows.rows(), sinks);
  const bool hasSinks = int64_t(others.size()) < rows.rows();
  if (ridge.isDual) {
    ridge.factor.resize(rows.rows(), rows.rows());
    multiplySymmetric(ridge.data.data(), ridge.data.data(), rows.rows(), rows.cols(),
                      ridge.factor.data(), threads);
  } else {
    ridge.factor = gramOfColumns(ridge.data, others, threads);
  }
  auto lambda = penaltyOf(
      ridge.isDual && hasSinks ? Matrix(ridge.factor(others, others)) : ridge.factor, lambda0);
  if (!lambda)
    return lambda.takeError();
  ridge.lambda = *lambda;
  if (!ridge.isDual && hasSinks)
    ridge.factor += gramOfColumns(ridge.data, sinks, threads);
  if (llvm::Error error = factorWith(ridge.factor, ridge.lambda, threads))
    return std::move(error);
  return ridge;
}

void Ridge::solve(const Matrix &rows) {
  targets = transposed(rows.rows(), rows.cols(), *threads,
                       [&](int64_t i, int64_t j) { return roots[i] * rows(i, j); });
  if (!isDual) {
    FloatMatrix inputs = data.transpose();
    moments = multiply(FloatMatrix(targets.cast<float>()), inputs);
  }
  solution = isDual ? targets : moments;
  solveCholesky(factor.data(), factor.rows(), solution.data(), solution.rows(), *threads);
}

Matrix Ridge::predictions() const {
  const Vector inverse = roots.cwiseInverse();
  if (isDual) // solution (gram + λI) = targets
    return transposed(targets.rows(), targets.cols(), *threads, [&](int64_t i, int64_t j) {
      return inverse[j] * (targets(i, j) - lambda * solution(i, j));
    });
  Matrix weighted = multiply(FloatMatrix(solution.cast<float>()), data);
  return transposed(weighted.rows(), weighted.cols(), *threads,
                    [&](int64_t i, int64_t j) { return inverse[j] * weighted(i, j); });
}

/// By subspace iteration from a fixed start.
Matrix ctxc::leadingVectors(const Matrix &matrix, int64_t count, const ParallelFor &threads) {
  constexpr int64_t spare = 8, rounds = 6; // each of two products
  const int64_t size = matrix.rows(), columns = std::min(size, count + spare);
  using Columns = Eigen::MatrixXd; // their transpose is row-major
  Columns basis(size, columns);
  uint64_t state = 0x9e3779b97f4a7c15;
  for (double &x : basis.reshaped()) {
    state = state * 6364136223846793005 + 1442695040888963407;
    x = double(int64_t(state)) / 0x1p63;
  }
  auto apply = [&](const Columns &vectors) -> Columns {
    Matrix result(size, columns);
    multiplyTransposed(matrix.data(), size, vectors.data(), columns, size, result.data(), threads);
    return result;
  };
  auto orthonormal = [&](const Columns &vectors) -> Columns {
    Eigen::HouseholderQR<Columns> qr(vectors);
    return qr.householderQ() * Columns::Identity(size, columns);
  };
  basis = orthonormal(basis);
  for (int64_t round = 0; round < rounds; ++round)
    basis = orthonormal(apply(apply(basis)));
  Columns small = basis.transpose() * apply(basis);
  Columns symmetric = (small + small.transpose()) / 2;
  Eigen::SelfAdjointEigenSolver<Columns> eigen(symmetric);
  return basis * eigen.eigenvectors().rightCols(count).rowwise().reverse();
}

SiteFit Ridge::truncate(const Vector &metric, int64_t rank) const {
  const int64_t outputs = targets.rows(), inputs = data.cols();
  auto changeTimes = [&](const Matrix &rows) -> Matrix { // rows ΔW
    Matrix combined = rows * solution;
    if (!isDual)
      return combined;
    Matrix product(rows.rows(), inputs);
    multiplyByFloats(combined.data(), combined.rows(), data.data(), inputs, data.rows(),
                     product.data(), *threads);
    return product;
  };
  SiteFit fit;
  if (rank == 0 || rank >= std::min(outputs, inputs)) {
    fit.left = Matrix::Identity(outputs, outputs);
    fit.right = isDual ? changeTimes(fit.left) : solution;
    return fit;
  }
  // ΔW (S + λI) ΔWᵀ
  Matrix square(outputs, outputs);
  auto multiplyInto = [&](const Matrix &a, const Matrix &b) {
    multiplySymmetric(a.data(), b.data(), outputs, a.cols(), square.data(), *threads);
  };
  if (isDual)
    multiplyInto(targets, targets - lambda * solution);
  else
    multiplyInto(moments, solution);
  square = metric.asDiagonal() * square * metric.asDiagonal();
  Matrix vectors = leadingVectors(square, rank, *threads);
  fit.left = metric.cwiseInverse().asDiagonal() * vectors;
  fit.right = changeTimes((metric.asDiagonal() * vectors).transpose());
  return fit;
}

double ctxc::ridgeStrength(const FitOptions &options, int64_t tokens) {
  constexpr double few = 550; // and fewer: the strength that is given
  return options.lambda * std::min(1.0, few / tokens);
}

llvm::Expected<SiteFit> ctxc::fitProduct(const SiteRows &rows, const FitOptions &options,
                                         const ParallelFor &threads) {
  auto ridge = Ridge::make(rows.data, rows.weights, rows.sinks, options.lambda, threads);
  if (!ridge)
    return ridge.takeError();
  ridge->solve((rows.target - rows.product).cast<double>());
  return ridge->truncate(Vector::Ones(rows.target.cols()), options.rank);
}

static double median(const Vector &values) {
  std::vector<double> sorted(values.data(), values.data() + values.size());
  auto middle = sorted.begin() + sorted.size() / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

/// body(t) for each row.
template <typename Body> static void overRows(int64_t rows, const ParallelFor &threads, Body body) {
  threads(rows, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      body(t);
  });
}

/// √(mean(x²) + ε) of each row.
static Vector lengths(const Matrix &rows, double eps, const ParallelFor &threads) {
  Vector all(rows.rows());
  overRows(rows.rows(), threads,
           [&](int64_t t) { all[t] = std::sqrt(rows.row(t).squaredNorm() / rows.cols() + eps); });
  return all;
}

/// From the row d, of length `length`, a step on its sphere towards the target of m ⊙ d / length
/// that is not long.
static Eigen::RowVectorXd stepOnSphere(const Eigen::RowVectorXd &target,
                                       const Eigen::RowVectorXd &d, double length,
                                       const Eigen::RowVectorXd &m, const Eigen::RowVectorXd &gain,
                                       double trust) {
  Eigen::RowVectorXd n = d / length;
  Eigen::RowVectorXd step = (target - n.cwiseProduct(m)).cwiseProduct(gain);
  step -= step.cwiseProduct(n).mean() * n;
  const double size = 1 / std::sqrt(step.squaredNorm() / step.size() / (trust * trust) + 1);
  return length * (n + size * step);
}

/// What a residual of m ⊙ Norm is multiplied by; damped where m is small.
static Eigen::RowVectorXd gainOf(const Vector &m, double tau) {
  return m.array() / (m.array().square() + tau);
}

static double dampingOf(const Vector &m, const FitOptions &options) {
  const double typical = median(m.cwiseAbs());
  return options.tau * typical * typical;
}

Vector ctxc::nearestThroughNorm(const Vector &target, const Vector &from, const Vector &m,
                                double eps, const FitOptions &options) {
  constexpr int64_t rounds = 3;
  const Eigen::RowVectorXd gain = gainOf(m, dampingOf(m, options));
  Eigen::RowVectorXd d = from.transpose();
  for (int64_t round = 0; round < rounds; ++round)
    d = stepOnSphere(target.transpose(), d, std::sqrt(d.squaredNorm() / d.size() + eps),
                     m.transpose(), gain, options.trust);
  return d.transpose();
}

/// The scale with which the normed rows of `changed` come closest to the targets, and near m.
static Vector fitScale(const SiteRows &rows, const Matrix &changed, const Vector &m, double eps,
                       double strength, const ParallelFor &threads) {
  const Vector inverse = lengths(changed, eps, threads).cwiseInverse();
  const double hold = strength * rows.weights.sum();
  Vector above = hold * m, below = Vector::Constant(m.size(), hold);
  threads(m.size(), [&](int64_t begin, int64_t end) {
    for (int64_t t = 0; t < changed.rows(); ++t)
      for (int64_t j = begin; j < end; ++j) {
        const double fitted = changed(t, j) * inverse[t];
        above[j] += rows.weights[t] * rows.target(t, j) * fitted;
        below[j] += rows.weights[t] * fitted * fitted;
      }
  });
  return above.cwiseQuotient(below);
}

/// ΔW h of each row.
static Matrix productOf(const SiteFit &fit, const FloatMatrix &data, const ParallelFor &threads) {
  const FloatMatrix right = fit.right.cast<float>();
  Matrix inner(data.rows(), right.rows()), product(data.rows(), fit.left.rows());
  multiplyInto(data, right, inner, threads);
  multiplyInto(inner, fit.left, product, threads);
  return product;
}

llvm::Expected<SiteFit> ctxc::fitThroughNorm(const SiteRows &rows, const Vector &m, double eps,
                                             const FitOptions &options,
                                             const ParallelFor &threads) {
  const Matrix product = rows.product.cast<double>();
  Vector length = lengths(product, eps, threads);
  Vector weights = rows.weights.array() / length.array().square();
  weights /= weights.mean();
  auto ridge = Ridge::make(rows.data, weights, rows.sinks, options.lambda, threads);
  if (!ridge)
    return ridge.takeError();
  const double tau = dampingOf(m, options);
  const Vector metric = m.cwiseAbs().cwiseMax(1e-2 * median(m.cwiseAbs()));
  Vector scale = m;
  Matrix d = product;
  for (int64_t round = 0; round < options.rounds; ++round) {
    if (round > 0) {
      d = product + ridge->predictions();
      length = lengths(d, eps, threads);
      if (options.scales)
        scale = fitScale(rows, d, m, eps, options.lambdaScale, threads);
    }
    const Eigen::RowVectorXd gain = gainOf(scale, tau);
    overRows(d.rows(), threads, [&](int64_t t) {
      d.row(t) = stepOnSphere(rows.target.row(t).cast<double>(), d.row(t), length[t], scale, gain,
                              options.trust) -
                 product.row(t);
    });
    ridge->solve(d);
  }
  SiteFit fit = ridge->truncate(metric, options.rank);
  if (options.scales) {
    Matrix changed = productOf(fit, rows.data, threads);
    changed += product;
    fit.scale = fitScale(rows, changed, m, eps, options.lambdaScale, threads) - m;
  }
  return fit;
}
