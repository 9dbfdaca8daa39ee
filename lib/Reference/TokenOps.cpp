// The meaning of xf's sources (parameters, settings, the token) and of its
// functions of a token.
#include "Models.h"
#include "PatchEntries.h"
#include <cmath>

using namespace mlir;

namespace ctxc::reference {

//===----------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------===//

static llvm::Error evaluateOp(xf::ParamOp op, Evaluation &e) {
  Environment &env = e.getEnvironment();
  if (auto given = env.parameters.find(op.getName()); given != env.parameters.end()) {
    e.set(op.getResult(), given->second);
    return llvm::Error::success();
  }
  std::string name = env.layer ? env.layer.getStoredName(op.getName()) : op.getName().str();
  auto type = cast<RankedTensorType>(op.getType());
  StoredTensor parameter;
  parameter.dtype = storageOf(type.getElementType());
  parameter.shape.assign(type.getShape().begin(), type.getShape().end());
  if (isBankName(name)) {
    auto slices = getSlices(env.weights, name, type);
    if (!slices)
      return slices.takeError();
    parameter.slices = std::move(*slices);
  } else {
    llvm::Expected<const void *> data = env.weights.get(name, type);
    if (!data)
      return data.takeError();
    parameter.data = *data;
  }
  e.set(op.getResult(), std::move(parameter));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::SettingOp op, Evaluation &e) {
  xf::LayerOp layer = e.getEnvironment().layer;
  Attribute value = layer ? layer.getSettingValue(op) : op.getValueAttr();
  if (!value)
    return errorAt(op, "'" + op.getName() + "' has no default and no layer gives it");
  SmallVector<double> numbers = xf::SettingOp::numbers(op.getType(), value);
  Eigen::Map<const Eigen::RowVectorXd> row(numbers.data(), numbers.size());
  e.set(op.getResult(), Matrix(row.replicate(e.tokenCount(), 1)));
  return llvm::Error::success();
}

static Matrix column(ArrayRef<int64_t> numbers) {
  Matrix result(numbers.size(), 1);
  for (auto [i, x] : llvm::enumerate(numbers))
    result(i, 0) = x;
  return result;
}

static llvm::Error evaluateOp(xf::TokenOp op, Evaluation &e) {
  auto at = [&](double id) { return double(op.at(int64_t(id))); };
  e.set(op.getResult(), Matrix(column(e.getEnvironment().tokens).unaryExpr(at)));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::PositionOp op, Evaluation &e) {
  auto at = [&](double position) { return double(op.at(int64_t(position))); };
  e.set(op.getResult(), Matrix(column(e.getEnvironment().positions).unaryExpr(at)));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::ConstantOp op, Evaluation &e) {
  e.set(op.getResult(), Matrix(Matrix::Constant(e.tokenCount(), 1, double(op.getId()))));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::EmbedOp op, Evaluation &e) {
  const Matrix &ids = e.rows(op.getId());
  Matrix result(e.tokenCount(), cast<RankedTensorType>(op.getType()).getNumElements());
  for (int64_t t = 0; t < result.rows(); ++t) {
    StoredTensor table = e.stored(op.getTable(), t);
    int64_t id = ids(t, 0);
    if (id < 0 || id >= table.shape[0])
      return errorAt(op, "is given the id " + Twine(id) + "; the table has " +
                             Twine(table.shape[0]) + " rows");
    table.read(id * result.cols(), {result.row(t).data(), static_cast<size_t>(result.cols())});
  }
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Along the last dimension
//===----------------------------------------------------------------------===//

static llvm::Error evaluateOp(xf::NormalizeOp op, Evaluation &e) {
  Matrix result = e.rows(op.getData());
  double eps = op.getEps().convertToDouble();
  Eigen::Map<const Matrix> from = vectors(e.rows(op.getData()), op.getData());
  Eigen::Map<Matrix> to(result.data(), from.rows(), from.cols());
  for (int64_t i = 0; i < to.rows(); ++i) {
    if (op.getKind() == xf::NormKind::sum) {
      to.row(i) /= from.row(i).sum() + eps;
      continue;
    }
    if (op.getKind() == xf::NormKind::layer)
      to.row(i).array() -= from.row(i).mean();
    double squares = to.row(i).squaredNorm();
    if (op.getKind() != xf::NormKind::l2)
      squares /= to.cols();
    to.row(i) /= std::sqrt(squares + eps);
  }
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::SoftmaxOp op, Evaluation &e) {
  Matrix result = e.rows(op.getData());
  Eigen::Map<const Matrix> from = vectors(e.rows(op.getData()), op.getData());
  Eigen::Map<Matrix> to(result.data(), from.rows(), from.cols());
  for (int64_t i = 0; i < to.rows(); ++i) {
    to.row(i) = (from.row(i).array() - from.row(i).maxCoeff()).exp();
    to.row(i) /= to.row(i).sum();
  }
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

template <typename Function>
static llvm::Error map(Evaluation &e, Value data, Value result, Function f) {
  e.set(result, Matrix(e.rows(data).unaryExpr(f)));
  return llvm::Error::success();
}

template <typename Function>
static llvm::Error map(Evaluation &e, Value lhs, Value rhs, Value result, Function f) {
  const Matrix &a = e.rows(lhs), &b = e.rows(rhs);
  // A second operand of one element acts on all of the first.
  if (b.cols() == 1 && a.cols() != 1)
    e.set(result, Matrix(a.binaryExpr(b.replicate(1, a.cols()), f)));
  else
    e.set(result, Matrix(a.binaryExpr(b, f)));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::ActivationOp op, Evaluation &e) {
  xf::ActivationKind kind = op.getKind();
  return map(e, op.getData(), op.getResult(), [=](double x) { return xf::activate(kind, x); });
}

static llvm::Error evaluateOp(xf::SoftcapOp op, Evaluation &e) {
  double cap = op.getCap().convertToDouble();
  return map(e, op.getData(), op.getResult(), [=](double x) { return cap * std::tanh(x / cap); });
}

static llvm::Error evaluateOp(xf::ClampOp op, Evaluation &e) {
  double limit = op.getLimit().convertToDouble();
  double least = op.getAbove() ? -HUGE_VAL : -limit;
  return map(e, op.getData(), op.getResult(),
             [=](double x) { return std::min(std::max(x, least), limit); });
}

static llvm::Error evaluateOp(xf::LeakyOp op, Evaluation &e) {
  double slope = op.getSlope().convertToDouble();
  return map(e, op.getData(), op.getResult(), [=](double x) { return x > 0 ? x : slope * x; });
}

static llvm::Error evaluateOp(xf::PowerOp op, Evaluation &e) {
  return map(e, op.getData(), op.getResult(), [&](double x) { return op.at(x); });
}

static llvm::Error evaluateOp(xf::RoundOp op, Evaluation &e) {
  bool rounds = e.getEnvironment().rounds;
  return map(e, op.getData(), op.getResult(), [&](double x) { return rounds ? op.at(x) : x; });
}

static llvm::Error evaluateOp(xf::TimesOp op, Evaluation &e) {
  double factor = op.getFactor().convertToDouble();
  return map(e, op.getData(), op.getResult(), [=](double x) { return factor * x; });
}

static llvm::Error evaluateOp(xf::AddOp op, Evaluation &e) {
  return map(e, op.getLhs(), op.getRhs(), op.getResult(), [](double a, double b) { return a + b; });
}

static llvm::Error evaluateOp(xf::SubOp op, Evaluation &e) {
  return map(e, op.getLhs(), op.getRhs(), op.getResult(), [](double a, double b) { return a - b; });
}

static llvm::Error evaluateOp(xf::MulOp op, Evaluation &e) {
  return map(e, op.getLhs(), op.getRhs(), op.getResult(), [](double a, double b) { return a * b; });
}

static llvm::Error evaluateOp(xf::DivOp op, Evaluation &e) {
  return map(e, op.getLhs(), op.getRhs(), op.getResult(),
             [](double a, double b) { return b == 0 ? a : a / b; });
}

//===----------------------------------------------------------------------===//
// Shapes and positions
//===----------------------------------------------------------------------===//

static llvm::Error evaluateOp(xf::ReshapeOp op, Evaluation &e) {
  e.set(op.getResult(), Matrix(e.rows(op.getData())));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::TransposeOp op, Evaluation &e) {
  auto from = cast<RankedTensorType>(op.getData().getType()).getShape();
  auto to = cast<RankedTensorType>(op.getType()).getShape();
  SmallVector<int64_t> strides(from.size(), 1); // of the data's dimensions
  for (size_t i = from.size() - 1; i-- > 0;)
    strides[i] = strides[i + 1] * from[i + 1];
  const Matrix &data = e.rows(op.getData());
  Matrix result(data.rows(), data.cols());
  for (int64_t i = 0; i < result.cols(); ++i) {
    int64_t at = 0, rest = i;
    for (size_t dim = to.size(); dim-- > 0; rest /= to[dim])
      at += rest % to[dim] * strides[op.getOrder()[dim]];
    result.col(i) = data.col(at);
  }
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

/// A value of `shape` divided along one dimension: `count` groups of entries of `entry` elements.
struct Stretches {
  int64_t count = 1, entry = 1;
  Stretches(ArrayRef<int64_t> shape, int64_t along) {
    for (int64_t dim : shape.take_front(along))
      count *= dim;
    for (int64_t dim : shape.drop_front(along + 1))
      entry *= dim;
  }
};

static llvm::Error evaluateOp(xf::SliceOp op, Evaluation &e) {
  auto from = cast<RankedTensorType>(op.getData().getType()).getShape();
  auto type = cast<RankedTensorType>(op.getType());
  int64_t along = op.getAlong();
  auto [count, entry] = Stretches(from, along);
  int64_t whole = from[along] * entry, taken = type.getDimSize(along) * entry;
  const Matrix &data = e.rows(op.getData());
  Matrix result(data.rows(), count * taken);
  for (int64_t i = 0; i < count; ++i)
    result.middleCols(i * taken, taken) = data.middleCols(i * whole + op.getFrom() * entry, taken);
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::ConcatOp op, Evaluation &e) {
  auto type = cast<RankedTensorType>(op.getType());
  Matrix result(e.tokenCount(), type.getNumElements());
  int64_t count = Stretches(type.getShape(), op.getAlong()).count, at = 0;
  int64_t whole = result.cols() / count;
  for (Value part : op.getParts()) {
    const Matrix &rows = e.rows(part);
    int64_t taken = rows.cols() / count;
    for (int64_t i = 0; i < count; ++i)
      result.middleCols(i * whole + at, taken) = rows.middleCols(i * taken, taken);
    at += taken;
  }
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::PermuteOp op, Evaluation &e) {
  auto shape = cast<RankedTensorType>(op.getType()).getShape();
  auto [count, entry] = Stretches(shape, op.getAlong());
  int64_t whole = shape[op.getAlong()] * entry;
  const Matrix &data = e.rows(op.getData());
  Matrix result(data.rows(), data.cols());
  SmallVector<int64_t> starts = op.getStarts();
  int64_t at = 0;
  for (int64_t part : op.getOrder()) {
    int64_t from = starts[part] * entry, size = op.getParts()[part] * entry;
    for (int64_t i = 0; i < count; ++i)
      result.middleCols(i * whole + at, size) = data.middleCols(i * whole + from, size);
    at += size;
  }
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::BroadcastOp op, Evaluation &e) {
  int64_t count = cast<RankedTensorType>(op.getType()).getDimSize(0);
  e.set(op.getResult(), Matrix(e.rows(op.getData()).replicate(1, count)));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::RotaryOp op, Evaluation &e) {
  Matrix result = e.rows(op.getData());
  const Matrix &frequencies = e.rows(op.getFrequencies());
  int64_t n = frequencies.cols();
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getType()).getShape();
  bool half = op.getStyle() == xf::RotaryStyle::half;
  double amplitude = op.getAmplitude().convertToDouble();
  for (int64_t t = 0; t < result.rows(); ++t)
    for (int64_t head = 0; head < shape[0]; ++head)
      for (int64_t i = 0; i < n; ++i) {
        double angle = e.getEnvironment().positions[t] * frequencies(t, i);
        double &x = result(t, head * shape[1] + (half ? i : 2 * i));
        double &y = result(t, head * shape[1] + (half ? i + n : 2 * i + 1));
        double cosine = amplitude * std::cos(angle), sine = amplitude * std::sin(angle);
        double rotated = x * cosine - y * sine;
        y = y * cosine + x * sine;
        x = rotated;
      }
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

void attachTokenOps(MLIRContext &context) {
  attach<xf::ParamOp, xf::SettingOp, xf::TokenOp, xf::PositionOp, xf::ConstantOp, xf::EmbedOp,
         xf::NormalizeOp, xf::SoftmaxOp, xf::ActivationOp, xf::SoftcapOp, xf::ClampOp, xf::LeakyOp,
         xf::PowerOp, xf::RoundOp, xf::TimesOp, xf::AddOp, xf::SubOp, xf::MulOp, xf::DivOp,
         xf::ReshapeOp, xf::TransposeOp, xf::PermuteOp, xf::SliceOp, xf::ConcatOp, xf::BroadcastOp,
         xf::RotaryOp>(context);
}

} // namespace ctxc::reference
