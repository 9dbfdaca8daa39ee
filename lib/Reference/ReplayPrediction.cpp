#include "ReplayPrediction.h"
#include "ctxc/Numerics/ReplayError.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

static ArrayRef<double> only(const Matrix &rows) {
  return {rows.data(), static_cast<size_t>(rows.size())};
}

/// The inner products vᵀ z of several slots are alike, so that the first is enough.
static double ofRank1(patch::Rank1Op op, const Evaluation &e) {
  int64_t n = cast<RankedTensorType>(op.getV().getType()).getShape().back();
  double inner = e.rows(op.getV()).row(0).head(n).dot(e.rows(op.getData()).row(0).head(n));
  return predictedRank1ReplayError(only(e.rows(op.getCurrent())), only(e.rows(op.getU())), inner);
}

static double ofScale(patch::SolveScaleOp op, const Evaluation &e) {
  Matrix scale = e.widened(op.getScale()) + e.rows(op.getResult());
  scale.array() += op.getOffset().convertToDouble();
  auto norm = op.getData().getDefiningOp<xf::NormalizeOp>();
  auto type = cast<RankedTensorType>(op.getData().getType());
  if (!norm || norm.getKind() != xf::NormKind::rms || type.getRank() != 1) {
    // A scale of any vector n: as if n came from a norm that divides by 1.
    const Matrix &n = e.rows(op.getData());
    return predictedScaleReplayError(only(scale), only(n), only(n),
                                     std::max(0.0, 1 - n.squaredNorm() / n.size()));
  }
  Value target = norm.getData(), data = target;
  if (auto patched = target.getDefiningOp<patch::ApplyRank1Op>())
    data = patched.getBase();
  return predictedScaleReplayError(only(scale), only(e.rows(target)), only(e.rows(data)),
                                   norm.getEps().convertToDouble());
}

double reference::predictReplayError(xf::BlockOp dual, const Evaluation &evaluation) {
  patch::StoreOp last;
  for (patch::StoreOp store : dual.getBody().getOps<patch::StoreOp>())
    last = store;
  if (!last)
    return 0;
  Operation *maker = last.getParts().front().getDefiningOp();
  if (auto rank1 = dyn_cast_or_null<patch::Rank1Op>(maker))
    return ofRank1(rank1, evaluation);
  if (auto scale = dyn_cast_or_null<patch::SolveScaleOp>(maker))
    return ofScale(scale, evaluation);
  if (auto bias = dyn_cast_or_null<xf::SubOp>(maker)) // Δb = target − current
    return predictedRank1ReplayError(only(evaluation.rows(bias.getRhs())),
                                     only(evaluation.rows(bias.getResult())), 1);
  return 0;
}
