// The closed form of one site against direct computations.
#include "lib/Distil/Regression.h"
#include "lib/Distil/EntryValues.h"
#include "lib/Distil/JointFit.h"
#include "gtest/gtest.h"
#include <random>

using namespace ctxc;

namespace {

FloatMatrix randomRows(int64_t rows, int64_t columns, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  FloatMatrix matrix(rows, columns);
  for (float &x : matrix.reshaped())
    x = normal(engine);
  return matrix;
}

Matrix changeOf(const SiteFit &fit) { return fit.left * fit.right; }

SiteRows randomSite(int64_t rows, int64_t inputs, int64_t outputs) {
  SiteRows site;
  site.data = randomRows(rows, inputs, 1);
  site.product = randomRows(rows, outputs, 2);
  site.target = randomRows(rows, outputs, 3);
  site.weights = Vector::LinSpaced(rows, 0.5, 2);
  return site;
}

/// ΔW = Y Hᵀ W (Hᵀ W H + λ I)⁻¹ as it is written; λ without the sinks.
Matrix byDefinition(const SiteRows &site, double lambda0) {
  Matrix h = site.data.cast<double>(), y = (site.target - site.product).cast<double>();
  Matrix s = h.transpose() * site.weights.asDiagonal() * h, usual = s;
  for (int64_t sink : site.sinks)
    usual -= site.weights[sink] * h.row(sink).transpose() * h.row(sink);
  double lambda = lambda0 * usual.squaredNorm() / usual.trace();
  Matrix regular = s + lambda * Matrix::Identity(s.rows(), s.cols());
  return (regular.inverse() * (h.transpose() * site.weights.asDiagonal() * y)).transpose();
}

const ParallelFor oneThread;

FitOptions withRank(int64_t rank) {
  FitOptions options;
  options.rank = rank;
  return options;
}

} // namespace

/// With fewer rows than inputs (the dual), as many, and more.
TEST(Regression, IsTheRidge) {
  for (int64_t rows : {1, 5, 12, 40}) {
    SiteRows site = randomSite(rows, 12, 7);
    SiteFit fit = llvm::cantFail(fitProduct(site, withRank(0), oneThread));
    Matrix expected = byDefinition(site, FitOptions().lambda);
    EXPECT_LT((changeOf(fit) - expected).norm(), 1e-5 * expected.norm()) << rows << " rows";
  }
}

/// The rows of sinks are fitted as all others are, and do not count in the penalty.
TEST(Regression, PenalisesWithoutSinks) {
  for (int64_t rows : {5, 12, 40}) {
    SiteRows site = randomSite(rows, 12, 7);
    for (int64_t sink : {0, 3}) {
      site.data.row(sink) *= 30;
      site.sinks.push_back(sink);
    }
    SiteFit fit = llvm::cantFail(fitProduct(site, withRank(0), oneThread));
    Matrix expected = byDefinition(site, FitOptions().lambda);
    EXPECT_LT((changeOf(fit) - expected).norm(), 1e-4 * expected.norm()) << rows << " rows";
    ExpertRows experts;
    experts.data = site.data;
    experts.selected.assign(rows, 0);
    experts.gates = FloatMatrix::Ones(rows, 1);
    experts.product = site.product;
    experts.target = site.target;
    experts.weights = site.weights;
    experts.sinks = site.sinks;
    auto fits = llvm::cantFail(fitExperts(experts, 1, withRank(0), oneThread));
    EXPECT_LT((changeOf(fits[0]) - expected).norm(), 1e-4 * expected.norm()) << rows << " rows";
  }
  SiteRows all = randomSite(5, 12, 7), none = all;
  all.sinks = {0, 1, 2, 3, 4}; // there are no others
  EXPECT_EQ(changeOf(llvm::cantFail(fitProduct(all, withRank(0), oneThread))),
            changeOf(llvm::cantFail(fitProduct(none, withRank(0), oneThread))));
}

/// The experts' matrices side by side are one matrix, which reads each expert's input times its
/// gate in the expert's place, and zeros in the others'. That of shared experts is beside them.
TEST(Regression, ExpertsAreOneMatrix) {
  constexpr int64_t count = 30, chosen = 2, experts = 5, inputs = 6, outputs = 7, sharedInputs = 9;
  ExpertRows rows;
  rows.data = randomRows(count, chosen * inputs, 4);
  rows.gates = randomRows(count, chosen, 5);
  rows.shared = randomRows(count, sharedInputs, 8);
  rows.product = randomRows(count, outputs, 6);
  rows.target = randomRows(count, outputs, 7);
  rows.weights = Vector::LinSpaced(count, 0.5, 2);
  SiteRows wide;
  wide.data = FloatMatrix::Zero(count, experts * inputs + sharedInputs);
  wide.data.rightCols(sharedInputs) = rows.shared;
  wide.product = rows.product;
  wide.target = rows.target;
  wide.weights = rows.weights;
  for (int64_t row = 0; row < count; ++row) {
    const int first = row % 3; // the last expert has no rows
    for (int expert : {first, first + 1}) {
      const int slot = expert - first;
      rows.selected.push_back(expert);
      wide.data.row(row).segment(expert * inputs, inputs) =
          rows.gates(row, slot) * rows.data.row(row).segment(slot * inputs, inputs);
    }
  }
  auto fits = llvm::cantFail(fitExperts(rows, experts, withRank(0), oneThread));
  Matrix expected = byDefinition(wide, FitOptions().lambda);
  ASSERT_EQ(fits.size(), size_t(experts + 1));
  EXPECT_EQ(fits[experts - 1].left.size(), 0);
  EXPECT_LT((changeOf(fits[experts]) - expected.rightCols(sharedInputs)).norm(),
            1e-5 * expected.norm());
  for (int64_t expert = 0; expert + 1 < experts; ++expert) {
    Matrix part = expected.middleCols(expert * inputs, inputs);
    EXPECT_LT((changeOf(fits[expert]) - part).norm(), 1e-5 * expected.norm()) << expert;
  }
  // Rank 5 over the two experts of a row is 2 for each, and the nearest of its own rows. It is 5
  // for the matrix that all rows go through.
  auto small = llvm::cantFail(fitExperts(rows, experts, withRank(5), oneThread));
  Matrix h = wide.data.cast<double>();
  Matrix s = h.transpose() * wide.weights.asDiagonal() * h;
  const double lambda = FitOptions().lambda * s.squaredNorm() / s.trace();
  auto expectNearest = [&](const SiteFit &fit, int64_t at, int64_t width, int64_t rank) {
    EXPECT_EQ(fit.left.cols(), rank);
    Eigen::LLT<Matrix> root(
        Matrix(s.block(at, at, width, width) + lambda * Matrix::Identity(width, width)));
    Matrix l = root.matrixL();
    Matrix whole = expected.middleCols(at, width) * l;
    Eigen::JacobiSVD<Matrix> svd(whole);
    double least = svd.singularValues().tail(svd.singularValues().size() - rank).norm();
    EXPECT_NEAR((changeOf(fit) * l - whole).norm(), least, 1e-4 * whole.norm());
  };
  for (int64_t expert = 0; expert + 1 < experts; ++expert)
    expectNearest(small[expert], expert * inputs, inputs, 2);
  expectNearest(small[experts], experts * inputs, sharedInputs, 5);
}

/// From a few hundred tokens on, the penalty is the same in numbers of S, and not relative to it.
TEST(Regression, PenalisesLessWithMoreText) {
  FitOptions options;
  options.lambda = 0.5;
  EXPECT_EQ(ridgeStrength(options, 1), 0.5);
  EXPECT_EQ(ridgeStrength(options, 550), 0.5);
  EXPECT_NEAR(ridgeStrength(options, 5500), 0.05, 1e-12);
}

/// No other change of that rank is nearer to the ridge's in its own metric: by the singular values
/// of ΔW (S + λI)^½.
TEST(Regression, TruncationIsTheBest) {
  for (int64_t rows : {9, 40}) {
    SiteRows site = randomSite(rows, 12, 7);
    Matrix whole = byDefinition(site, FitOptions().lambda);
    Matrix h = site.data.cast<double>();
    Matrix s = h.transpose() * site.weights.asDiagonal() * h;
    Matrix regular = s + FitOptions().lambda * s.squaredNorm() / s.trace() *
                             Matrix::Identity(s.rows(), s.cols());
    Eigen::LLT<Matrix> root(regular);
    Matrix l = root.matrixL();
    for (int64_t rank : {1, 3, 6}) {
      SiteFit fit = llvm::cantFail(fitProduct(site, withRank(rank), oneThread));
      EXPECT_EQ(fit.left.cols(), rank);
      Eigen::JacobiSVD<Eigen::MatrixXd> svd(whole * l);
      double best = svd.singularValues().tail(7 - rank).norm();
      EXPECT_NEAR(((changeOf(fit) - whole) * l).norm(), best, 1e-4 * best) << rank;
    }
  }
}

/// One row without a ridge: the rank-1 change that a patch is.
TEST(Regression, OneRowIsExact) {
  SiteRows site = randomSite(1, 12, 7);
  FitOptions options = withRank(1);
  options.lambda = 0;
  SiteFit fit = llvm::cantFail(fitProduct(site, options, oneThread));
  Matrix found = site.product.cast<double>() + site.data.cast<double>() * changeOf(fit).transpose();
  EXPECT_LT((found - site.target.cast<double>()).norm(), 1e-6);
}

/// Rows that a change of W and of m makes: the fit finds one that makes them too.
TEST(Regression, FitsThroughANorm) {
  const int64_t rows = 60, inputs = 12, outputs = 7;
  SiteRows site;
  site.data = randomRows(rows, inputs, 1);
  Matrix w = randomRows(outputs, inputs, 4).cast<double>();
  Matrix change =
      0.2 * randomRows(outputs, 2, 5).cast<double>() * randomRows(2, inputs, 6).cast<double>();
  Vector m = Vector::LinSpaced(outputs, 0.5, 3);
  auto put = [&](const Matrix &matrix) -> Matrix {
    Matrix d = site.data.cast<double>() * matrix.transpose();
    Vector length = (d.array().square().rowwise().mean() + 1e-6).sqrt();
    return length.cwiseInverse().asDiagonal() * d * m.asDiagonal();
  };
  site.product = (site.data.cast<double>() * w.transpose()).cast<float>();
  site.target = put(w + change).cast<float>();
  site.weights = Vector::Ones(rows);
  FitOptions options = withRank(0);
  options.lambda = 1e-6;
  options.tau = 1e-6;
  options.rounds = 12;
  options.scales = false;
  SiteFit fit = llvm::cantFail(fitThroughNorm(site, m, 1e-6, options, oneThread));
  double before = (put(w) - site.target.cast<double>()).norm();
  double after = (put(w + changeOf(fit)) - site.target.cast<double>()).norm();
  EXPECT_LT(after, 0.01 * before);
}

TEST(Regression, RefusesWhatHasNoAnswer) {
  SiteRows site = randomSite(4, 12, 7);
  site.data.row(2) = site.data.row(1);
  FitOptions options = withRank(0);
  options.lambda = 0;
  auto fit = fitProduct(site, options, oneThread);
  ASSERT_FALSE(bool(fit));
  EXPECT_NE(llvm::toString(fit.takeError()).find("depend on each other"), std::string::npos);
  site.data.setZero();
  auto none = fitProduct(site, withRank(0), oneThread);
  ASSERT_FALSE(bool(none));
  EXPECT_NE(llvm::toString(none.takeError()).find("zero in every row"), std::string::npos);
  site.data(1, 1) = NAN;
  auto bad = fitProduct(site, withRank(0), oneThread);
  ASSERT_FALSE(bool(bad));
  EXPECT_NE(llvm::toString(bad.takeError()).find("not finite"), std::string::npos);
}

/// A row that is left keeps what the change writes for it, whatever rows come later.
TEST(JointFit, LeavesARowAsItIs) {
  JointFit fit(2, 4);
  const double scale = 1, least = 1e-3;
  auto row = [](double a, double b, double c) {
    Vector v = Vector::Zero(4);
    v << a, b, c, 0;
    return v;
  };
  EXPECT_TRUE(fit.grow(row(1, 0, 0), Vector::Ones(2), scale, least));
  const Vector left = row(1, 1e-4, 0);
  EXPECT_FALSE(fit.grow(left, Vector::Ones(2), scale, least));
  auto written = [&] { return fit.products(left.transpose().cast<float>()); };
  const Matrix before = written();
  EXPECT_TRUE(fit.grow(row(0, 1, 1), Vector::Constant(2, 1e3), scale, least));
  EXPECT_LT((written() - before).norm(), 1e-6);
  EXPECT_EQ(fit.left().cols(), 2); // two rows are written
}

/// Four heads of queries that read two heads of keys: the least squares of all changes together.
TEST(EntryValues, AreTheRidgeOfAllHeads) {
  const int64_t tokens = 30, count = 3, groups = 2, heads = 4, width = 5, outputs = 7;
  const FloatMatrix weights = randomRows(heads * count, tokens, 3).cwiseAbs(),
                    output = randomRows(outputs, heads * width, 1),
                    missing = randomRows(outputs, tokens, 2);
  const FloatMatrix metric = output.transpose() * output;
  const int64_t each = count * width, unknowns = groups * each;
  Matrix design = Matrix::Zero(outputs * tokens, unknowns);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t j = 0; j < count; ++j)
        for (int64_t d = 0; d < outputs; ++d)
          design.row(d * tokens + t).segment(head * groups / heads * each + j * width, width) +=
              weights(head * count + j, t) *
              output.row(d).segment(head * width, width).cast<double>();
  Matrix gram = design.transpose() * design;
  gram.diagonal().array() += 0.03 * gram.diagonal().mean();
  const Vector all =
      Eigen::Map<const Eigen::VectorXf>(missing.data(), missing.size()).cast<double>();
  const Vector expected = gram.ldlt().solve(design.transpose() * all);
  ValuesFit fit = fitValues({weights, output, metric, missing, heads, groups}, oneThread);
  Vector found(unknowns);
  for (auto [group, change] : llvm::enumerate(fit.changes))
    found.segment(group * each, each) = Eigen::Map<const Vector>(change.data(), each);
  EXPECT_LT((found - expected).norm(), 1e-2 * expected.norm());
  EXPECT_NEAR(fit.gain, all.squaredNorm() - (all - design * found).squaredNorm(),
              1e-4 * all.squaredNorm());
}
