// Sizes of ops, and what they leave a contextual op to read.
#include "dialects/XF/Sizes.h"

#include "dialects/XF/XFSizes.cpp.inc"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::xf;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

//===----------------------------------------------------------------------===//
// Contextual ops
//===----------------------------------------------------------------------===//

bool xf::readsContext(Operation *contextual, ArrayRef<Facts> operands) {
  auto reader = dyn_cast<ContextReadingOpInterface>(contextual);
  return !reader || reader.readsContext(operands);
}

namespace {

struct AttentionReads : ContextReadingOpInterface::ExternalModel<AttentionReads, AttentionOp> {
  // A window of one holds the token itself; it does not look ahead (AttentionOp, C4).
  bool readsContext(Operation *op, ArrayRef<Facts> operands) const {
    auto attention = cast<AttentionOp>(op);
    if (!attention.getWindow())
      return true;
    return operands[attention.getWindowMutable().begin()->getOperandNumber()].getConstant() != 1.0;
  }
};

struct ConvReads : ContextReadingOpInterface::ExternalModel<ConvReads, ConvOp> {
  // One tap is the current token's.
  bool readsContext(Operation *op, ArrayRef<Facts>) const {
    return shapeOf(cast<ConvOp>(op).getWeight())[1] != 1;
  }
};

struct ScanReads : ContextReadingOpInterface::ExternalModel<ScanReads, ScanOp> {
  // A gate that is shut forgets all that was before.
  bool readsContext(Operation *, ArrayRef<Facts> operands) const { return !operands[0].isZero(); }
};

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

template <typename Model, typename Op> struct Sized : SizesOpInterface::ExternalModel<Model, Op> {
  void resize(Operation *, llvm::function_ref<int64_t(int64_t)>) const {}
};

struct ReshapeSizes : Sized<ReshapeSizes, ReshapeOp> {
  SmallVector<SizeRelation> getSizeRelations(Operation *op) const {
    return {{SizeRelation::Product, SmallVector<int64_t, 4>(shapeOf(op->getOperand(0))),
             SmallVector<int64_t, 4>(shapeOf(op->getResult(0)))}};
  }
};

struct SliceSizes : Sized<SliceSizes, SliceOp> {
  SmallVector<SizeRelation> getSizeRelations(Operation *op) const {
    auto slice = cast<SliceOp>(op);
    int64_t all = shapeOf(slice.getData())[slice.getAlong()], from = slice.getFrom(),
            size = shapeOf(slice.getResult())[slice.getAlong()];
    SizeRelation relation{SizeRelation::Sum, {all}, {size}};
    for (int64_t rest : {from, all - from - size})
      if (rest > 0)
        relation.right.push_back(rest);
    return {relation};
  }
  void resize(Operation *op, llvm::function_ref<int64_t(int64_t)> f) const {
    auto slice = cast<SliceOp>(op);
    if (slice.getFrom() > 0)
      slice.setFrom(f(slice.getFrom()));
  }
};

struct ConcatSizes : Sized<ConcatSizes, ConcatOp> {
  SmallVector<SizeRelation> getSizeRelations(Operation *op) const {
    auto concat = cast<ConcatOp>(op);
    SizeRelation relation{SizeRelation::Sum, {shapeOf(concat.getResult())[concat.getAlong()]}, {}};
    for (Value part : concat.getParts())
      relation.right.push_back(shapeOf(part)[concat.getAlong()]);
    return {relation};
  }
};

struct RotarySizes : Sized<RotarySizes, RotaryOp> {
  SmallVector<SizeRelation> getSizeRelations(Operation *op) const {
    int64_t width = shapeOf(op->getOperand(0))[1], pairs = shapeOf(op->getOperand(1))[0];
    SizeRelation relation{SizeRelation::Sum, {width}, {pairs, pairs}};
    if (width > 2 * pairs)
      relation.right.push_back(width - 2 * pairs);
    return {relation};
  }
};

struct AttentionSizes : Sized<AttentionSizes, AttentionOp> {
  SmallVector<SizeRelation> getSizeRelations(Operation *op) const {
    auto attention = cast<AttentionOp>(op);
    return {{SizeRelation::Multiple,
             {shapeOf(attention.getQuery())[0]},
             {shapeOf(attention.getKey())[0]}}};
  }
};

struct LinearAttentionSizes : Sized<LinearAttentionSizes, LinearAttentionOp> {
  SmallVector<SizeRelation> getSizeRelations(Operation *op) const {
    auto attention = cast<LinearAttentionOp>(op);
    return {{SizeRelation::Multiple,
             {shapeOf(attention.getValue())[0]},
             {shapeOf(attention.getKey())[0]}}};
  }
};

struct TopKSizes : Sized<TopKSizes, TopKOp> {
  SmallVector<SizeRelation> getSizeRelations(Operation *op) const {
    auto top = cast<TopKOp>(op);
    int64_t entries = shapeOf(top.getScores())[0], groups = top.getGroups();
    if (groups == 1)
      return {};
    return {{SizeRelation::Multiple, {entries}, {2 * groups}, /*fixed=*/true}}; // two of each
  }
  void resize(Operation *op, llvm::function_ref<int64_t(int64_t)> f) const {
    auto top = cast<TopKOp>(op);
    top.setK(f(top.getK()));
  }
};

struct SettingSizes : SizesOpInterface::ExternalModel<SettingSizes, SettingOp> {
  SmallVector<SizeRelation> getSizeRelations(Operation *) const { return {}; }
  /// The numbers of the first rows and columns.
  void resize(Operation *op, llvm::function_ref<int64_t(int64_t)> f) const {
    auto setting = cast<SettingOp>(op);
    auto type = dyn_cast<RankedTensorType>(setting.getType());
    if (!type || !setting.getValueAttr())
      return;
    SmallVector<double> all = SettingOp::numbers(type, setting.getValueAttr());
    SmallVector<int64_t> shape = llvm::map_to_vector(type.getShape(), f);
    auto to = RankedTensorType::get(shape, type.getElementType());
    SmallVector<float> kept;
    for (int64_t i = 0; i < to.getNumElements(); ++i) {
      int64_t at = 0, rest = i, stride = 1;
      for (unsigned d = shape.size(); d-- > 0; rest /= shape[d]) {
        at += std::min(rest % shape[d], type.getDimSize(d) - 1) * stride;
        stride *= type.getDimSize(d);
      }
      kept.push_back(all[at]);
    }
    setting.setValueAttr(DenseElementsAttr::get(to, ArrayRef(kept)));
  }
};

} // namespace

void xf::attachSizeModels(MLIRContext &context) {
  AttentionOp::attachInterface<AttentionReads, AttentionSizes>(context);
  ConvOp::attachInterface<ConvReads>(context);
  ScanOp::attachInterface<ScanReads>(context);
  LinearAttentionOp::attachInterface<LinearAttentionSizes>(context);
  ReshapeOp::attachInterface<ReshapeSizes>(context);
  SliceOp::attachInterface<SliceSizes>(context);
  ConcatOp::attachInterface<ConcatSizes>(context);
  RotaryOp::attachInterface<RotarySizes>(context);
  TopKOp::attachInterface<TopKSizes>(context);
  SettingOp::attachInterface<SettingSizes>(context);
}
