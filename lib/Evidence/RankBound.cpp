#include "RankBound.h"
#include <Eigen/QR>
#include <Eigen/SVD>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

static int64_t sizeOf(Value v) { return cast<RankedTensorType>(v.getType()).getNumElements(); }

/// `rows` without what they have in the directions of `fixed`.
static Eigen::MatrixXd without(const Eigen::MatrixXd &fixed, Eigen::MatrixXd rows) {
  if (fixed.rows() == 0)
    return rows;
  // As many directions as there are vectors, even where fewer would do: the bound holds for all.
  Eigen::HouseholderQR<Eigen::MatrixXd> qr(fixed.transpose());
  Eigen::MatrixXd basis = qr.householderQ() * Eigen::MatrixXd::Identity(fixed.cols(), fixed.rows());
  for (int i = 0; i < 2; ++i) // twice, so that the rows are orthogonal to the last digit
    rows -= Eigen::MatrixXd(rows * basis) * basis.transpose();
  return rows;
}

llvm::Expected<Separation> ctxc::separateByRank(xf::BlockOp block, ArrayRef<OutputSpan> spans,
                                                const Sample &sample, const RunSource &from,
                                                const Vector &full) {
  Separation best;
  if (spans.empty())
    return best;
  auto state = keptState(block, sample, from);
  if (!state)
    return state.takeError();
  int64_t token = 0, position = sample.contextSize();
  Environment environment{from.weights, from.layer, token, position, {{std::nullopt, &*state}}};
  environment.parameters = from.parameters;
  Evaluation reduced(environment);
  if (auto outputs = evaluateBlock(block, sample.reduced, reduced); !outputs)
    return outputs.takeError();

  SmallVector<int64_t> begins; // of each output
  int64_t total = 0;
  ValueRange outputs = block.getBody().front().getTerminator()->getOperands();
  for (Value output : outputs) {
    begins.push_back(total);
    total += sizeOf(output);
  }
  for (const OutputSpan &span : spans) {
    int64_t n = span.outputs.size(), d = sizeOf(outputs[span.outputs.front()]),
            moving = span.moving.size();
    Eigen::MatrixXd rows(n, d), fixed(span.fixed.size(), d);
    for (int64_t i = 0; i < n; ++i)
      rows.row(i) = full.segment(begins[span.outputs[i]], d).transpose();
    for (auto [i, value] : llvm::enumerate(span.fixed))
      fixed.row(i) = reduced.widened(value).row(0);
    if (!fixed.allFinite())
      continue;
    Eigen::JacobiSVD<Eigen::MatrixXd> svd(without(fixed, rows),
                                          Eigen::ComputeThinU | Eigen::ComputeThinV);
    Vector left = svd.singularValues();
    left.head(std::min<int64_t>(moving, left.size())).setZero();
    double distance = left.norm();
    if (!(distance > best.distance))
      continue;
    Eigen::MatrixXd beyond = svd.matrixU() * left.asDiagonal() * svd.matrixV().transpose();
    best.distance = best.attained = distance;
    best.direction = Vector::Zero(total);
    for (int64_t i = 0; i < n; ++i)
      best.direction.segment(begins[span.outputs[i]], d) = beyond.row(i).transpose() / distance;
  }
  return best;
}
