// The closed form of a mixture's last matrices, of all experts together. Rows are in the dual form:
// there is a row for each token. An expert sees some of them, and shared experts all.
#include "Regression.h"
#include "ctxc/Numerics/Dense.h"

using namespace ctxc;

namespace {

/// The rows that go through one matrix.
struct RowsOfMatrix {
  std::vector<int> places; ///< among all rows
  FloatMatrix data;        ///< √w g h
  Matrix gram;             ///< of `data`

  void addGram(const ParallelFor &threads) {
    gram.resize(data.rows(), data.rows());
    multiplySymmetric(data.data(), data.data(), data.rows(), data.cols(), gram.data(), threads);
  }
};

RowsOfMatrix rowsOf(const ExpertRows &rows, int expert, const ParallelFor &threads) {
  const int64_t chosen = rows.gates.cols(), inputs = rows.data.cols() / chosen;
  RowsOfMatrix own;
  std::vector<int64_t> slots;
  for (auto [slot, each] : llvm::enumerate(rows.selected))
    if (each == expert) {
      own.places.push_back(slot / chosen);
      slots.push_back(slot % chosen);
    }
  own.data.resize(own.places.size(), inputs);
  for (auto [i, row, slot] : llvm::enumerate(own.places, slots))
    own.data.row(i) = float(std::sqrt(rows.weights[row])) * rows.gates(row, slot) *
                      rows.data.row(row).segment(slot * inputs, inputs);
  own.addGram(threads);
  return own;
}

RowsOfMatrix rowsOfShared(const ExpertRows &rows, const ParallelFor &threads) {
  RowsOfMatrix own;
  llvm::append_range(own.places, llvm::seq<int>(0, rows.shared.rows()));
  own.data = rows.weights.cwiseSqrt().cast<float>().asDiagonal() * rows.shared;
  own.addGram(threads);
  return own;
}

/// The matrix's part of the change, solution · data, of low rank.
SiteFit truncate(const RowsOfMatrix &own, const Matrix &solution, double lambda, int64_t rank,
                 const ParallelFor &threads) {
  const int64_t outputs = solution.rows(), inputs = own.data.cols();
  Matrix part = solution(Eigen::all, own.places);
  auto changeTimes = [&](const Matrix &combined) {
    Matrix product(combined.rows(), inputs);
    multiplyByFloats(combined.data(), combined.rows(), own.data.data(), inputs, own.data.rows(),
                     product.data(), threads);
    return product;
  };
  if (rank == 0 || rank >= std::min(outputs, inputs))
    return {Matrix::Identity(outputs, outputs), changeTimes(part), {}};
  // ΔW (S + λI) ΔWᵀ, with S of the expert's own rows
  Matrix products = part * own.gram;
  Matrix square = products * products.transpose() + lambda * products * part.transpose();
  Matrix vectors = leadingVectors(square, rank, threads);
  return {vectors, changeTimes(vectors.transpose() * part), {}};
}

} // namespace

llvm::Expected<std::vector<SiteFit>> ctxc::fitExperts(const ExpertRows &rows, int64_t experts,
                                                      const FitOptions &options,
                                                      const ParallelFor &threads) {
  const int64_t count = rows.data.rows(), chosen = rows.gates.cols();
  std::vector<RowsOfMatrix> all;
  for (int64_t expert = 0; expert < experts; ++expert)
    all.push_back(rowsOf(rows, expert, threads));
  if (rows.shared.size() > 0)
    all.push_back(rowsOfShared(rows, threads));
  Matrix gram = Matrix::Zero(count, count);
  for (const RowsOfMatrix &own : all)
    gram(own.places, own.places) += own.gram;
  const std::vector<int64_t> others = withoutSinks(count, rows.sinks);
  auto lambda = penaltyOf(Matrix(gram(others, others)), options.lambda);
  if (!lambda)
    return lambda.takeError();
  if (llvm::Error error = factorWith(gram, *lambda, threads))
    return std::move(error);
  Matrix solution =
      rows.weights.cwiseSqrt().asDiagonal() * (rows.target - rows.product).cast<double>();
  solution.transposeInPlace();
  solveCholesky(gram.data(), count, solution.data(), solution.rows(), threads);
  const int64_t ofExpert = (options.rank * chosen + experts - 1) / experts;
  std::vector<SiteFit> fits;
  for (auto [i, own] : llvm::enumerate(all)) {
    const int64_t rank = int64_t(i) < experts ? ofExpert : options.rank;
    fits.push_back(own.places.empty() ? SiteFit()
                                      : truncate(own, solution, *lambda, rank, threads));
  }
  return fits;
}
