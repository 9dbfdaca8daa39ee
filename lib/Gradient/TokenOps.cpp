// Gradients of functions of a token, entry by entry or along the last dimension.
#include "Models.h"
#include "dialects/XF/Functions.h"
#include <cmath>

using namespace mlir;

namespace ctxc::gradient {

//===----------------------------------------------------------------------===//
// Along the last dimension
//===----------------------------------------------------------------------===//

/// What a normalisation subtracts from x, and what it divides the rest by.
struct Norm {
  float mean = 0, size = 0;
};

template <typename Row> static Norm normOf(xf::NormKind kind, double eps, const Row &x) {
  const double sum = x.template cast<double>().sum();
  const double squares = x.template cast<double>().squaredNorm();
  const int64_t n = x.size();
  switch (kind) {
  case xf::NormKind::rms:
    return {0, float(std::sqrt(squares / n + eps))};
  case xf::NormKind::layer: {
    const double mean = sum / n;
    const double variance = (x.template cast<double>().array() - mean).square().mean();
    return {float(mean), float(std::sqrt(variance + eps))};
  }
  case xf::NormKind::l2:
    return {0, float(std::sqrt(squares + eps))};
  case xf::NormKind::sum:
    return {0, float(sum + eps)};
  }
  llvm_unreachable("all kinds are above");
}

static llvm::Error evaluateOp(xf::NormalizeOp op, Tape &tape) {
  Rows y = tape.rows(op.getData());
  auto each = vectors(y, lastWidth(y, op.getData()));
  const double eps = op.getEps().convertToDouble();
  overRows(tape, each.rows(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Norm norm = normOf(op.getKind(), eps, each.row(i));
      each.row(i) = (each.row(i).array() - norm.mean) / norm.size;
    }
  });
  tape.set(op.getResult(), std::move(y));
  return llvm::Error::success();
}

static llvm::Error pullBackOp(xf::NormalizeOp op, Tape &tape) {
  const Rows &data = tape.rows(op.getData()), &result = tape.rows(op.getResult());
  const int64_t width = lastWidth(data, op.getData());
  auto x = vectors(data, width), y = vectors(result, width);
  Rows gradient = tape.gradient(op.getResult());
  auto d = vectors(gradient, width);
  const double eps = op.getEps().convertToDouble();
  overRows(tape, x.rows(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float size = normOf(op.getKind(), eps, x.row(i)).size;
      const float along = d.row(i).dot(y.row(i)), mean = d.row(i).mean();
      switch (op.getKind()) {
      case xf::NormKind::rms:
        d.row(i) -= along / width * y.row(i);
        break;
      case xf::NormKind::layer:
        d.row(i) -= along / width * y.row(i);
        d.row(i).array() -= mean;
        break;
      case xf::NormKind::l2:
        d.row(i) -= along * y.row(i);
        break;
      case xf::NormKind::sum:
        d.row(i).array() -= along;
        break;
      }
      d.row(i) /= size;
    }
  });
  tape.add(op.getData(), gradient);
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::SoftmaxOp op, Tape &tape) {
  Rows y = tape.rows(op.getData());
  auto each = vectors(y, lastWidth(y, op.getData()));
  for (int64_t i = 0; i < each.rows(); ++i) {
    each.row(i) = (each.row(i).array() - each.row(i).maxCoeff()).exp();
    each.row(i) /= each.row(i).sum();
  }
  tape.set(op.getResult(), std::move(y));
  return llvm::Error::success();
}

static llvm::Error pullBackOp(xf::SoftmaxOp op, Tape &tape) {
  const Rows &result = tape.rows(op.getResult());
  const int64_t width = lastWidth(result, op.getResult());
  auto y = vectors(result, width);
  Rows gradient = tape.gradient(op.getResult());
  auto d = vectors(gradient, width);
  for (int64_t i = 0; i < d.rows(); ++i) {
    const float along = d.row(i).dot(y.row(i));
    d.row(i) = (d.row(i).array() - along) * y.row(i).array();
  }
  tape.add(op.getData(), gradient);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Of one operand, entry by entry
//===----------------------------------------------------------------------===//

template <typename Function>
static llvm::Error map(Tape &tape, Value data, Value result, Function f) {
  const Rows &x = tape.rows(data);
  Rows y(x.rows(), x.cols());
  overRows(tape, x.rows(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = 0; j < x.cols(); ++j)
        y(i, j) = float(f(double(x(i, j))));
  });
  tape.set(result, std::move(y));
  return llvm::Error::success();
}

/// With the derivative at x.
template <typename Function>
static llvm::Error pullThrough(Tape &tape, Value data, Value result, Function derivative) {
  const Rows &x = tape.rows(data);
  Rows d = tape.gradient(result);
  overRows(tape, x.rows(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = 0; j < x.cols(); ++j)
        d(i, j) *= float(derivative(double(x(i, j))));
  });
  tape.add(data, d);
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::ActivationOp op, Tape &tape) {
  return map(tape, op.getData(), op.getResult(),
             [kind = op.getKind()](double x) { return xf::activate(kind, x); });
}
static llvm::Error pullBackOp(xf::ActivationOp op, Tape &tape) {
  return pullThrough(tape, op.getData(), op.getResult(), [kind = op.getKind()](double x) {
    return xf::formulaOf(kind, xf::functions::Dual(x, 1)).slope;
  });
}

static llvm::Error evaluateOp(xf::LeakyOp op, Tape &tape) {
  return map(tape, op.getData(), op.getResult(),
             [slope = op.getSlope().convertToDouble()](double x) { return x > 0 ? x : slope * x; });
}
static llvm::Error pullBackOp(xf::LeakyOp op, Tape &tape) {
  return pullThrough(
      tape, op.getData(), op.getResult(),
      [slope = op.getSlope().convertToDouble()](double x) { return x > 0 ? 1 : slope; });
}

static llvm::Error evaluateOp(xf::PowerOp op, Tape &tape) {
  return map(tape, op.getData(), op.getResult(), [op](double x) mutable { return op.at(x); });
}
static llvm::Error pullBackOp(xf::PowerOp op, Tape &tape) {
  double n = op.getRoot() ? 1.0 / double(op.getExponent()) : double(op.getExponent());
  return pullThrough(tape, op.getData(), op.getResult(), [n](double x) {
    return x == 0 && n < 1 ? 0 : n * std::pow(std::abs(x), n - 1);
  });
}

/// The gradient of what is rounded, as if it was not.
static llvm::Error evaluateOp(xf::RoundOp op, Tape &tape) {
  return map(tape, op.getData(), op.getResult(), [op](double x) mutable { return op.at(x); });
}
static llvm::Error pullBackOp(xf::RoundOp op, Tape &tape) {
  return pullThrough(tape, op.getData(), op.getResult(), [](double) { return 1.0; });
}

static llvm::Error evaluateOp(xf::SoftcapOp op, Tape &tape) {
  return map(tape, op.getData(), op.getResult(),
             [cap = op.getCap().convertToDouble()](double x) { return cap * std::tanh(x / cap); });
}
static llvm::Error pullBackOp(xf::SoftcapOp op, Tape &tape) {
  return pullThrough(tape, op.getData(), op.getResult(),
                     [cap = op.getCap().convertToDouble()](double x) {
                       return 1 - std::pow(std::tanh(x / cap), 2);
                     });
}

static double leastOf(xf::ClampOp op) {
  return op.getAbove() ? -HUGE_VAL : -op.getLimit().convertToDouble();
}
static llvm::Error evaluateOp(xf::ClampOp op, Tape &tape) {
  return map(tape, op.getData(), op.getResult(),
             [least = leastOf(op), limit = op.getLimit().convertToDouble()](double x) {
               return std::min(std::max(x, least), limit);
             });
}
static llvm::Error pullBackOp(xf::ClampOp op, Tape &tape) {
  return pullThrough(tape, op.getData(), op.getResult(),
                     [least = leastOf(op), limit = op.getLimit().convertToDouble()](double x) {
                       return x > least && x < limit;
                     });
}

static llvm::Error evaluateOp(xf::TimesOp op, Tape &tape) {
  tape.set(op.getResult(), tape.rows(op.getData()) * op.getFactor().convertToFloat());
  return llvm::Error::success();
}
static llvm::Error pullBackOp(xf::TimesOp op, Tape &tape) {
  tape.add(op.getData(), tape.gradient(op.getResult()) * op.getFactor().convertToFloat());
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Of two operands, entry by entry
//===----------------------------------------------------------------------===//

static llvm::Error evaluateOp(xf::AddOp op, Tape &tape) {
  tape.set(op.getResult(), tape.rows(op.getLhs()) + tape.rows(op.getRhs()));
  return llvm::Error::success();
}
static llvm::Error pullBackOp(xf::AddOp op, Tape &tape) {
  const Rows d = tape.gradient(op.getResult());
  tape.add(op.getLhs(), d);
  tape.add(op.getRhs(), d);
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::SubOp op, Tape &tape) {
  tape.set(op.getResult(), tape.rows(op.getLhs()) - tape.rows(op.getRhs()));
  return llvm::Error::success();
}
static llvm::Error pullBackOp(xf::SubOp op, Tape &tape) {
  const Rows d = tape.gradient(op.getResult());
  tape.add(op.getLhs(), d);
  tape.add(op.getRhs(), -d);
  return llvm::Error::success();
}

/// A second operand of one element acts on all of the first.
static Rows widened(const Rows &b, int64_t width) {
  return b.cols() == width ? b : Rows(b.replicate(1, width));
}
/// The gradient of such an operand, given those of its repetitions.
static Rows narrowed(const Rows &d, int64_t width) {
  return d.cols() == width ? d : Rows(d.rowwise().sum());
}

static llvm::Error evaluateOp(xf::MulOp op, Tape &tape) {
  const Rows &a = tape.rows(op.getLhs()), &b = tape.rows(op.getRhs());
  tape.set(op.getResult(), a.cwiseProduct(widened(b, a.cols())));
  return llvm::Error::success();
}
static llvm::Error pullBackOp(xf::MulOp op, Tape &tape) {
  const Rows d = tape.gradient(op.getResult());
  const Rows &a = tape.rows(op.getLhs()), &b = tape.rows(op.getRhs());
  tape.add(op.getLhs(), d.cwiseProduct(widened(b, a.cols())));
  tape.add(op.getRhs(), narrowed(d.cwiseProduct(a), b.cols()));
  return llvm::Error::success();
}

/// Each zero counts as 1.
static Rows divisor(const Rows &b, int64_t width) {
  return widened(b, width).unaryExpr([](float x) { return x == 0 ? 1 : x; });
}

static llvm::Error evaluateOp(xf::DivOp op, Tape &tape) {
  const Rows &a = tape.rows(op.getLhs());
  tape.set(op.getResult(), a.cwiseQuotient(divisor(tape.rows(op.getRhs()), a.cols())));
  return llvm::Error::success();
}
static llvm::Error pullBackOp(xf::DivOp op, Tape &tape) {
  const Rows &a = tape.rows(op.getLhs()), &b = tape.rows(op.getRhs());
  const Rows by = divisor(b, a.cols());
  const Rows d = tape.gradient(op.getResult()).cwiseQuotient(by);
  tape.add(op.getLhs(), d);
  Rows ofDivisor = -d.cwiseProduct(a).cwiseQuotient(by);
  const Rows isZero = widened(b, a.cols());
  tape.add(op.getRhs(), narrowed((isZero.array() == 0).select(0, ofDivisor), b.cols()));
  return llvm::Error::success();
}

void attachTokenOps(MLIRContext &context) {
  attach<xf::NormalizeOp, xf::SoftmaxOp, xf::ActivationOp, xf::SoftcapOp, xf::ClampOp, xf::LeakyOp,
         xf::PowerOp, xf::RoundOp, xf::TimesOp, xf::AddOp, xf::SubOp, xf::MulOp, xf::DivOp>(
      context);
}

} // namespace ctxc::gradient
