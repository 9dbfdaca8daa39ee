#include "EntryFit.h"
#include "ctxc/Numerics/Dense.h"
#include "ctxc/Numerics/Softmax.h"
#include <cmath>
#include <numeric>
#include <utility>

using namespace ctxc;

namespace {

/// Ridge penalties, relative to the mean diagonal of what is solved, which grows with the rows: as
/// strong as so many rows of keys, and of values, and no stronger than a part of all.
constexpr double keyRows = 400, valueRows = 60, mostOfKeys = 0.5, mostOfValues = 0.03;
/// The weight of a row that hardly reads an entry, where one that reads it by half has 1/4.
constexpr double leastWeight = 1e-4;
constexpr int roundsOfClusters = 8;
constexpr int roundsOfSteps = 6;
/// Of conjugate gradients: by how much they lessen what is left, in at most so many rounds.
constexpr double leastRest = 5e-2;
constexpr int roundsOfGradients = 40;

/// A column of each is a row of the texts: sums over rows then run along memory.
FloatMatrix transposedOf(const FloatMatrix &matrix) {
  FloatMatrix made(matrix.cols(), matrix.rows());
  constexpr int64_t together = 64;
  for (int64_t at = 0; at < matrix.rows(); at += together) {
    const int64_t count = std::min(together, matrix.rows() - at);
    made.middleCols(at, count) = matrix.middleRows(at, count).transpose();
  }
  return made;
}

/// a b, in float32.
FloatMatrix product(const FloatMatrix &a, const FloatMatrix &b, const ParallelFor &threads) {
  FloatMatrix c(a.rows(), b.cols());
  multiply(a.data(), a.rows(), b.data(), b.cols(), a.cols(), c.data(), threads);
  return c;
}

/// a bᵀ, with sums in float64.
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
        threads(threads), target(transposedOf(rows.target)),
        ownResult(transposedOf(rows.ownResult)) {}
  EntryFit run();

private:
  /// Keys, the best values for them, and what both give.
  struct Solved {
    FloatMatrix keys, values;
    FloatMatrix weights; ///< the softmax's: m × R
    FloatMatrix slopes;  ///< the softcap's derivative: m × R; empty without one
    FloatMatrix error;   ///< of attention's result: e × R
    double loss = 0;     ///< the sum of its squares
  };
  /// What keys are solved of, both m × R.
  struct KeyRows {
    FloatMatrix weights, wanted;
  };

  void findAxes();
  void findReads();
  FloatMatrix features() const;
  std::vector<int64_t> firstCentres(const FloatMatrix &features) const;
  void cluster();
  void sumClusters();
  FloatMatrix solveKeys(const KeyRows &some) const;
  void fitKeys();
  FloatMatrix weigh(FloatMatrix &scores, FloatMatrix &slopes) const;
  Solved solveValues(FloatMatrix keys) const;
  KeyRows rowsOfStep(const Solved &at) const;
  Solved refine(Solved at) const;

  /// body(begin, count) over rows whose numbers of all entries stay in the caches.
  template <typename Body> void overBlocks(Body body) const {
    constexpr int64_t together = 64;
    threads((size + together - 1) / together, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin * together; at < std::min(size, end * together); at += together)
        body(at, std::min(together, size - at));
    });
  }

  const EntryRows &rows;
  const int64_t count, places, size; // m, P, R
  const ParallelFor &threads;
  const FloatMatrix target, ownResult; ///< e × R
  FloatMatrix axes;                    ///< of the queries, in columns: d × d
  FloatMatrix queries, contextKeys;    ///< by these axes: d × R, P × d
  FloatMatrix squares;                 ///< of `queries`
  Vector spread;                       ///< of the queries along each axis, d
  Vector full;                         ///< the logarithm of each row's whole sum
  FloatMatrix read;                    ///< how much of the softmax each place has: R × P
  Vector reads;                        ///< the same over all rows, of their sum
  std::vector<int64_t> label;          ///< of each place, the entry that stands for it
  FloatMatrix logSums;                 ///< of each row, over an entry's places: m × R
  FloatMatrix means, keys;
};

/// Turns queries and keys to the queries' principal axes, which leaves scores as they are: Σ q qᵀ
/// is diagonal there, and Σ w q qᵀ nearly so.
void Fit::findAxes() {
  const FloatMatrix columns = transposedOf(rows.queries);
  const int64_t width = columns.rows();
  Matrix gram(width, width);
  multiplySymmetric(columns.data(), columns.data(), width, size, gram.data(), threads);
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(gram);
  axes = solver.eigenvectors().cast<float>();
  spread = solver.eigenvalues().cwiseMax(0);
  queries = product(transposedOf(axes), columns, threads);
  contextKeys = product(rows.keys, axes, threads);
  squares = queries.cwiseAbs2();
}

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
  FloatMatrix made(places, width + rows.values.cols());
  made.leftCols(width) = contextKeys * spread.cwiseSqrt().cast<float>().asDiagonal();
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
    FloatMatrix near = product(all, transposedOf(centres), threads);
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
  logSums.resize(count, size);
  overBlocks([&](int64_t begin, int64_t some) {
    std::vector<double> sums(count);
    for (int64_t t = begin; t < begin + some; ++t) {
      std::fill(sums.begin(), sums.end(), 0);
      for (int64_t p = 0; p < places; ++p)
        sums[label[p]] += read(t, p);
      for (int64_t j = 0; j < count; ++j)
        logSums(j, t) = sums[j] > 0 ? float(full[t] + std::log(sums[j])) : -HUGE_VALF;
    }
  });
  Matrix keySums = Matrix::Zero(count, contextKeys.cols()),
         valueSums = Matrix::Zero(count, rows.values.cols());
  Vector weights = Vector::Zero(count);
  for (int64_t p = 0; p < places; ++p) {
    const double weight = reads[p] + 1e-12;
    keySums.row(label[p]) += weight * contextKeys.row(p).cast<double>();
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

/// For each entry argmin_d Σ w (q · d)² − 2 y (q · d) + ridge |d|², with w the weights and y what
/// is wanted, by conjugate gradients, preconditioned by the diagonals: a round reads the queries
/// twice, for all entries, where their Gram matrices would be d² numbers for each.
FloatMatrix Fit::solveKeys(const KeyRows &some) const {
  Matrix diagonals = exactProduct(some.weights, squares, threads);
  const Vector ridge =
      std::min(keyRows / size, mostOfKeys) * diagonals.rowwise().mean().array() + 1e-300;
  diagonals.colwise() += ridge;
  Matrix solved = Matrix::Zero(count, queries.rows()),
         rest = exactProduct(some.wanted, queries, threads), step = rest.cwiseQuotient(diagonals);
  auto scaled = [](const Vector &by, const Matrix &matrix) -> Matrix {
    return by.asDiagonal() * matrix;
  };
  auto over = [](const Vector &a, const Vector &b) -> Vector { // 0 where all is solved
    return (b.array() > 0).select(a.array() / b.array(), 0);
  };
  Vector left = rest.cwiseProduct(step).rowwise().sum();
  const Vector enough = leastRest * leastRest * left;
  for (int round = 0; round < roundsOfGradients && (left.array() > enough.array()).any(); ++round) {
    FloatMatrix moved = product(step.cast<float>(), queries, threads);
    moved.array() *= some.weights.array();
    const Matrix turned = exactProduct(moved, queries, threads) + scaled(ridge, step);
    const Vector length = over(left, step.cwiseProduct(turned).rowwise().sum());
    solved += scaled(length, step);
    rest -= scaled(length, turned);
    const Matrix next = rest.cwiseQuotient(diagonals);
    const Vector last = std::exchange(left, rest.cwiseProduct(next).rowwise().sum());
    step = next + scaled(over(left, last), step);
  }
  return solved.cast<float>();
}

/// The keys with which the entries' scores are the logarithms of their places' sums, by least
/// squares over the rows, weighted by how much the softmax moves with that score.
void Fit::fitKeys() {
  const FloatMatrix known = product(keys, queries, threads); // the scores of the means
  KeyRows some = {FloatMatrix::Constant(count, size, leastWeight), FloatMatrix::Zero(count, size)};
  overBlocks([&](int64_t begin, int64_t together) {
    for (int64_t j = 0; j < count; ++j)
      for (int64_t t = begin; t < begin + together; ++t) {
        double z = logSums(j, t);
        const float bias = rows.bias.size() ? rows.bias(j, t) : 0;
        if (z == -HUGE_VAL || bias == -HUGE_VALF)
          continue;
        const double p = std::exp(z - full[t]);
        double slope = 1;
        if (rows.cap > 0) {
          const double x = std::clamp(z / rows.cap, -0.999, 0.999);
          z = rows.cap * std::atanh(x);
          slope = 1 - x * x;
        }
        some.weights(j, t) += p * (1 - std::min(p, 1.0)) * slope * slope;
        some.wanted(j, t) = some.weights(j, t) * (z - bias - known(j, t));
      }
  });
  keys += solveKeys(some);
}

/// Makes the softmax's weights of the entries' scores, and returns what the texts' own results have
/// to bring: the target less their part, e × R.
FloatMatrix Fit::weigh(FloatMatrix &scores, FloatMatrix &slopes) const {
  FloatMatrix missing(target.rows(), size);
  if (rows.cap > 0)
    slopes.resize(count, size);
  overBlocks([&](int64_t begin, int64_t some) {
    auto s = scores.middleCols(begin, some);
    if (rows.bias.size())
      s += rows.bias.middleCols(begin, some);
    if (rows.cap > 0) {
      s = (s / rows.cap).array().tanh();
      slopes.middleCols(begin, some) = 1 - s.array().square();
      s *= rows.cap;
      for (int64_t j = 0; rows.bias.size() && j < count; ++j)
        for (int64_t t = 0; t < some; ++t)
          if (rows.bias(j, begin + t) == -HUGE_VALF)
            s(j, t) = -HUGE_VALF;
    }
    Eigen::RowVectorXf own = rows.own.segment(begin, some).transpose().cast<float>();
    const Eigen::RowVectorXf largest = s.colwise().maxCoeff().cwiseMax(own);
    exponentiate(own.data(), largest.data(), some);
    Eigen::RowVectorXf sum = own;
    for (int64_t j = 0; j < count; ++j) {
      exponentiate(&s(j, 0), largest.data(), some);
      sum += s.row(j);
    }
    sum = sum.cwiseInverse();
    own = own.cwiseProduct(sum);
    for (int64_t j = 0; j < count; ++j)
      s.row(j) = s.row(j).cwiseProduct(sum);
    for (int64_t k = 0; k < missing.rows(); ++k)
      missing.row(k).segment(begin, some) = target.row(k).segment(begin, some) -
                                            own.cwiseProduct(ownResult.row(k).segment(begin, some));
  });
  return missing;
}

/// What these keys give, with the values with which attention comes nearest to the target, all of
/// them together: it is linear in them.
Fit::Solved Fit::solveValues(FloatMatrix keys) const {
  Solved made;
  made.weights = product(keys, queries, threads); // first the scores
  FloatMatrix missing = weigh(made.weights, made.slopes);
  missing -= product(transposedOf(means), made.weights, threads);
  Matrix gram(count, count);
  multiplySymmetric(made.weights.data(), made.weights.data(), count, size, gram.data(), threads);
  gram.diagonal().array() +=
      std::min(valueRows / size, mostOfValues) * gram.trace() / count + 1e-300;
  const Matrix right = exactProduct(made.weights, missing, threads);
  const FloatMatrix change = Eigen::LLT<Eigen::MatrixXd>(gram).solve(right).cast<float>();
  made.error = product(transposedOf(change), made.weights, threads) - missing;
  made.values = means + change;
  made.keys = std::move(keys);
  made.loss = made.error.cast<double>().squaredNorm();
  return made;
}

/// Of a step of each key by itself that brings attention's result nearer to the target, to first
/// order: with π the entry's weight and u = v − o, the result moves by π u (q · step).
Fit::KeyRows Fit::rowsOfStep(const Solved &at) const {
  const FloatMatrix result = target + at.error;
  const FloatMatrix errorTimesValue = product(at.values, at.error, threads),
                    resultTimesValue = product(at.values, result, threads);
  const Eigen::RowVectorXf errorTimesResult = at.error.cwiseProduct(result).colwise().sum(),
                           lengths = result.colwise().squaredNorm();
  const Eigen::VectorXf ofValues = at.values.rowwise().squaredNorm();
  KeyRows made = {at.weights, FloatMatrix(count, size)};
  overBlocks([&](int64_t begin, int64_t some) {
    for (int64_t j = 0; j < count; ++j) {
      auto part = [&](auto &&matrix) { return matrix.row(j).segment(begin, some).array(); };
      auto pi = part(made.weights);
      if (at.slopes.size())
        pi *= part(at.slopes);
      part(made.wanted) =
          pi * (errorTimesResult.segment(begin, some).array() - part(errorTimesValue));
      pi = pi.square() *
           (lengths.segment(begin, some).array() - 2 * part(resultTimesValue) + ofValues[j]).max(0);
    }
  });
  return made;
}

/// Gauss-Newton rounds over keys and values.
Fit::Solved Fit::refine(Solved at) const {
  for (int round = 0; round < roundsOfSteps; ++round) {
    const FloatMatrix step = solveKeys(rowsOfStep(at));
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
  findAxes();
  findReads();
  cluster();
  sumClusters();
  fitKeys();
  Solved solved = refine(solveValues(keys));
  return {product(solved.keys, transposedOf(axes), threads), std::move(solved.values),
          std::move(solved.weights)};
}

} // namespace

EntryFit ctxc::fitEntries(const EntryRows &rows, int64_t count, const ParallelFor &threads) {
  return Fit(rows, count, threads).run();
}
