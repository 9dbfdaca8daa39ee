// The meaning of xf's parameterised ops: linear, bias, scale.
#include "MatrixOps.h"
#include "CountedMatrix.h"
#include "Models.h"
#include "ctxc/Numerics/ByteVectors.h"
#include "dialects/Kernel/IntegerProducts.h"

using namespace mlir;

namespace ctxc::reference {

/// How many numbers are widened at a time, so that no whole matrix is held in float64.
static constexpr int64_t rowsAtOnce = 64;

Matrix multiply(const StoredTensor &w, const Eigen::Ref<const Matrix> &x, bool transposed) {
  int64_t rows = w.shape[0], columns = w.shape[1];
  Matrix y = Matrix::Zero(x.rows(), transposed ? columns : rows);
  if (w.counter) {
    CountedMatrix matrix(*w.counter, rows, columns);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < matrix.perRow(); ++i) {
        int64_t column = matrix.column(row, i), from = transposed ? row : column;
        y.col(transposed ? column : row) += matrix.number(row, i) * x.col(from);
      }
    return y;
  }
  for (int64_t first = 0; first < rows; first += rowsAtOnce) {
    Matrix piece(std::min(rowsAtOnce, rows - first), columns);
    w.read(first * columns, all(piece));
    if (transposed)
      y.noalias() += x.middleCols(first, piece.rows()) * piece;
    else
      y.middleCols(first, piece.rows()).noalias() = x * piece.transpose();
  }
  return y;
}

bool roundsVectors(Value weight) {
  auto param = weight.getDefiningOp<xf::ParamOp>();
  return param && kernel::isInteger(param);
}

Matrix roundedToBytes(const Eigen::Ref<const Matrix> &x) {
  int64_t width = x.cols();
  std::vector<float> single(width);
  std::vector<ctxc_byte_span> spans(llvm::divideCeil(width, int64_t(CTXC_BYTE_SPAN)));
  Matrix rounded(x.rows(), width);
  for (int64_t row = 0; row < x.rows(); ++row) {
    for (int64_t i = 0; i < width; ++i)
      single[i] = float(x(row, i));
    ctxc_round_to_bytes(single.data(), 0, 1, width, spans.data());
    for (int64_t i = 0; i < width; ++i) {
      const ctxc_byte_span &span = spans[i / CTXC_BYTE_SPAN];
      rounded(row, i) = double(span.scales[i % CTXC_BYTE_SPAN / CTXC_BYTE_GROUP]) *
                        span.numbers[i % CTXC_BYTE_SPAN];
    }
  }
  return rounded;
}

Matrix linear(Evaluation &e, Value weight, Value data, bool transposed) {
  Eigen::Map<const Matrix> given = vectors(e.rows(data), data);
  bool isRounded = roundsVectors(weight) && !transposed;
  Matrix rounded = isRounded ? roundedToBytes(given) : Matrix();
  const auto x =
      isRounded ? Eigen::Map<const Matrix>(rounded.data(), rounded.rows(), rounded.cols()) : given;
  int64_t perToken = x.rows() / e.tokenCount();
  ArrayRef<int64_t> shape = cast<RankedTensorType>(weight.getType()).getShape();
  Matrix y(x.rows(), shape[transposed ? 1 : 0]);
  if (e.isShared(weight))
    y = multiply(e.stored(weight, 0), x, transposed);
  else
    for (int64_t t = 0; t < e.tokenCount(); ++t)
      y.middleRows(t * perToken, perToken) =
          multiply(e.stored(weight, t), x.middleRows(t * perToken, perToken), transposed);
  y.resize(e.tokenCount(), y.size() / e.tokenCount());
  return y;
}

static llvm::Error evaluateOp(xf::LinearOp op, Evaluation &e) {
  e.set(op.getResult(), linear(e, op.getWeight(), op.getData(), op.getTransposed()));
  return llvm::Error::success();
}

/// `f(x, p)` elementwise, where a parameter of the data's last dimensions is
/// shared by the leading ones.
template <typename Function>
static Matrix join(Evaluation &e, Value data, Value parameter, Function f) {
  Matrix result = e.rows(data), p = e.widened(parameter);
  for (int64_t t = 0; t < result.rows(); ++t)
    for (int64_t i = 0; i < result.cols(); ++i)
      result(t, i) = f(result(t, i), p(p.rows() == 1 ? 0 : t, i % p.cols()));
  return result;
}

static llvm::Error evaluateOp(xf::BiasOp op, Evaluation &e) {
  e.set(op.getResult(),
        join(e, op.getData(), op.getBias(), [](double x, double b) { return x + b; }));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::ScaleOp op, Evaluation &e) {
  double offset = op.getOffset().convertToDouble();
  e.set(op.getResult(),
        join(e, op.getData(), op.getScale(), [=](double x, double m) { return (offset + m) * x; }));
  return llvm::Error::success();
}

void attachMatrixOps(MLIRContext &context) {
  attach<xf::LinearOp, xf::BiasOp, xf::ScaleOp>(context);
}

} // namespace ctxc::reference
