#include "EntryFit.h"
#include "Products.h"
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
constexpr int roundsOfSteps = 2;
/// Of conjugate gradients: by how much they lessen what is left, in at most so many rounds.
constexpr double leastRest = 5e-2;
constexpr int roundsOfGradients = 40;

/// log(eᵃ + eᵇ).
double addLogarithms(double a, double b) {
  const double largest = std::max(a, b);
  return largest == -HUGE_VAL ? largest
                              : largest + std::log(std::exp(a - largest) + std::exp(b - largest));
}

} // namespace

/// body(begin, count) over rows whose numbers of all entries stay in the caches.
template <typename Body> void EntryFit::overBlocks(Body body) const {
  constexpr int64_t together = 64;
  (*threads)((size + together - 1) / together, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin * together; at < std::min(size, end * together); at += together)
      body(at, std::min(together, size - at));
  });
}

/// Turns queries and keys to the queries' principal axes, which leaves scores as they are: Σ q qᵀ
/// is diagonal there, and Σ w q qᵀ nearly so.
void EntryFit::findAxes() {
  const FloatMatrix columns = transposedOf(rows.queries);
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(gramOf(columns, *threads));
  axes = solver.eigenvectors().cast<float>();
  spread = solver.eigenvalues().cwiseMax(0);
  queries = product(transposedOf(axes), columns, *threads);
  contextKeys = product(rows.keys, axes, *threads);
  squares = queries.cwiseAbs2();
}

void EntryFit::findReads() {
  full = rows.own;
  read = FloatMatrix::Zero(size, places);
  (*threads)(size, [&](int64_t begin, int64_t end) {
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
  (*threads)(places, [&](int64_t begin, int64_t end) {
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
FloatMatrix EntryFit::features() const {
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
std::vector<int64_t> EntryFit::firstCentres(const FloatMatrix &features) const {
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
void EntryFit::cluster() {
  const FloatMatrix all = features();
  const std::vector<int64_t> first = firstCentres(all);
  FloatMatrix centres(count, all.cols());
  for (int64_t j = 0; j < count; ++j)
    centres.row(j) = all.row(first[j]);
  label.assign(places, 0);
  const int64_t from = count > 1; // the first centre has the first place alone
  for (int round = 0; round < roundsOfClusters; ++round) {
    FloatMatrix near = product(all, transposedOf(centres), *threads);
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
void EntryFit::sumClusters() {
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
  first = keySums.cast<float>();
  means = valueSums.cast<float>();
}

/// For each entry argmin_d Σ w (q · d)² − 2 y (q · d) + ridge |d|², with w the weights and y what
/// is wanted, by conjugate gradients, preconditioned by the diagonals: a round reads the queries
/// twice, for all entries, where their Gram matrices would be d² numbers for each.
FloatMatrix EntryFit::solveKeys(const KeyRows &some) const {
  Matrix diagonals = exactProduct(some.weights, squares, *threads);
  const Vector ridge =
      std::min(keyRows / size, mostOfKeys) * diagonals.rowwise().mean().array() + 1e-300;
  diagonals.colwise() += ridge;
  Matrix solved = Matrix::Zero(count, queries.rows()),
         rest = exactProduct(some.wanted, queries, *threads), step = rest.cwiseQuotient(diagonals);
  auto scaled = [](const Vector &by, const Matrix &matrix) -> Matrix {
    return by.asDiagonal() * matrix;
  };
  auto over = [](const Vector &a, const Vector &b) -> Vector { // 0 where all is solved
    return (b.array() > 0).select(a.array() / b.array(), 0);
  };
  Vector left = rest.cwiseProduct(step).rowwise().sum();
  const Vector enough = leastRest * leastRest * left;
  for (int round = 0; round < roundsOfGradients && (left.array() > enough.array()).any(); ++round) {
    FloatMatrix moved = product(step.cast<float>(), queries, *threads);
    moved.array() *= some.weights.array();
    const Matrix turned = exactProduct(moved, queries, *threads) + scaled(ridge, step);
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
FloatMatrix EntryFit::firstKeys() const {
  const FloatMatrix known = product(first, queries, *threads); // the scores of the means
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
  return first + solveKeys(some);
}

/// Makes the softmax's weights of the entries' scores, and returns what the texts' own results have
/// to bring: the target less their part, e × R.
FloatMatrix EntryFit::weigh(FloatMatrix &scores, FloatMatrix &slopes) const {
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
EntryFit::State EntryFit::solveValues(FloatMatrix keys) const {
  State made;
  made.weights = product(keys, queries, *threads); // first the scores
  FloatMatrix missing = weigh(made.weights, made.slopes);
  missing -= product(transposedOf(means), made.weights, *threads);
  Matrix gram = gramOf(made.weights, *threads);
  gram.diagonal().array() +=
      std::min(valueRows / size, mostOfValues) * gram.trace() / count + 1e-300;
  const Matrix right = exactProduct(made.weights, missing, *threads);
  const FloatMatrix change = Eigen::LLT<Eigen::MatrixXd>(gram).solve(right).cast<float>();
  made.error = product(transposedOf(change), made.weights, *threads) - missing;
  made.values = means + change;
  made.keys = std::move(keys);
  made.loss = made.error.cast<double>().squaredNorm();
  return made;
}

/// With π an entry's weight, v its value and o the result, a step moves the result by π (v − o)
/// (q · step).
FloatMatrix EntryFit::stepOfKeys(const FloatMatrix &pulls,
                                 llvm::ArrayRef<FloatMatrix> metrics) const {
  const FloatMatrix result = target + at.error;
  FloatMatrix turned = result; // by the metrics
  for (auto [i, metric] : llvm::enumerate(metrics)) {
    auto part = turned.middleCols(i * size / metrics.size(), size / metrics.size());
    part = product(metric, part, *threads);
  }
  const FloatMatrix pullTimesValue = product(at.values, pulls, *threads);
  FloatMatrix ofValues = product(at.values, turned, *threads); // to be |v|² − 2 v · o
  const size_t parts = std::max<size_t>(metrics.size(), 1);
  for (size_t i = 0; i < parts; ++i) {
    const FloatMatrix own = metrics.empty() ? at.values : FloatMatrix(at.values * metrics[i]);
    auto part = ofValues.middleCols(i * size / parts, size / parts);
    part *= -2;
    part.colwise() += own.cwiseProduct(at.values).rowwise().sum();
  }
  const Eigen::RowVectorXf pullTimesResult = pulls.cwiseProduct(result).colwise().sum(),
                           lengths = turned.cwiseProduct(result).colwise().sum();
  KeyRows made = {at.weights, FloatMatrix(count, size)};
  overBlocks([&](int64_t begin, int64_t some) {
    for (int64_t j = 0; j < count; ++j) {
      auto part = [&](auto &&matrix) { return matrix.row(j).segment(begin, some).array(); };
      auto pi = part(made.weights);
      if (at.slopes.size())
        pi *= part(at.slopes);
      part(made.wanted) =
          pi * (part(pullTimesValue) - pullTimesResult.segment(begin, some).array());
      pi = pi.square() * (lengths.segment(begin, some).array() + part(ofValues)).max(0);
    }
  });
  return solveKeys(made);
}

/// Gauss-Newton rounds over keys and values.
void EntryFit::refine() {
  for (int round = 0; round < roundsOfSteps; ++round) {
    const FloatMatrix step = stepOfKeys(-at.error, {});
    bool isBetter = false;
    for (float length : {1.f, 0.5f, 0.25f, 0.1f}) {
      State next = solveValues(at.keys + length * step);
      if (next.loss < at.loss) {
        isBetter = next.loss < 0.998 * at.loss;
        at = std::move(next);
        break;
      }
    }
    if (!isBetter)
      break;
  }
}

EntryFit::EntryFit(EntryRows given, int64_t count, const ParallelFor &threads)
    : rows(std::move(given)), count(count), places(rows.keys.rows()), size(rows.queries.rows()),
      threads(&threads), target(transposedOf(rows.target)),
      ownResult(transposedOf(rows.ownResult)) {
  findAxes();
  findReads();
  cluster();
  sumClusters();
  at = solveValues(firstKeys());
  refine();
  // What only the beginning needs is as much as all else together.
  for (FloatMatrix *matrix :
       {&rows.queries, &rows.scores, &rows.ownResult, &rows.target, &read, &logSums, &contextKeys})
    matrix->resize(0, 0);
}

FloatMatrix EntryFit::keys() const { return product(at.keys, transposedOf(axes), *threads); }

EntryFit::State EntryFit::moved(const FloatMatrix &step) const {
  State next;
  next.keys = at.keys + step;
  next.values = at.values;
  next.weights = product(next.keys, queries, *threads); // first the scores
  const FloatMatrix missing = weigh(next.weights, next.slopes);
  next.error = product(transposedOf(next.values), next.weights, *threads) - missing;
  return next;
}

void EntryFit::take(State next, const Matrix &change) {
  at = std::move(next);
  const FloatMatrix added = change.cast<float>();
  at.values += added;
  at.error += product(transposedOf(added), at.weights, *threads);
}
