// Writes attention as linalg ops: the products, the scores, their softmax, and the mixed values,
// each for all slots at once.
#include "ctxc/Lowering/LinalgArith.h"
#include "ctxc/Lowering/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;
using utils::IteratorType;

namespace ctxc {
#define GEN_PASS_DEF_GPUEXPANDATTENTION
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

namespace {

class Expansion {
public:
  explicit Expansion(kernel::AttentionOp op) : op(op), b(op), loc(op.getLoc()) {
    bindDims(b.getContext(), s, g, r, t, d);
    sizes = tensor::getMixedSizes(b, loc, op.getQuery());
    sizes.back() = tensor::getMixedSize(b, loc, op.getKeys(), 0);
  }

  Value write() {
    Value all = scores();
    bool hasOwn = bool(op.getOwnScores());
    if (hasOwn)
      all = withOwn(all);
    Value weights = softmax(all);
    Value ofSlots = hasOwn ? part(weights, first(), sizes.back()) : weights;
    Value mixed = markedAs(kernel::Product::Mixed, sumOver(ofSlots, op.getValues(), map5({t, g, d}),
                                                           filled(op.getMixed(), 0)));
    if (!hasOwn)
      return mixed;
    return sumOver(part(weights, sizes.back(), one()), op.getOwnValues(), map5({s, g, d}), mixed);
  }

private:
  using Sizes = SmallVector<OpFoldResult>;
  using Body = llvm::function_ref<Value(OpBuilder &, Location, ValueRange)>;
  static constexpr IteratorType par = IteratorType::parallel, red = IteratorType::reduction;
  OpFoldResult first() { return b.getIndexAttr(0); }
  OpFoldResult one() { return b.getIndexAttr(1); }
  AffineMap map5(ArrayRef<AffineExpr> exprs) { return AffineMap::get(5, 0, exprs, b.getContext()); }

  Value empty(const Sizes &of) { return tensor::EmptyOp::create(b, loc, of, b.getF32Type()); }
  Value filled(Value into, double x) {
    return linalg::FillOp::create(b, loc, constant(b, loc, x), into).getResult(0);
  }
  Value generic(Value init, ValueRange ins, ArrayRef<AffineMap> maps,
                ArrayRef<IteratorType> iterators, Body body) {
    auto made = linalg::GenericOp::create(b, loc, init.getType(), ins, init, maps, iterators,
                                          [&](OpBuilder &nested, Location l, ValueRange a) {
                                            linalg::YieldOp::create(nested, l, body(nested, l, a));
                                          });
    if (op.getCausal() && maps.front().getNumDims() > 3)
      kernel::mark<kernel::Causal>(made);
    return made.getResult(0);
  }
  static Value accumulate(OpBuilder &nested, Location l, ValueRange a) {
    Value product = arith::MulFOp::create(nested, l, a[0], a[1], kFast);
    return arith::AddFOp::create(nested, l, a[2], product, kFast);
  }
  static Value exponential(OpBuilder &nested, Location l, ValueRange a) {
    return math::ExpOp::create(nested, l, sub(nested, l, a[0], a[1]));
  }
  Value markedAs(kernel::Product product, Value value) {
    kernel::KernelDialect::ProductAttrHelper(b.getContext())
        .setAttr(value.getDefiningOp(), kernel::ProductAttr::get(b.getContext(), product));
    return value;
  }

  Value scores() {
    Value products = generic(filled(empty(sizes), 0), {op.getQuery(), op.getKeys()},
                             {map5({s, g, r, d}), map5({t, g, d}), map5({s, g, r, t})},
                             {par, par, par, par, red}, accumulate);
    markedAs(kernel::Product::Scores, products);
    SmallVector<Value> ins{products};
    SmallVector<AffineMap> maps{AffineMap::getMultiDimIdentityMap(4, b.getContext())};
    llvm::append_range(ins, op.getOthers());
    llvm::append_range(maps, op.getMaps().getAsValueRange<AffineMapAttr>());
    maps.push_back(maps.front());
    return generic(empty(sizes), ins, maps, {par, par, par, par},
                   [&](OpBuilder &nested, Location, ValueRange a) {
                     IRMapping inside;
                     inside.map(op.getScore().getArguments(), a.drop_back());
                     for (Operation &inner : op.getScore().front().without_terminator())
                       nested.clone(inner, inside);
                     return inside.lookupOrDefault(op.yielded());
                   });
  }

  /// `count` entries of the last dimension, from `from` on.
  Value part(Value x, OpFoldResult from, OpFoldResult count) {
    auto [offsets, extents, strides] = window(x, from, count);
    return tensor::ExtractSliceOp::create(b, loc, x, offsets, extents, strides);
  }
  std::tuple<Sizes, Sizes, Sizes> window(Value x, OpFoldResult from, OpFoldResult count) {
    Sizes extents = tensor::getMixedSizes(b, loc, x), offsets(extents.size(), first()),
          strides(extents.size(), one());
    offsets.back() = from;
    extents.back() = count;
    return {offsets, extents, strides};
  }

  /// The scores of the slots, and each row's own behind them.
  Value withOwn(Value ofSlots) {
    Sizes more = sizes, single = sizes;
    Value count = getValueOrCreateConstantIndexOp(b, loc, sizes.back());
    more.back() =
        arith::AddIOp::create(b, loc, count, arith::ConstantIndexOp::create(b, loc, 1)).getResult();
    single.back() = one();
    auto type = cast<RankedTensorType>(op.getOwnScores().getType());
    SmallVector<int64_t> shape(type.getShape());
    shape.push_back(1);
    Value own = tensor::ExpandShapeOp::create(
        b, loc, RankedTensorType::get(shape, type.getElementType()), op.getOwnScores(),
        SmallVector<ReassociationIndices>{{0}, {1}, {2, 3}}, single);
    Value all = empty(more);
    for (auto [score, from, length] :
         {std::tuple(ofSlots, first(), sizes.back()), std::tuple(own, sizes.back(), one())}) {
      auto [offsets, extents, strides] = window(all, from, length);
      all = tensor::InsertSliceOp::create(b, loc, score, all, offsets, extents, strides);
    }
    return all;
  }

  Value softmax(Value x) {
    AffineMap all = AffineMap::getMultiDimIdentityMap(4, b.getContext()),
              reduced = all.getMajorSubMap(3),
              heads = AffineMap::getMultiDimIdentityMap(3, b.getContext());
    Sizes few(ArrayRef(sizes).drop_back());
    auto maximum = [](OpBuilder &nested, Location l, ValueRange a) -> Value {
      return arith::MaximumFOp::create(nested, l, a[1], a[0]);
    };
    auto reduce = [&](Value of, double init, Body body) {
      return generic(filled(empty(few), init), {of}, {all, reduced}, {par, par, par, red}, body);
    };
    auto map = [&](Value of, Value with, Body body) {
      return generic(empty(tensor::getMixedSizes(b, loc, of)), {of, with}, {all, reduced, all},
                     {par, par, par, par}, body);
    };
    auto zip = [&](Value of, Value with, Body body) {
      return generic(empty(few), {of, with}, {heads, heads, heads}, {par, par, par}, body);
    };
    Value sinks = op.getSinks();
    Value largest = reduce(x, -INFINITY, maximum);
    if (sinks)
      largest = zip(largest, sinks, maximum);
    Value powers = map(x, largest, exponential);
    Value total = reduce(powers, 0, [](OpBuilder &nested, Location l, ValueRange a) -> Value {
      return arith::AddFOp::create(nested, l, a[1], a[0], kFast);
    });
    if (sinks)
      total = zip(
          total, zip(sinks, largest, exponential),
          [](OpBuilder &nested, Location l, ValueRange a) { return add(nested, l, a[0], a[1]); });
    return map(powers, total, [](OpBuilder &nested, Location l, ValueRange a) {
      return div(nested, l, a[0], a[1]);
    });
  }

  /// Σ_t w_t v_t, slot after slot. The innermost loop is along a value.
  Value sumOver(Value weights, Value values, AffineMap map, Value init) {
    return generic(init, {weights, values}, {map5({s, g, r, t}), map, map5({s, g, r, d})},
                   {par, par, par, red, par}, accumulate);
  }

  kernel::AttentionOp op;
  OpBuilder b;
  Location loc;
  AffineExpr s, g, r, t, d;
  Sizes sizes; ///< of the scores: S × groups × repeat × slots
};

struct GpuExpandAttention : ctxc::impl::GpuExpandAttentionBase<GpuExpandAttention> {
  void runOnOperation() override {
    SmallVector<kernel::AttentionOp> ops;
    getOperation().walk([&](kernel::AttentionOp op) { ops.push_back(op); });
    for (kernel::AttentionOp op : ops) {
      op.getResult().replaceAllUsesWith(Expansion(op).write());
      op.erase();
    }
  }
};

} // namespace
