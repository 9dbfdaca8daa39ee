// The meaning of the ops of mixtures of experts.
#include "MatrixOps.h"
#include "Models.h"
#include "ctxc/Numerics/Selection.h"

using namespace mlir;

namespace ctxc::reference {

static llvm::Error evaluateOp(xf::TopKOp op, Evaluation &e) {
  const Matrix &scores = e.rows(op.getScores());
  Matrix result(scores.rows(), op.getK());
  for (int64_t t = 0; t < scores.rows(); ++t) {
    Eigen::RowVectorXd row = scores.row(t);
    for (auto [slot, index] : llvm::enumerate(selectTop(llvm::ArrayRef(row.data(), row.size()),
                                                        op.getK(), op.getGroups(), op.getKeep())))
      result(t, slot) = index;
  }
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

/// The indices that a selection holds for token `t`, below `count`.
static llvm::Expected<std::vector<int64_t>> selected(Operation *op, const Matrix &selection,
                                                     int64_t t, int64_t count) {
  std::vector<int64_t> indices(selection.cols());
  for (int64_t j = 0; j < selection.cols(); ++j) {
    indices[j] = selection(t, j);
    if (indices[j] < 0 || indices[j] >= count)
      return errorAt(op, "is given the index " + Twine(indices[j]) + "; there are " + Twine(count) +
                             " entries");
  }
  return indices;
}

static llvm::Error evaluateOp(xf::GatherOp op, Evaluation &e) {
  const Matrix &selection = e.rows(op.getSelected());
  Matrix data = e.widened(op.getData());
  int64_t count = cast<RankedTensorType>(op.getData().getType()).getDimSize(0);
  int64_t entry = data.cols() / count; // elements
  Matrix result(selection.rows(), selection.cols() * entry);
  for (int64_t t = 0; t < result.rows(); ++t) {
    auto indices = selected(op, selection, t, count);
    if (!indices)
      return indices.takeError();
    for (auto [j, index] : llvm::enumerate(*indices))
      result.row(t).segment(j * entry, entry) =
          data.row(data.rows() == 1 ? 0 : t).segment(index * entry, entry);
  }
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

llvm::Error expertLinear(Operation *op, Evaluation &e, const ExpertOperands &given, Value to) {
  const Matrix &selection = e.rows(given.selected);
  auto type = cast<RankedTensorType>(to.getType());
  int64_t k = type.getDimSize(0), out = type.getDimSize(1);
  bool one = cast<RankedTensorType>(given.data.getType()).getRank() == 1;
  Matrix data = e.rows(given.data);
  int64_t tokens = data.rows(), in = one ? data.cols() : data.cols() / k;
  if (roundsVectors(given.bank) && !given.transposed) {
    data = roundedToBytes(Eigen::Map<const Matrix>(data.data(), data.size() / in, in));
    data.resize(tokens, data.size() / tokens);
  }
  Matrix result(data.rows(), k * out);
  for (int64_t t = 0; t < data.rows(); ++t) {
    StoredTensor bank = e.stored(given.bank, t);
    auto indices = selected(op, selection, t, bank.shape.front());
    if (!indices)
      return indices.takeError();
    for (auto [j, index] : llvm::enumerate(*indices))
      result.row(t).segment(j * out, out) =
          multiply(bank.slice(index), data.row(t).segment(one ? 0 : j * in, in), given.transposed)
              .row(0);
  }
  e.set(to, std::move(result));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::ExpertLinearOp op, Evaluation &e) {
  return expertLinear(op, e, {op.getBank(), op.getSelected(), op.getData(), op.getTransposed()},
                      op.getResult());
}

static llvm::Error evaluateOp(xf::CombineOp op, Evaluation &e) {
  const Matrix &weights = e.rows(op.getWeights()), &data = e.rows(op.getData());
  int64_t d = data.cols() / weights.cols();
  Matrix result = Matrix::Zero(data.rows(), d);
  for (int64_t t = 0; t < data.rows(); ++t)
    for (int64_t j = 0; j < weights.cols(); ++j)
      result.row(t) += weights(t, j) * data.row(t).segment(j * d, d);
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::OuterOp op, Evaluation &e) {
  const Matrix &weights = e.rows(op.getWeights()), &data = e.rows(op.getData());
  int64_t d = data.cols();
  Matrix result(data.rows(), weights.cols() * d);
  for (int64_t t = 0; t < data.rows(); ++t)
    for (int64_t j = 0; j < weights.cols(); ++j)
      result.row(t).segment(j * d, d) = weights(t, j) * data.row(t);
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

void attachMixtureOps(MLIRContext &context) {
  attach<xf::TopKOp, xf::GatherOp, xf::ExpertLinearOp, xf::CombineOp, xf::OuterOp>(context);
}

} // namespace ctxc::reference
