// The meaning of patch's ops. The longer computations, the inversion
// of a norm and the solving of a scale, are in CtxcNumerics.
#include "MatrixOps.h"
#include "Models.h"
#include "ctxc/Numerics/NormInversion.h"

using namespace mlir;

namespace ctxc::reference {

static llvm::Error evaluateOp(patch::LinearsOp op, Evaluation &e) {
  for (auto [data, result] : llvm::zip(op.getData(), op.getResults()))
    e.set(result, linear(e, op.getWeight(), data, op.getTransposed()));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(patch::ExpertLinearsOp op, Evaluation &e) {
  for (auto [selected, data, result] : llvm::zip(op.getSelected(), op.getData(), op.getResults()))
    if (llvm::Error error =
            expertLinear(op, e, {op.getBank(), selected, data, op.getTransposed()}, result))
      return error;
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Rank-1 changes and deltas
//===----------------------------------------------------------------------===//

static llvm::Error evaluateOp(patch::Rank1Op op, Evaluation &e) {
  Matrix v = e.rows(op.getData());
  Eigen::Map<Matrix> each(v.data(), vectors(v, op.getData()).rows(),
                          vectors(v, op.getData()).cols());
  for (int64_t i = 0; i < each.rows(); ++i) {
    double squares = each.row(i).squaredNorm();
    each.row(i) /= squares == 0 ? 1 : squares;
  }
  e.set(op.getU(), Matrix(e.rows(op.getTarget()) - e.rows(op.getCurrent())));
  e.set(op.getV(), std::move(v));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(patch::ApplyRank1Op op, Evaluation &e) {
  Matrix result = e.rows(op.getBase());
  Eigen::Map<const Matrix> u = vectors(e.rows(op.getU()), op.getU());
  Eigen::Map<const Matrix> v = vectors(e.rows(op.getV()), op.getV());
  Eigen::Map<const Matrix> z = vectors(e.rows(op.getData()), op.getData());
  Eigen::Map<Matrix> y(result.data(), u.rows(), u.cols());
  for (int64_t i = 0; i < y.rows(); ++i)
    y.row(i) += u.row(i) * v.row(i).dot(z.row(i));
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(patch::ApplyExpertRank1Op op, Evaluation &e) {
  Matrix result = e.rows(op.getBase());
  const Matrix &u = e.rows(op.getU()), &v = e.rows(op.getV()), &z = e.rows(op.getData());
  const Matrix &patched = e.rows(op.getPatched()), &selected = e.rows(op.getSelected());
  int64_t k = selected.cols(), out = u.cols() / k, in = v.cols() / k;
  bool one = z.cols() == in; // one vector for all slots
  for (int64_t t = 0; t < result.rows(); ++t)
    for (int64_t j = 0; j < k; ++j)
      for (int64_t i = 0; i < k; ++i)
        if (patched(t, i) == selected(t, j))
          result.row(t).segment(j * out, out) +=
              u.row(t).segment(i * out, out) *
              v.row(t).segment(i * in, in).dot(z.row(t).segment(one ? 0 : j * in, in));
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(patch::SquaredNormsOp op, Evaluation &e) {
  Eigen::Map<const Matrix> data = vectors(e.rows(op.getData()), op.getData());
  Matrix result = data.rowwise().squaredNorm();
  result.resize(e.tokenCount(), result.size() / e.tokenCount());
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(patch::ApplyDeltaOp op, Evaluation &e) {
  Matrix parameter = e.widened(op.getParameter());
  const Matrix &delta = e.rows(op.getDelta());
  Matrix result = delta;
  for (int64_t t = 0; t < result.rows(); ++t)
    result.row(t) += parameter.row(parameter.rows() == 1 ? 0 : t);
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Scales after a norm
//===----------------------------------------------------------------------===//

template <typename Rows> static ArrayRef<double> row(const Rows &m, int64_t i) {
  return {m.data() + i * m.cols(), static_cast<size_t>(m.cols())};
}

/// offset + m, one matrix row for each token or one for all.
static Matrix effectiveScale(Evaluation &e, Value scale, const llvm::APFloat &offset) {
  Matrix m = e.widened(scale);
  m.array() += offset.convertToDouble();
  return m;
}

static llvm::Error evaluateOp(patch::InvertRmsNormOp op, Evaluation &e) {
  Matrix m = effectiveScale(e, op.getScale(), op.getOffset());
  Matrix result(e.tokenCount(), e.rows(op.getTarget()).cols());
  Eigen::Map<const Matrix> g = vectors(e.rows(op.getTarget()), op.getTarget());
  Eigen::Map<const Matrix> data = vectors(e.rows(op.getData()), op.getData());
  if (m.cols() != g.cols())
    return errorAt(op, "scales vectors of " + Twine(g.cols()) + " entries by " + Twine(m.cols()));
  std::vector<double> scratch(scratchDoubles(g.cols()));
  int64_t perToken = g.rows() / e.tokenCount();
  for (int64_t i = 0; i < g.rows(); ++i)
    invertRmsNorm(Update(op.getUpdate()), row(g, i), row(m, m.rows() == 1 ? 0 : i / perToken),
                  row(data, i), op.getEps().convertToDouble(),
                  all(result).slice(i * g.cols(), g.cols()), scratch);
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

static LayerObligations &obligation(Evaluation &e, int64_t index) {
  std::vector<LayerObligations> &counts = e.getEnvironment().obligations;
  if (int64_t(counts.size()) <= index)
    counts.resize(index + 1);
  return counts[index];
}

static llvm::Error evaluateOp(patch::SolveScaleOp op, Evaluation &e) {
  Matrix m = effectiveScale(e, op.getScale(), op.getOffset());
  const Matrix &target = e.rows(op.getTarget()), &data = e.rows(op.getData());
  Matrix result(target.rows(), target.cols());
  for (int64_t t = 0; t < target.rows(); ++t) {
    ScaleCounts counts =
        solveScale(Update(op.getUpdate()), row(target, t), row(m, m.rows() == 1 ? 0 : t),
                   row(data, t), all(result).slice(t * result.cols(), result.cols()));
    obligation(e, op.getIndex()).harmless += counts.harmless;
    obligation(e, op.getIndex()).harmful += counts.harmful;
  }
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Obligations, and loading and storing of patches
//===----------------------------------------------------------------------===//

static llvm::Error evaluateOp(patch::ObligationOp op, Evaluation &e) {
  Eigen::Map<const Matrix> data = vectors(e.rows(op.getData()), op.getData());
  LayerObligations &counts = obligation(e, op.getIndex());
  if (op.getCondition() == patch::Condition::nonzero_elements) {
    counts.harmful += (data.array() == 0).count();
    return llvm::Error::success();
  }
  // A row of changes for each vector: one change, or all changes that use the one vector.
  Matrix changes = op.getChange() ? e.rows(op.getChange()) : Matrix::Ones(data.rows(), 1);
  changes.resize(data.rows(), changes.size() / data.rows());
  for (int64_t i = 0; i < data.rows(); ++i)
    if (data.row(i).squaredNorm() == 0) // which underflows before the entries do
      ++((changes.row(i).array() == 0).all() ? counts.harmless : counts.harmful);
  return llvm::Error::success();
}

static llvm::Error evaluateOp(patch::SameSelectionOp op, Evaluation &e) {
  obligation(e, op.getIndex()).harmful +=
      (e.rows(op.getFull()).array() != e.rows(op.getReduced()).array()).count();
  return llvm::Error::success();
}

static llvm::Error evaluateOp(patch::StoreOp op, Evaluation &e) {
  BlockPatch patch;
  patch.parameter = op.getParameter().str();
  for (Value part : op.getParts())
    patch.parts.push_back(e.rows(part));
  e.getEnvironment().stores.push_back(std::move(patch));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(patch::LoadOp op, Evaluation &e) {
  std::vector<BlockPatch> &loads = e.getEnvironment().loads;
  auto patch =
      llvm::find_if(loads, [&](const BlockPatch &p) { return p.parameter == op.getParameter(); });
  if (patch != loads.end() && patch->parts.size() != op.getNumResults())
    return errorAt(op, "is given " + Twine(patch->parts.size()) + " parts for the patch of '" +
                           op.getParameter() + "', expected " + Twine(op.getNumResults()));
  for (auto [i, part] : llvm::enumerate(op.getParts())) {
    int64_t elements = cast<RankedTensorType>(part.getType()).getNumElements();
    if (patch == loads.end()) {
      e.set(part, Matrix(Matrix::Zero(e.tokenCount(), elements)));
      continue;
    }
    const Matrix &given = patch->parts[i];
    if (given.rows() != 1 || given.cols() != elements)
      return errorAt(op, "is given a patch of '" + op.getParameter() + "' of " +
                             Twine(given.size()) + " numbers, expected " + Twine(elements));
    e.set(part, Matrix(given.replicate(e.tokenCount(), 1)));
  }
  return llvm::Error::success();
}

void attachPatchOps(MLIRContext &context) {
  attach<patch::LinearsOp, patch::ExpertLinearsOp, patch::Rank1Op, patch::ApplyRank1Op,
         patch::ApplyExpertRank1Op, patch::SquaredNormsOp, patch::ApplyDeltaOp,
         patch::InvertRmsNormOp, patch::SolveScaleOp, patch::ObligationOp, patch::SameSelectionOp,
         patch::StoreOp, patch::LoadOp>(context);
}

} // namespace ctxc::reference
