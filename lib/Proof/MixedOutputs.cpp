// Outputs that are combinations of the same vectors, with numbers that patches may change. Without
// what they have in the directions of the vectors that no patch moves they have no more dimensions
// than vectors are moved, and a full run that has more is out of reach (Eckart and Young).
#include "Claims.h"
#include "Numbers.h"
#include "dialects/XF/Sizes.h"
#include <Eigen/QR>
#include <Eigen/SVD>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::proof;

namespace {
/// Takes a value apart into terms, and these into vectors by which numbers are multiplied.
class Apart {
public:
  explicit Apart(const Flow &flow) : flow(flow), moved(flow.moved({})) {}

  void take(Operation *reader, Value value) {
    auto param = value.getDefiningOp<xf::ParamOp>();
    if (param ? !flow.mayChange(reader, value) : !moved.contains(value)) {
      fixed.insert(value);
      return;
    }
    if (!seen.insert(value).second)
      return;
    Operation *op = value.getDefiningOp();
    if (std::optional<unsigned> vector = xf::multipliedOperand(op))
      return take(op, op->getOperand(*vector));
    auto speaker = dyn_cast<xf::FactsOpInterface>(op);
    SmallVector<xf::SumTerm> terms = speaker ? speaker.getSumTerms() : SmallVector<xf::SumTerm>();
    moving += terms.empty();
    for (xf::SumTerm term : terms)
      take(op, op->getOperand(term.operand));
  }

  Values fixed;
  int64_t moving = 0;

private:
  const Flow &flow;
  Values moved, seen;
};
} // namespace

std::optional<MixedOutputs> proof::mixedOutputs(const Flow &flow, ArrayRef<int64_t> outputs) {
  Apart apart(flow);
  Values known;
  int64_t size = -1;
  for (int64_t i : outputs) {
    if (i >= int64_t(flow.outputs().size()))
      return std::nullopt;
    Value output = flow.outputs()[i];
    if (!known.insert(output).second || (size >= 0 && sizeOf(output) != size))
      return std::nullopt;
    size = sizeOf(output);
    apart.take(flow.body().getTerminator(), output);
  }
  int64_t fixed = apart.fixed.size();
  if (apart.moving < 1 || apart.moving >= int64_t(outputs.size()) || fixed + apart.moving >= size)
    return std::nullopt;
  return MixedOutputs{SmallVector<Value>(apart.fixed.begin(), apart.fixed.end()), apart.moving};
}

double proof::distanceOf(const MixedOutputs &mixed, const BlockRun &reduced, const Vector &target,
                         int64_t outputs) {
  int64_t size = target.size() / outputs, count = mixed.fixed.size();
  Eigen::MatrixXd rows = Eigen::Map<const Matrix>(target.data(), outputs, size);
  Eigen::MatrixXd fixed(size, count);
  for (auto [i, value] : llvm::enumerate(mixed.fixed))
    fixed.col(i) = reduced.values.widened(value).row(0).transpose();
  if (!fixed.allFinite())
    return 0;
  if (count > 0) {
    Eigen::HouseholderQR<Eigen::MatrixXd> qr(fixed);
    Eigen::MatrixXd basis = qr.householderQ() * Eigen::MatrixXd::Identity(size, count);
    for (int i = 0; i < 2; ++i) // to the last digit
      rows -= Eigen::MatrixXd(rows * basis) * basis.transpose();
  }
  Vector left = Eigen::JacobiSVD<Eigen::MatrixXd>(rows).singularValues();
  left.head(std::min<int64_t>(mixed.moving, left.size())).setZero();
  return left.norm();
}
