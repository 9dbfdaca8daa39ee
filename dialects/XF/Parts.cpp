// Ops that put entries together and take them apart are solved for a part of them. Products with a
// number are multiples; that of a vector on a sphere is put together from direction and length.
#include "dialects/XF/Sizes.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace ctxc::xf;

bool ctxc::xf::isDirection(Operation *op) {
  // What else reads it would need its length.
  return isa_and_nonnull<NormalizeOp>(op) && op->hasOneUse() &&
         findDirection(*op->user_begin()) == op;
}

bool ctxc::xf::isLength(Operation *op) {
  auto activation = dyn_cast_or_null<ActivationOp>(op);
  if (!activation || activation.getKind() != ActivationKind::exp || !op->hasOneUse())
    return false;
  OpOperand &use = *op->use_begin();
  return use.getOperandNumber() == 1 && findDirection(use.getOwner());
}

bool ctxc::xf::isSolvedInParts(Operation *op) {
  return isa_and_nonnull<PartsOpInterface>(op) || isDirection(op) || isLength(op) ||
         findDirection(op);
}

bool ctxc::xf::isPartOfResult(Operation *op, unsigned index) {
  auto parts = dyn_cast<PartsOpInterface>(op);
  return (parts && parts.isPartOfResult(index)) || findDirection(op);
}

bool ctxc::xf::isPartOfOperand(Operation *op, unsigned index) {
  auto parts = dyn_cast<PartsOpInterface>(op);
  return parts && parts.isPartOfOperand(index);
}

std::optional<unsigned> ctxc::xf::multipliedOperand(Operation *op) {
  auto multiple = dyn_cast<MultipleOpInterface>(op);
  return multiple ? multiple.getMultipliedOperand() : std::nullopt;
}

NormalizeOp ctxc::xf::findDirection(Operation *op) {
  if (!isa_and_nonnull<MulOp, DivOp>(op) || multipliedOperand(op) != 0u)
    return {};
  auto norm = op->getOperand(0).getDefiningOp<NormalizeOp>();
  bool isOnSphere = norm && (norm.getKind() == NormKind::rms || norm.getKind() == NormKind::l2);
  bool isVector = cast<RankedTensorType>(op->getResult(0).getType()).getRank() == 1;
  return isOnSphere && isVector ? norm : NormalizeOp();
}

static int64_t sizeAlong(Value value, int64_t along) {
  return cast<RankedTensorType>(value.getType()).getDimSize(along);
}

namespace {

/// Whatever the part, it can be solved for.
template <typename Model, typename Op>
struct SolvedExactly : SolvableOpInterface::ExternalModel<Model, Op> {
  Solvability getSolvability(Operation *, unsigned, std::string &) const {
    return Solvability::Exact;
  }
  /// There is one solution, so that nothing is to be split.
  Value buildSplit(Operation *op, OpBuilder &b, unsigned index, Value target, ValueRange operands,
                   Value) const {
    return static_cast<const Model *>(this)->buildSolve(op, b, index, target, operands);
  }
};

struct ConcatSolve : SolvedExactly<ConcatSolve, ConcatOp> {
  Value buildSolve(Operation *op, OpBuilder &b, unsigned index, Value target, ValueRange) const {
    auto concat = cast<ConcatOp>(op);
    int64_t along = concat.getAlong(), from = 0;
    for (Value earlier : concat.getParts().take_front(index))
      from += sizeAlong(earlier, along);
    return SliceOp::create(b, op->getLoc(), op->getOperand(index).getType(), target, from, along);
  }
};

struct SliceSolve : SolvedExactly<SliceSolve, SliceOp> {
  Value buildSolve(Operation *op, OpBuilder &b, unsigned index, Value target,
                   ValueRange operands) const {
    auto slice = cast<SliceOp>(op);
    auto type = cast<RankedTensorType>(slice.getData().getType());
    int64_t along = slice.getAlong(), from = slice.getFrom(),
            end = from + sizeAlong(slice.getResult(), along), all = type.getDimSize(along);
    SmallVector<Value> parts;
    auto keep = [&](int64_t begin, int64_t size) {
      SmallVector<int64_t> shape(type.getShape());
      shape[along] = size;
      if (size > 0)
        parts.push_back(SliceOp::create(b, op->getLoc(),
                                        RankedTensorType::get(shape, type.getElementType()),
                                        operands[index], begin, along));
    };
    keep(0, from);
    parts.push_back(target);
    keep(end, all - end);
    if (parts.size() == 1)
      return target;
    return ConcatOp::create(b, op->getLoc(), type, parts, along);
  }
};

struct ConcatParts : PartsOpInterface::ExternalModel<ConcatParts, ConcatOp> {
  bool isPartOfResult(Operation *op, unsigned) const { return op->getNumOperands() > 1; }
  bool isPartOfOperand(Operation *, unsigned) const { return false; }
};

struct SliceParts : PartsOpInterface::ExternalModel<SliceParts, SliceOp> {
  bool isPartOfResult(Operation *, unsigned) const { return false; }
  bool isPartOfOperand(Operation *, unsigned) const { return true; }
};

/// The left operand, where the right one is a single number.
template <typename Op> struct ByNumber : MultipleOpInterface::ExternalModel<ByNumber<Op>, Op> {
  std::optional<unsigned> getMultipliedOperand(Operation *op) const {
    auto of = cast<Op>(op);
    bool isByNumber = of.getLhs().getType() != of.getRhs().getType();
    return isByNumber ? std::optional(0u) : std::nullopt;
  }
};

} // namespace

void ctxc::xf::attachPartModels(MLIRContext &context) {
  ConcatOp::attachInterface<ConcatSolve, ConcatParts>(context);
  SliceOp::attachInterface<SliceSolve, SliceParts>(context);
  MulOp::attachInterface<ByNumber<MulOp>>(context);
  DivOp::attachInterface<ByNumber<DivOp>>(context);
}
