#include "EntryHeads.h"
#include "EntryValues.h"
#include "Products.h"

using namespace ctxc;

namespace {

/// What is of tokens has a column for each.
class Together {
public:
  Together(std::vector<EntryFit> &heads, const MatrixBehind &matrix, const ParallelFor &threads);
  void run();

private:
  /// Some keys, and the best values for them.
  struct Trial {
    std::vector<EntryFit::State> states;
    std::vector<Matrix> changes; ///< of the states' values
    FloatMatrix missing;         ///< before these
    double loss;                 ///< behind them
  };

  static constexpr int rounds = 3;

  FloatMatrix stacked(llvm::ArrayRef<const FloatMatrix *> parts) const;
  FloatMatrix written(llvm::ArrayRef<FloatMatrix> results) const;
  Trial solved(std::vector<EntryFit::State> states, FloatMatrix missing) const;
  std::vector<FloatMatrix> steps() const;
  Trial stepped(llvm::ArrayRef<FloatMatrix> steps, float length) const;
  void take(Trial trial);

  std::vector<EntryFit> &heads;
  const FloatMatrix &output;
  const ParallelFor &threads;
  FloatMatrix missing;                 ///< D × N
  const Eigen::RowVectorXf tokenSizes; ///< N
  const int64_t tokens, repeat, width; // N, heads of queries for one of keys, e
  const FloatMatrix columns;           ///< the matrix, transposed
  const FloatMatrix metric;
  std::vector<FloatMatrix> metrics; ///< of each head of queries: e × e
  double loss = 0;
};

Together::Together(std::vector<EntryFit> &heads, const MatrixBehind &matrix,
                   const ParallelFor &threads)
    : heads(heads), output(matrix.output), threads(threads), missing(transposedOf(matrix.missing)),
      tokenSizes(matrix.tokenSizes), tokens(missing.cols()),
      repeat(heads.front().now().weights.cols() / tokens),
      width(output.cols() / (repeat * heads.size())), columns(transposedOf(output)),
      metric(gramOf(columns, threads).cast<float>()) {
  for (int64_t at = 0; at < columns.rows(); at += width)
    metrics.push_back(metric.block(at, at, width, width));
}

/// `parts` of the heads of keys, n × (N for each head of queries), as those of the heads of queries
/// one below the other, by how much each token counts.
FloatMatrix Together::stacked(llvm::ArrayRef<const FloatMatrix *> parts) const {
  const int64_t rows = parts.front()->rows();
  FloatMatrix all(int64_t(metrics.size()) * rows, tokens);
  threads(metrics.size(), [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head)
      all.middleRows(head * rows, rows) =
          parts[head / repeat]->middleCols(head % repeat * tokens, tokens) *
          tokenSizes.asDiagonal();
  });
  return all;
}

Together::Trial Together::solved(std::vector<EntryFit::State> states, FloatMatrix missing) const {
  auto weights = stacked(
      llvm::map_to_vector(states, [](const EntryFit::State &state) { return &state.weights; }));
  const ReadEntries read{
      weights, output, metric, missing, int64_t(metrics.size()), int64_t(heads.size())};
  ValuesFit values = fitValues(read, threads);
  const double loss = missing.cast<double>().squaredNorm() - values.gain;
  return {std::move(states), std::move(values.changes), std::move(missing), loss};
}

std::vector<FloatMatrix> Together::steps() const {
  FloatMatrix pulls = product(columns, missing, threads);
  pulls *= tokenSizes.cwiseInverse().asDiagonal();
  std::vector<FloatMatrix> made;
  for (auto [group, head] : llvm::enumerate(heads)) {
    FloatMatrix own(width, repeat * tokens);
    for (int64_t i = 0; i < repeat; ++i)
      own.middleCols(i * tokens, tokens) = pulls.middleRows((group * repeat + i) * width, width);
    made.push_back(head.stepOfKeys(own, llvm::ArrayRef(metrics).slice(group * repeat, repeat)));
  }
  return made;
}

Together::Trial Together::stepped(llvm::ArrayRef<FloatMatrix> steps, float length) const {
  std::vector<EntryFit::State> states;
  std::vector<FloatMatrix> results;
  for (auto [head, step] : llvm::zip(heads, steps)) {
    states.push_back(head.moved(length * step));
    results.push_back(states.back().error - head.now().error);
  }
  return solved(std::move(states), missing - written(results));
}

/// What the matrix makes of results of the heads of keys: D × N.
FloatMatrix Together::written(llvm::ArrayRef<FloatMatrix> results) const {
  return product(
      output,
      stacked(llvm::map_to_vector(results, [](const FloatMatrix &result) { return &result; })),
      threads);
}

void Together::take(Trial trial) {
  std::vector<FloatMatrix> results;
  for (auto [head, state, change] : llvm::zip(heads, trial.states, trial.changes)) {
    const FloatMatrix before = state.error;
    head.take(std::move(state), change);
    results.push_back(head.now().error - before);
  }
  missing = trial.missing - written(results);
  loss = trial.loss;
}

/// Gauss-Newton rounds over the keys of all heads, each time with the best values.
void Together::run() {
  std::vector<EntryFit::State> states;
  for (const EntryFit &head : heads)
    states.push_back(head.now());
  take(solved(std::move(states), missing));
  float length = 1; // one that a round before found too long is not tried again
  for (int round = 0; round < rounds; ++round) {
    const std::vector<FloatMatrix> all = steps();
    const double before = loss;
    for (; length > 0.1; length /= 2) {
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

void ctxc::fitTogether(std::vector<EntryFit> &heads, const MatrixBehind &matrix,
                       const ParallelFor &threads) {
  Together(heads, matrix, threads).run();
}
