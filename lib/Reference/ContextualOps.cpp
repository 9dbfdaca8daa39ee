// The meaning of the ops that read earlier tokens. Each first adds the step's
// tokens to its state, and then reads, for each of them, the tokens before it.
#include "Models.h"
#include "dialects/Kernel/Kernel.h"
#include <cmath>

using namespace mlir;

namespace ctxc::reference {

using ConstRow = Eigen::Map<const Eigen::RowVectorXd>;

static ConstRow slice(ArrayRef<double> row, int64_t from, int64_t size) {
  return {row.slice(from, size).data(), size};
}

static double roundedToBf16(double x) { return bf16ToFloat(floatToBf16(float(x))); }

/// The term that a slope adds to the product of a query and the key at `position`.
static double slopeBias(double slope, int64_t position, bool rounded) {
  if (!rounded)
    return slope * double(position);
  return roundedToBf16(roundedToBf16(slope) * roundedToBf16(double(position)));
}

static llvm::Error evaluateOp(xf::AttentionOp op, Evaluation &e) {
  OpState &state = e.state();
  ArrayRef<int64_t> positions = e.getEnvironment().positions;
  if (kernel::isMarked<kernel::RoundedState>(op)) {
    Matrix key = e.rows(op.getKey()).unaryExpr(&roundedToBf16);
    Matrix value = e.rows(op.getValue()).unaryExpr(&roundedToBf16);
    state.append(positions, {&key, &value});
  } else {
    state.append(positions, {&e.rows(op.getKey()), &e.rows(op.getValue())});
  }

  auto shape = [](Value v) { return cast<RankedTensorType>(v.getType()).getShape(); };
  int64_t heads = shape(op.getQuery())[0], width = shape(op.getQuery())[1];
  int64_t groups = shape(op.getKey())[0], valueWidth = shape(op.getValue())[1];
  double scale = op.getScale().convertToDouble();
  double cap = op.getSoftcap() ? op.getSoftcap()->convertToDouble() : 0;
  const Matrix &query = e.rows(op.getQuery());
  Matrix sinks = op.getSinks() ? e.widened(op.getSinks()) : Matrix();
  Matrix result = Matrix::Zero(e.tokenCount(), heads * valueWidth);
  for (int64_t t = 0; t < e.tokenCount(); ++t) {
    int64_t window = op.getWindow() ? int64_t(e.rows(op.getWindow())(t, 0)) : 0;
    SmallVector<int64_t> visible;
    for (auto [j, position] : llvm::enumerate(state.getPositions()))
      if (op.getBidirectional() ||
          (position <= positions[t] && (window == 0 || positions[t] - position < window)))
        visible.push_back(j);
    for (int64_t h = 0; h < heads; ++h) {
      int64_t g = h * groups / heads;
      Eigen::RowVectorXd scores(visible.size());
      for (auto [i, j] : llvm::enumerate(visible)) {
        double product =
            query.row(t).segment(h * width, width).dot(slice(state.row(0, j), g * width, width));
        if (op.getSlopes())
          product +=
              slopeBias(e.rows(op.getSlopes())(t, h), state.getPositions()[j], op.getRounded());
        scores[i] = scale * product;
      }
      if (cap > 0)
        scores = cap * (scores.array() / cap).tanh();
      double largest = scores.maxCoeff(), rest = 0;
      if (op.getSinks()) {
        double sink = sinks(sinks.rows() == 1 ? 0 : t, h);
        largest = std::max(largest, sink);
        rest = std::exp(sink - largest);
      }
      scores = (scores.array() - largest).exp();
      scores /= scores.sum() + rest;
      for (auto [i, j] : llvm::enumerate(visible))
        result.row(t).segment(h * valueWidth, valueWidth) +=
            scores[i] * slice(state.row(1, j), g * valueWidth, valueWidth);
    }
  }
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::ConvOp op, Evaluation &e) {
  OpState &state = e.state();
  int64_t before = state.size();
  state.append(e.getEnvironment().positions, {&e.rows(op.getData())});
  Matrix result = Matrix::Zero(e.tokenCount(), e.rows(op.getData()).cols());
  int64_t k = cast<RankedTensorType>(op.getWeight().getType()).getDimSize(1);
  Matrix weights = e.widened(op.getWeight());
  for (int64_t t = 0; t < e.tokenCount(); ++t) {
    Eigen::Map<const Matrix> w(weights.row(weights.rows() == 1 ? 0 : t).data(), result.cols(), k);
    for (int64_t i = 0; i < k && i <= before + t; ++i) {
      ArrayRef<double> x = state.row(0, before + t - i);
      for (int64_t c = 0; c < result.cols(); ++c)
        result(t, c) += w(c, k - 1 - i) * x[c];
    }
  }
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::ScanOp op, Evaluation &e) {
  OpState &state = e.state();
  const Matrix &gate = e.rows(op.getGate()), &input = e.rows(op.getInput());
  Matrix result(gate.rows(), gate.cols());
  Eigen::RowVectorXd h = Eigen::RowVectorXd::Zero(gate.cols());
  if (state.size() > 0)
    h = slice(state.row(0, state.size() - 1), 0, gate.cols());
  for (int64_t t = 0; t < result.rows(); ++t) {
    h = gate.row(t).cwiseProduct(h) + input.row(t);
    result.row(t) = h;
  }
  state.append(e.getEnvironment().positions, {&result});
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::DecayingMeanOp op, Evaluation &e) {
  OpState &state = e.state();
  const Matrix &key = e.rows(op.getKey()), &value = e.rows(op.getValue()),
               &decay = e.rows(op.getDecay()), &own = e.rows(op.getOwn());
  const int64_t size = key.cols();
  Matrix states(key.rows(), 3 * size), result(key.rows(), size);
  for (int64_t i = 0; i < size; ++i) {
    // Sums of weights over e^greatest, of which one was 1.
    double sum = 0, weights = 0, greatest = -std::numeric_limits<double>::infinity();
    if (state.size() > 0) {
      ArrayRef<double> before = state.row(0, state.size() - 1);
      sum = before[i];
      weights = before[size + i];
      greatest = before[2 * size + i];
    }
    for (int64_t t = 0; t < key.rows(); ++t) {
      auto weighed = [&](double left, double k, double &total, double &all) {
        double top = std::max(left, k), kept = std::exp(left - top), added = std::exp(k - top);
        total = kept * sum + added * value(t, i);
        all = kept * weights + added;
        return top;
      };
      double total = 0, all = 0;
      weighed(greatest, key(t, i) + own(t, i), total, all);
      result(t, i) = total / all;
      greatest = weighed(greatest + decay(t, i), key(t, i), total, all);
      states(t, i) = sum = total;
      states(t, size + i) = weights = all;
      states(t, 2 * size + i) = greatest;
    }
  }
  state.append(e.getEnvironment().positions, {&states});
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

/// exp(d), or exp(−exp(A) d), for each head and row of its state.
static Matrix decaysOf(xf::LinearAttentionOp op, Evaluation &e, int64_t heads, int64_t rows) {
  const Matrix &steps = e.rows(op.getDecay());
  Matrix rates = op.getRates() ? e.widened(op.getRates()) : Matrix();
  Matrix result(steps.rows(), heads * rows);
  auto entry = [&](const Matrix &of, int64_t t, int64_t h, int64_t k) {
    return of(of.rows() == 1 ? 0 : t, of.cols() == heads ? h : h * rows + k);
  };
  for (int64_t t = 0; t < steps.rows(); ++t)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t k = 0; k < rows; ++k) {
        double exponent = entry(steps, t, h, k);
        if (op.getRates())
          exponent *= -std::exp(entry(rates, t, h, k));
        result(t, h * rows + k) = std::exp(exponent);
      }
  return result;
}

static llvm::Error evaluateOp(xf::LinearAttentionOp op, Evaluation &e) {
  auto shape = [](Value v) { return cast<RankedTensorType>(v.getType()).getShape(); };
  const int64_t groups = shape(op.getKey())[0], K = shape(op.getKey())[1],
                heads = shape(op.getValue())[0], V = shape(op.getValue())[1];
  OpState &state = e.state();
  const Matrix &query = e.rows(op.getQuery()), &key = e.rows(op.getKey()),
               &value = e.rows(op.getValue());
  const Matrix decays = decaysOf(op, e, heads, K);
  Matrix states(e.tokenCount(), heads * K * V), result(e.tokenCount(), heads * V);
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t g = h * groups / heads;
    Matrix S = Matrix::Zero(K, V);
    if (state.size() > 0)
      S = Eigen::Map<const Matrix>(slice(state.row(0, state.size() - 1), h * K * V, K * V).data(),
                                   K, V);
    for (int64_t t = 0; t < e.tokenCount(); ++t) {
      auto q = query.row(t).segment(g * K, K), k = key.row(t).segment(g * K, K);
      S = decays.row(t).segment(h * K, K).transpose().asDiagonal() * S;
      Eigen::RowVectorXd u = value.row(t).segment(h * V, V);
      if (op.getDelta())
        u = e.rows(op.getDelta())(t, h) * (u - k * S);
      S += k.transpose() * u;
      result.row(t).segment(h * V, V) = q * S;
      Eigen::Map<Matrix>(states.row(t).data() + h * K * V, K, V) = S;
    }
  }
  state.append(e.getEnvironment().positions, {&states});
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

void attachContextualOps(MLIRContext &context) {
  attach<xf::AttentionOp, xf::ConvOp, xf::ScanOp, xf::DecayingMeanOp, xf::LinearAttentionOp>(
      context);
}

} // namespace ctxc::reference
