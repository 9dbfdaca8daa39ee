// Gradients of xf's parameterised ops: linear, bias, scale.
#include "Models.h"
#include "ctxc/Numerics/Dense.h"
#include "ctxc/Support/Error.h"

using namespace mlir;

namespace ctxc::gradient {

using ConstMatrix = Eigen::Map<const Rows>;
using FloatProduct = void(const float *, int64_t, const float *, int64_t, int64_t, float *,
                          ParallelRanges);

/// a wᵀ, or a w.
static Rows multiply(const Tape &tape, const Eigen::Ref<const Rows> &a, const ConstMatrix &w,
                     bool isTransposed) {
  Rows c(a.rows(), isTransposed ? w.rows() : w.cols());
  auto *product = isTransposed ? static_cast<FloatProduct *>(multiplyTransposed) : ctxc::multiply;
  product(a.data(), a.rows(), w.data(), c.cols(), a.cols(), c.data(), tape.getThreads());
  return c;
}

static llvm::Expected<ConstMatrix> matrixOf(xf::LinearOp op, const Tape &tape) {
  auto numbers = tape.parameter(op, op.getWeight());
  if (!numbers)
    return numbers.takeError();
  ArrayRef<int64_t> shape = shapeOf(op.getWeight());
  return ConstMatrix(*numbers, shape[0], shape[1]);
}

/// The rows of W that entry k of each token's product is made with, one after the other.
template <typename Body>
static void overChosen(const Tape &tape, ArrayRef<int32_t> entries, Body body) {
  const int64_t each = entries.size() / tape.count();
  overRows(tape, tape.count(), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t k = 0; k < each; ++k)
        body(t, k, entries[t * each + k]);
  });
}

static llvm::Error evaluateOp(xf::LinearOp op, Tape &tape) {
  if (!tape.isNeeded(op.getResult()))
    return llvm::Error::success();
  auto w = matrixOf(op, tape);
  if (!w)
    return w.takeError();
  const Rows &data = tape.rows(op.getData());
  if (ArrayRef<int32_t> entries = tape.chosenEntries(op.getResult()); !entries.empty()) {
    if (op.getTransposed())
      return makeError("the matrix of the logits is stored transposed; this model cannot be "
                       "refined");
    Rows y(tape.count(), entries.size() / tape.count());
    overChosen(tape, entries, [&](int64_t t, int64_t k, int32_t entry) {
      y(t, k) = w->row(entry).dot(data.row(t));
    });
    tape.set(op.getResult(), std::move(y));
    return llvm::Error::success();
  }
  auto x = vectors(data, shapeOf(op.getData()).back());
  Rows y = multiply(tape, x, *w, !op.getTransposed());
  y.resize(tape.count(), y.size() / tape.count());
  tape.set(op.getResult(), std::move(y));
  return llvm::Error::success();
}

static llvm::Error pullBackOp(xf::LinearOp op, Tape &tape) {
  if (!tape.isActive(op.getData()))
    return llvm::Error::success();
  auto w = matrixOf(op, tape);
  if (!w)
    return w.takeError();
  const Rows &dy = tape.gradient(op.getResult());
  Rows dx;
  if (ArrayRef<int32_t> entries = tape.chosenEntries(op.getResult()); !entries.empty()) {
    dx.setZero(tape.count(), w->cols());
    overChosen(tape, entries,
               [&](int64_t t, int64_t k, int32_t entry) { dx.row(t) += dy(t, k) * w->row(entry); });
  } else {
    auto rows = vectors(dy, shapeOf(op.getResult()).back());
    tape.tellProduct(op.getWeight(), vectors(tape.rows(op.getData()), shapeOf(op.getData()).back()),
                     rows);
    dx = multiply(tape, rows, *w, op.getTransposed());
    dx.resize(tape.count(), dx.size() / tape.count());
  }
  tape.add(op.getData(), dx);
  return llvm::Error::success();
}

/// A stored vector, which the last dimensions of the data share.
static llvm::Expected<Eigen::Map<const Eigen::RowVectorXf>> vectorOf(Operation *op, Value stored,
                                                                     const Tape &tape) {
  auto numbers = tape.parameter(op, stored);
  if (!numbers)
    return numbers.takeError();
  return Eigen::Map<const Eigen::RowVectorXf>(
      *numbers, cast<RankedTensorType>(stored.getType()).getNumElements());
}

static llvm::Error evaluateOp(xf::BiasOp op, Tape &tape) {
  auto bias = vectorOf(op, op.getBias(), tape);
  if (!bias)
    return bias.takeError();
  Rows y = tape.rows(op.getData());
  if (ArrayRef<int32_t> entries = tape.chosenEntries(op.getData()); !entries.empty())
    overChosen(tape, entries,
               [&](int64_t t, int64_t k, int32_t entry) { y(t, k) += (*bias)[entry]; });
  else
    vectors(y, bias->size()).rowwise() += *bias;
  tape.set(op.getResult(), std::move(y));
  return llvm::Error::success();
}

static llvm::Error pullBackOp(xf::BiasOp op, Tape &tape) {
  const Rows dy = tape.gradient(op.getResult());
  if (Eigen::VectorXd *sum = tape.sumOf(op.getBias()))
    *sum += vectors(dy, sum->size()).cast<double>().colwise().sum().transpose();
  tape.add(op.getData(), dy);
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::ScaleOp op, Tape &tape) {
  if (!tape.chosenEntries(op.getData()).empty())
    return makeError("'" + op->getName().getStringRef() +
                     "' follows the matrix of the logits; this model cannot be refined");
  auto scale = vectorOf(op, op.getScale(), tape);
  if (!scale)
    return scale.takeError();
  Rows y = tape.rows(op.getData());
  auto each = vectors(y, scale->size());
  each.array().rowwise() *= scale->array() + op.getOffset().convertToFloat();
  tape.set(op.getResult(), std::move(y));
  return llvm::Error::success();
}

static llvm::Error pullBackOp(xf::ScaleOp op, Tape &tape) {
  auto scale = vectorOf(op, op.getScale(), tape);
  if (!scale)
    return scale.takeError();
  Rows dy = tape.gradient(op.getResult());
  if (Eigen::VectorXd *sum = tape.sumOf(op.getScale()))
    *sum += vectors(dy, sum->size())
                .cwiseProduct(vectors(tape.rows(op.getData()), sum->size()))
                .cast<double>()
                .colwise()
                .sum()
                .transpose();
  auto each = vectors(dy, scale->size());
  each.array().rowwise() *= scale->array() + op.getOffset().convertToFloat();
  tape.add(op.getData(), dy);
  return llvm::Error::success();
}

void attachMatrixOps(MLIRContext &context) {
  attach<xf::LinearOp, xf::BiasOp, xf::ScaleOp>(context);
}

} // namespace ctxc::gradient
