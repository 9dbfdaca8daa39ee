#include "EntryFit.h"
#include "ctxc/Numerics/Dense.h"
#include "ctxc/Numerics/Softmax.h"
#include <cmath>
#include <numeric>

using namespace ctxc;

namespace {

/// Ridge penalties, relative to the mean diagonal of what is solved, which grows with the rows: as
/// strong as so many rows of keys, and of values, and no stronger than a part of all.
constexpr double keyRows = 400, valueRows = 60, mostOfKeys = 0.5, mostOfValues = 0.03;
/// The weight of a row that hardly reads an entry, where one that reads it by half has 1/4.
constexpr double leastWeight = 1e-4;
constexpr int roundsOfClusters = 8;
constexpr int roundsOfSteps = 6;

/// In one thread, from within a range of several.
void alone(int64_t count, llvm::function_ref<void(int64_t, int64_t)> body) { body(0, count); }

FloatMatrix transposedOf(const FloatMatrix &matrix) { return matrix.transpose(); }

/// a bᵀ, in float32.
FloatMatrix product(const FloatMatrix &a, const FloatMatrix &b, const ParallelFor &threads) {
  FloatMatrix c(a.rows(), b.rows());
  multiplyTransposed(a.data(), a.rows(), b.data(), b.rows(), a.cols(), c.data(), threads);
  return c;
}

/// The same with sums in float64.
Matrix exactProduct(const FloatMatrix &a, const FloatMatrix &b, const ParallelFor &threads) {
  Matrix c(a.rows(), b.rows());
  multiplyTransposed(a.data(), a.rows(), b.data(), b.rows(), a.cols(), c.data(), threads);
  return c;
}

/// log(eᵃ + eᵇ).
double addLogarithms(double a, double b) {
  const double largest = std::max(a, b);
  return largest == -HUGE_VAL ? largest
                              : largest + std::log(std::exp(a - largest) + std::exp(b - largest));
}

class Fit {
public:
  Fit(const EntryRows &rows, int64_t count, const ParallelFor &threads)
      : rows(rows), count(count), places(rows.keys.rows()), size(rows.queries.rows()),
        threads(threads), queries(transposedOf(rows.queries)) {}
  EntryFit run();

private:
  /// Keys, the best values for them, and what both give.
  struct Solved {
    FloatMatrix keys, values;
    FloatMatrix weights; ///< the softmax's: R × m
    FloatMatrix slopes;  ///< the softcap's derivative: R × m; empty without one
    FloatMatrix error;   ///< of attention's result: R × e
    double loss = 0;     ///< the sum of its squares
  };
  void findReads();
  FloatMatrix features() const;
  std::vector<int64_t> firstCentres(const FloatMatrix &features) const;
  void cluster();
  void sumClusters();
  FloatMatrix solveKeys(const FloatMatrix &weights, const FloatMatrix &wanted, double least) const;
  void fitKeys();
  Solved solveValues(FloatMatrix keys) const;
  FloatMatrix stepOfKeys(const Solved &at) const;
  Solved refine(Solved at) const;

  template <typename Body> void overRows(Body body) const {
    threads(size, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        body(t);
    });
  }

  const EntryRows &rows;
  const int64_t count, places, size; // m, P, R
  const ParallelFor &threads;
  const FloatMatrix queries;  ///< d × R
  Vector full;                ///< the logarithm of each row's whole sum of exponentials
  FloatMatrix read;           ///< how much of the softmax each place has: R × P
  Vector reads;               ///< the same over all rows, of their sum
  std::vector<int64_t> label; ///< of each place, the entry that stands for it
  FloatMatrix logSums;        ///< of each row, over an entry's places: R × m
  FloatMatrix means, keys;
};

void Fit::findReads() {
  full = rows.own;
  read = FloatMatrix::Zero(size, places);
  threads(size, [&](int64_t begin, int64_t end) {
    std::vector<double> all(places);
    for (int64_t t = begin; t < end; ++t) {
      const auto s = rows.scores.row(t);
      const double largest = s.maxCoeff();
      if (largest == -HUGE_VAL)
        continue;
      const double sum = exponentials(s.data(), places, largest, all.data());
      full[t] = addLogarithms(largest + std::log(sum), rows.own[t]);
      const double factor = std::exp(largest - full[t]);
      for (int64_t p = 0; p < places; ++p)
        read(t, p) = float(factor * all[p]);
    }
  });
  reads.resize(places);
  threads(places, [&](int64_t begin, int64_t end) {
    Vector sums = Vector::Zero(end - begin);
    for (int64_t t = 0; t < size; ++t)
      for (int64_t p = begin; p < end; ++p)
        sums[p - begin] += read(t, p);
    reads.segment(begin, end - begin) = sums;
  });
  reads /= std::max(reads.sum(), 1e-300);
}

/// The same distances as between the scores that the queries give two keys, on the average, beside
/// those of the values; both in units of their standard deviations.
FloatMatrix Fit::features() const {
  const int64_t width = queries.rows();
  Matrix gram(width, width);
  multiplySymmetric(queries.data(), queries.data(), width, size, gram.data(), threads);
  gram.diagonal().array() += 1e-9 * gram.trace() / width + 1e-300;
  Eigen::MatrixXd factor = Eigen::LLT<Eigen::MatrixXd>(gram).matrixL();
  FloatMatrix made(places, width + rows.values.cols());
  made.leftCols(width) = (rows.keys.cast<double>() * factor).cast<float>();
  made.rightCols(rows.values.cols()) = rows.values;
  auto normalise = [&](auto part) {
    Eigen::RowVectorXf mean = part.colwise().mean();
    part.rowwise() -= mean;
    const float deviation = std::sqrt(part.squaredNorm() / places);
    if (deviation > 0)
      part /= deviation;
  };
  normalise(made.leftCols(width));
  normalise(made.rightCols(rows.values.cols()));
  return made;
}

/// The first place, on which attention rests, and those farthest from the ones before, times how
/// much is read of them.
std::vector<int64_t> Fit::firstCentres(const FloatMatrix &features) const {
  std::vector<int64_t> centres = {0};
  Vector distance = Vector::Constant(places, HUGE_VAL);
  while (int64_t(centres.size()) < count) {
    Vector last =
        (features.rowwise() - features.row(centres.back())).rowwise().squaredNorm().cast<double>();
    distance = distance.cwiseMin(last);
    Eigen::Index next;
    (distance.array() * (reads.array() + 1e-12)).maxCoeff(&next);
    centres.push_back(next);
  }
  return centres;
}

/// Weighted k-means of the places, of which the first is alone.
void Fit::cluster() {
  const FloatMatrix all = features();
  const std::vector<int64_t> first = firstCentres(all);
  FloatMatrix centres(count, all.cols());
  for (int64_t j = 0; j < count; ++j)
    centres.row(j) = all.row(first[j]);
  label.assign(places, 0);
  const int64_t from = count > 1; // the first centre has the first place alone
  for (int round = 0; round < roundsOfClusters; ++round) {
    FloatMatrix near = product(all, centres, threads);
    near *= -2;
    near.rowwise() += centres.rowwise().squaredNorm().transpose();
    for (int64_t p = from; p < places; ++p) {
      Eigen::Index nearest;
      near.row(p).tail(count - from).minCoeff(&nearest);
      label[p] = from + nearest;
    }
    Matrix sums = Matrix::Zero(count, all.cols());
    Vector weights = Vector::Zero(count);
    for (int64_t p = 0; p < places; ++p) {
      sums.row(label[p]) += (reads[p] + 1e-12) * all.row(p).cast<double>();
      weights[label[p]] += reads[p] + 1e-12;
    }
    for (int64_t j = 0; j < count; ++j)
      if (weights[j] > 0)
        centres.row(j) = (sums.row(j) / weights[j]).cast<float>();
  }
  // A centre that lost all its places stands for its first one, too.
  std::vector<bool> isTaken(count);
  for (int64_t entry : label)
    isTaken[entry] = true;
  for (int64_t j = 0; j < count; ++j)
    if (!isTaken[j])
      label[first[j]] = j;
}

/// log Σ exp over each entry's places, and the means of what is read of its keys and values.
void Fit::sumClusters() {
  logSums.resize(size, count);
  overRows([&](int64_t t) {
    std::vector<double> sums(count);
    for (int64_t p = 0; p < places; ++p)
      sums[label[p]] += read(t, p);
    for (int64_t j = 0; j < count; ++j)
      logSums(t, j) = sums[j] > 0 ? float(full[t] + std::log(sums[j])) : -HUGE_VALF;
  });
  Matrix keySums = Matrix::Zero(count, rows.keys.cols()),
         valueSums = Matrix::Zero(count, rows.values.cols());
  Vector weights = Vector::Zero(count);
  for (int64_t p = 0; p < places; ++p) {
    const double weight = reads[p] + 1e-12;
    keySums.row(label[p]) += weight * rows.keys.row(p).cast<double>();
    valueSums.row(label[p]) += weight * rows.values.row(p).cast<double>();
    weights[label[p]] += weight;
  }
  for (int64_t j = 0; j < count; ++j)
    if (weights[j] > 0) {
      keySums.row(j) /= weights[j];
      valueSums.row(j) /= weights[j];
    }
  keys = keySums.cast<float>();
  means = valueSums.cast<float>();
}

/// For each entry argmin_d Σ w (q · d)² − 2 y (q · d) + ridge |d|², with its rows' weights w and
/// with y (both m × R); `least` is added to all weights.
FloatMatrix Fit::solveKeys(const FloatMatrix &weights, const FloatMatrix &wanted,
                           double least) const {
  const int64_t width = queries.rows();
  const Matrix right = exactProduct(wanted, queries, threads);
  Matrix shared = Matrix::Zero(width, width);
  if (least > 0)
    multiplySymmetric(queries.data(), queries.data(), width, size, shared.data(), threads);
  FloatMatrix keys(count, width);
  threads(count, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      // Rows that weigh next to nothing are left out of the products.
      const float enough = 0.01f * weights.row(j).mean();
      std::vector<int64_t> some;
      for (int64_t t = 0; t < size; ++t)
        if (weights(j, t) > enough)
          some.push_back(t);
      FloatMatrix columns(width, some.size());
      for (int64_t k = 0; k < width; ++k)
        for (auto [i, t] : llvm::enumerate(some))
          columns(k, i) = queries(k, t) * std::sqrt(weights(j, t));
      Matrix gram(width, width);
      multiplySymmetric(columns.data(), columns.data(), width, some.size(), gram.data(), alone);
      gram += least * shared;
      gram.diagonal().array() +=
          std::min(keyRows / size, mostOfKeys) * gram.trace() / width + 1e-300;
      const Vector side = right.row(j).transpose();
      keys.row(j) = Eigen::LLT<Eigen::MatrixXd>(gram).solve(side).transpose().cast<float>();
    }
  });
  return keys;
}

/// The keys with which the entries' scores are the logarithms of their places' sums, by least
/// squares over the rows, weighted by how much the softmax moves with that score.
void Fit::fitKeys() {
  const FloatMatrix known = product(keys, rows.queries, threads); // the scores of the means: m × R
  FloatMatrix weights = FloatMatrix::Zero(count, size), wanted = weights;
  threads(count, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j)
      for (int64_t t = 0; t < size; ++t) {
        double z = logSums(t, j);
        const float bias = rows.bias.size() ? rows.bias(t, j) : 0;
        if (z == -HUGE_VAL || bias == -HUGE_VALF)
          continue;
        const double p = std::exp(z - full[t]);
        double slope = 1;
        if (rows.cap > 0) {
          const double x = std::clamp(z / rows.cap, -0.999, 0.999);
          z = rows.cap * std::atanh(x);
          slope = 1 - x * x;
        }
        weights(j, t) = p * (1 - std::min(p, 1.0)) * slope * slope;
        wanted(j, t) = (weights(j, t) + leastWeight) * (z - bias - known(j, t));
      }
  });
  keys += solveKeys(weights, wanted, leastWeight);
}

/// What these keys give, with the values with which attention comes nearest to the target, all of
/// them together: it is linear in them.
Fit::Solved Fit::solveValues(FloatMatrix keys) const {
  Solved made;
  made.weights = product(rows.queries, keys, threads); // first the scores
  FloatMatrix missing(size, rows.target.cols());
  if (rows.cap > 0)
    made.slopes.resize(size, count);
  overRows([&](int64_t t) {
    auto s = made.weights.row(t);
    if (rows.bias.size())
      s += rows.bias.row(t);
    if (rows.cap > 0) {
      s = (s / rows.cap).array().tanh();
      made.slopes.row(t) = 1 - s.array().square();
      s *= rows.cap;
      for (int64_t j = 0; rows.bias.size() && j < count; ++j)
        if (rows.bias(t, j) == -HUGE_VALF)
          s[j] = -HUGE_VALF;
    }
    double largest = std::max<double>(s.maxCoeff(), rows.own[t]), sum = 0;
    for (float &x : s) {
      x = std::exp(float(x - largest));
      sum += x;
    }
    const double own = std::exp(rows.own[t] - largest);
    sum += own;
    s /= float(sum);
    missing.row(t) = rows.target.row(t) - float(own / sum) * rows.ownResult.row(t);
  });
  missing -= product(made.weights, transposedOf(means), threads);
  FloatMatrix entries = transposedOf(made.weights);
  Matrix gram(count, count);
  multiplySymmetric(entries.data(), entries.data(), count, size, gram.data(), threads);
  gram.diagonal().array() +=
      std::min(valueRows / size, mostOfValues) * gram.trace() / count + 1e-300;
  Matrix right = exactProduct(entries, transposedOf(missing), threads);
  FloatMatrix change = Eigen::LLT<Eigen::MatrixXd>(gram).solve(right).cast<float>();
  made.error = product(made.weights, transposedOf(change), threads) - missing;
  made.values = means + change;
  made.keys = std::move(keys);
  made.loss = made.error.cast<double>().squaredNorm();
  return made;
}

/// A step of each key by itself that brings attention's result nearer to the target, to first
/// order: with π the entry's weight and u = v − o, the result moves by π u (q · step).
FloatMatrix Fit::stepOfKeys(const Solved &at) const {
  FloatMatrix result = rows.target + at.error;
  FloatMatrix errorTimesValue = product(at.error, at.values, threads),
              resultTimesValue = product(result, at.values, threads);
  const Eigen::VectorXf errorTimesResult = at.error.cwiseProduct(result).rowwise().sum(),
                        lengths = result.rowwise().squaredNorm(),
                        ofValues = at.values.rowwise().squaredNorm();
  FloatMatrix weights(count, size), wanted(count, size);
  threads(count, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j)
      for (int64_t t = 0; t < size; ++t) {
        const float pi = at.weights(t, j) * (at.slopes.size() ? at.slopes(t, j) : 1);
        weights(j, t) =
            pi * pi * std::max(lengths[t] - 2 * resultTimesValue(t, j) + ofValues[j], 0.f);
        wanted(j, t) = -pi * (errorTimesValue(t, j) - errorTimesResult[t]);
      }
  });
  return solveKeys(weights, wanted, /*least=*/0);
}

/// Gauss-Newton rounds over keys and values.
Fit::Solved Fit::refine(Solved at) const {
  for (int round = 0; round < roundsOfSteps; ++round) {
    const FloatMatrix step = stepOfKeys(at);
    bool isBetter = false;
    for (float length : {1.f, 0.5f, 0.25f, 0.1f}) {
      Solved next = solveValues(at.keys + length * step);
      if (next.loss < at.loss) {
        isBetter = next.loss < 0.998 * at.loss;
        at = std::move(next);
        break;
      }
    }
    if (!isBetter)
      break;
  }
  return at;
}

EntryFit Fit::run() {
  findReads();
  cluster();
  sumClusters();
  fitKeys();
  Solved solved = refine(solveValues(keys));
  return {std::move(solved.keys), std::move(solved.values)};
}

} // namespace

EntryFit ctxc::fitEntries(const EntryRows &rows, int64_t count, const ParallelFor &threads) {
  return Fit(rows, count, threads).run();
}
