#include "Regression.h"
#include "ctxc/Numerics/Dense.h"
#include "ctxc/Support/Error.h"
#include <algorithm>

using namespace ctxc;

/// A relative pivot below this says that the matrix has no inverse, as data in float32 tell it.
constexpr double leastPivot = 1e-12;

static void multiplyInto(const FloatMatrix &a, const FloatMatrix &b, Matrix &c,
                         const ParallelFor &threads) {
  multiplyTransposed(a.data(), a.rows(), b.data(), b.rows(), a.cols(), c.data(), threads);
}
static void multiplyInto(const Matrix &a, const Matrix &b, Matrix &c, const ParallelFor &threads) {
  multiplyTransposed(a.data(), a.rows(), b.data(), b.rows(), a.cols(), c.data(), threads);
}

/// a bᵀ.
template <typename Rows> Matrix Ridge::multiply(const Rows &a, const Rows &b) const {
  Matrix product(a.rows(), b.rows());
  multiplyInto(a, b, product, *threads);
  return product;
}

llvm::Expected<Ridge> Ridge::make(const FloatMatrix &rows, const Vector &weights, double lambda0,
                                  const ParallelFor &threads) {
  Ridge ridge(threads);
  ridge.isDual = rows.rows() < rows.cols();
  ridge.roots = weights.cwiseSqrt();
  ridge.data = ridge.roots.cast<float>().asDiagonal() * rows;
  FloatMatrix transposed;
  if (!ridge.isDual)
    transposed = ridge.data.transpose();
  const FloatMatrix &either = ridge.isDual ? ridge.data : transposed;
  ridge.factor.resize(either.rows(), either.rows());
  multiplySymmetric(either.data(), either.data(), either.rows(), either.cols(), ridge.factor.data(),
                    threads);
  const double trace = ridge.factor.trace();
  if (!std::isfinite(trace) || trace <= 0)
    return makeError(std::isfinite(trace)
                         ? "what the matrix reads is zero in every row; there is nothing to fit"
                         : "what the matrix reads is not finite");
  ridge.lambda = lambda0 * ridge.factor.squaredNorm() / trace;
  ridge.factor.diagonal().array() += ridge.lambda;
  if (factorCholesky(ridge.factor.data(), ridge.factor.rows(), threads)) {
    Eigen::ArrayXd pivots = ridge.factor.diagonal().array().square();
    if (pivots.minCoeff() > leastPivot * pivots.maxCoeff())
      return ridge;
  }
  return makeError("the rows of the text depend on each other, so that the fit has no one answer; "
                   "expected more regularisation, or other text");
}

void Ridge::solve(const Matrix &rows) {
  targets = (roots.asDiagonal() * rows).transpose();
  if (!isDual) {
    FloatMatrix inputs = data.transpose();
    moments = multiply(FloatMatrix(targets.cast<float>()), inputs);
  }
  solution = isDual ? targets : moments;
  solveCholesky(factor.data(), factor.rows(), solution.data(), solution.rows(), *threads);
}

Matrix Ridge::predictions() const {
  // In the dual, solution (gram + λI) = targets.
  Matrix weighted = isDual ? Matrix(targets - lambda * solution)
                           : multiply(FloatMatrix(solution.cast<float>()), data);
  return roots.cwiseInverse().asDiagonal() * weighted.transpose();
}

/// The leading eigenvectors, as columns, of a symmetric matrix without negative eigenvalues: by
/// subspace iteration from a fixed start, so that the answer is always the same.
static Matrix leadingVectors(const Matrix &matrix, int64_t count, const ParallelFor &threads) {
  constexpr int64_t spare = 8, rounds = 12;
  const int64_t size = matrix.rows(), columns = std::min(size, count + spare);
  Matrix basis(size, columns);
  uint64_t state = 0x9e3779b97f4a7c15;
  for (double &x : basis.reshaped()) {
    state = state * 6364136223846793005 + 1442695040888963407;
    x = double(int64_t(state)) / 0x1p63;
  }
  auto apply = [&](const Matrix &vectors) -> Matrix {
    Matrix rows = vectors.transpose(), result(size, columns);
    multiplyInto(matrix, rows, result, threads);
    return result;
  };
  auto orthonormal = [&](const Matrix &vectors) -> Matrix {
    Eigen::HouseholderQR<Matrix> qr(vectors);
    return qr.householderQ() * Matrix::Identity(size, columns);
  };
  basis = orthonormal(basis);
  for (int64_t round = 0; round < rounds; ++round)
    basis = orthonormal(apply(basis));
  Matrix small = basis.transpose() * apply(basis);
  Matrix symmetric = (small + small.transpose()) / 2;
  Eigen::SelfAdjointEigenSolver<Matrix> eigen(symmetric);
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
  auto ridge = Ridge::make(rows.data, rows.weights, options.lambda, threads);
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

/// √(mean(x²) + ε) of each row.
static Vector lengths(const Matrix &rows, double eps) {
  return (rows.array().square().rowwise().mean() + eps).sqrt();
}

/// A step of n towards the target of m ⊙ n that stays on the sphere, and is not long.
static Matrix boundedStep(const Matrix &n, const Matrix &error, const Vector &m, double tau,
                          double trust) {
  Vector gain = m.array() / (m.array().square() + tau);
  Matrix step = error * gain.asDiagonal();
  Vector radial = step.cwiseProduct(n).rowwise().mean();
  step -= radial.asDiagonal() * n;
  Vector size = (step.array().square().rowwise().mean() / (trust * trust) + 1).rsqrt();
  return size.asDiagonal() * step;
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
  const Matrix product = rows.product.cast<double>(), target = rows.target.cast<double>();
  Vector weights = rows.weights.array() / lengths(product, eps).array().square();
  weights /= weights.mean();
  auto ridge = Ridge::make(rows.data, weights, options.lambda, threads);
  if (!ridge)
    return ridge.takeError();
  const double typical = median(m.cwiseAbs());
  const Vector metric = m.cwiseAbs().cwiseMax(1e-2 * typical);
  SiteFit fit;
  Vector scale = m;
  Matrix d = product;
  for (int64_t round = 0; round < options.rounds; ++round) {
    Vector length = lengths(d, eps);
    Matrix n = length.cwiseInverse().asDiagonal() * d;
    Matrix step = boundedStep(n, target - n * scale.asDiagonal(), scale,
                              options.tau * typical * typical, options.trust);
    ridge->solve(length.asDiagonal() * (n + step) - product);
    fit = ridge->truncate(metric, options.rank);
    if (round + 1 < options.rounds)
      d = product + ridge->predictions();
    if (!options.scales)
      continue;
    Matrix changed = product + productOf(fit, rows.data, threads);
    Matrix fitted = lengths(changed, eps).cwiseInverse().asDiagonal() * changed;
    double hold = options.lambdaScale * rows.weights.sum();
    Vector above = rows.weights.transpose() * target.cwiseProduct(fitted);
    Vector below = rows.weights.transpose() * fitted.cwiseAbs2();
    scale = (above + hold * m).array() / (below.array() + hold);
  }
  if (options.scales)
    fit.scale = scale - m;
  return fit;
}
