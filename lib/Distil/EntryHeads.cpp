#include "EntryHeads.h"
#include "EntryValues.h"
#include "Products.h"

using namespace ctxc;

namespace {

class Together {
public:
  Together(std::vector<EntryFit> &heads, MatrixBehind matrix, const ParallelFor &threads);
  void run();

private:
  /// Some keys, and the best values for them.
  struct Trial {
    std::vector<EntryFit::State> states;
    std::vector<Matrix> changes; ///< of the states' values
    FloatMatrix missing;
    double loss;
  };

  static constexpr int rounds = 4;

  FloatMatrix written(const std::vector<FloatMatrix> &results) const;
  Trial solved(std::vector<EntryFit::State> states, FloatMatrix missing) const;
  std::vector<FloatMatrix> steps() const;
  Trial stepped(const std::vector<FloatMatrix> &steps, float length) const;
  void take(Trial trial);

  std::vector<EntryFit> &heads;
  MatrixBehind matrix;
  const ParallelFor &threads;
  int64_t tokens, repeat, width;    // N, heads of queries for one of keys, e
  FloatMatrix columns;              ///< the matrix, transposed
  std::vector<FloatMatrix> metrics; ///< of each head of queries: e × e
  double loss = 0;
};

Together::Together(std::vector<EntryFit> &heads, MatrixBehind given, const ParallelFor &threads)
    : heads(heads), matrix(std::move(given)), threads(threads), tokens(matrix.missing.rows()),
      repeat(heads.front().now().weights.cols() / tokens),
      width(matrix.output.cols() / (repeat * heads.size())), columns(transposedOf(matrix.output)) {
  for (int64_t at = 0; at < columns.rows(); at += width)
    metrics.push_back(gramOf(columns.middleRows(at, width), threads).cast<float>());
  matrix.tokenSizes =
      matrix.tokenSizes.size() ? matrix.tokenSizes : Eigen::RowVectorXf::Ones(tokens);
}

/// What the matrix makes of results of all heads of keys, e × (N for each head of queries).
FloatMatrix Together::written(const std::vector<FloatMatrix> &results) const {
  FloatMatrix all(tokens, columns.rows());
  for (auto [group, result] : llvm::enumerate(results))
    for (int64_t i = 0; i < repeat; ++i)
      all.middleCols((group * repeat + i) * width, width) =
          (result.middleCols(i * tokens, tokens) * matrix.tokenSizes.asDiagonal()).transpose();
  return product(all, columns, threads);
}

Together::Trial Together::solved(std::vector<EntryFit::State> states, FloatMatrix missing) const {
  ReadEntries read{{}, matrix.output, std::move(missing)};
  for (const EntryFit::State &state : states) {
    FloatMatrix &weights = read.weights.emplace_back(state.weights);
    for (int64_t at = 0; at < weights.cols(); at += tokens)
      weights.middleCols(at, tokens) *= matrix.tokenSizes.asDiagonal();
  }
  std::vector<Matrix> changes = fitValues(read, threads);
  std::vector<FloatMatrix> results;
  for (auto [state, change] : llvm::zip(states, changes))
    results.push_back(product(transposedOf(change.cast<float>()), state.weights, threads));
  read.missing -= written(results);
  const double loss = read.missing.cast<double>().squaredNorm();
  return {std::move(states), std::move(changes), std::move(read.missing), loss};
}

std::vector<FloatMatrix> Together::steps() const {
  FloatMatrix pulls = transposedOf(product(matrix.missing, matrix.output, threads));
  pulls *= matrix.tokenSizes.cwiseInverse().asDiagonal();
  std::vector<FloatMatrix> made;
  for (auto [group, head] : llvm::enumerate(heads)) {
    FloatMatrix own(width, repeat * tokens);
    for (int64_t i = 0; i < repeat; ++i)
      own.middleCols(i * tokens, tokens) = pulls.middleRows((group * repeat + i) * width, width);
    made.push_back(head.stepOfKeys(own, llvm::ArrayRef(metrics).slice(group * repeat, repeat)));
  }
  return made;
}

Together::Trial Together::stepped(const std::vector<FloatMatrix> &steps, float length) const {
  std::vector<EntryFit::State> states;
  std::vector<FloatMatrix> results;
  for (auto [head, step] : llvm::zip(heads, steps)) {
    states.push_back(head.moved(length * step));
    results.push_back(states.back().error - head.now().error);
  }
  return solved(std::move(states), matrix.missing - written(results));
}

void Together::take(Trial trial) {
  for (auto [head, state, change] : llvm::zip(heads, trial.states, trial.changes))
    head.take(std::move(state), change);
  matrix.missing = std::move(trial.missing);
  loss = trial.loss;
}

/// Gauss-Newton rounds over the keys of all heads, each time with the best values.
void Together::run() {
  std::vector<EntryFit::State> states;
  for (const EntryFit &head : heads)
    states.push_back(head.now());
  take(solved(std::move(states), matrix.missing));
  for (int round = 0; round < rounds; ++round) {
    const std::vector<FloatMatrix> all = steps();
    const double before = loss;
    for (float length : {1.f, 0.5f, 0.25f, 0.1f}) {
      Trial trial = stepped(all, length);
      if (trial.loss < before) {
        take(std::move(trial));
        break;
      }
    }
    if (loss > 0.998 * before)
      break;
  }
}

} // namespace

void ctxc::fitTogether(std::vector<EntryFit> &heads, MatrixBehind matrix,
                       const ParallelFor &threads) {
  Together(heads, std::move(matrix), threads).run();
}
