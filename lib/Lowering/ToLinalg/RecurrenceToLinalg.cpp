// Lowers recurrences of numbers, which become kernel.scan.
#include "ScanBuilder.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ctxc;
using utils::IteratorType;

/// The numbers of a memref in the shape that is carried.
Value ScanBuilder::asParts(Value memref) {
  OpBuilder &b = e.builder;
  auto type = cast<MemRefType>(memref.getType());
  ReassociationIndices all, parts;
  for (int64_t i = 0; i < type.getRank(); ++i)
    all.push_back(i);
  for (size_t i = 0; i < carried.size(); ++i)
    parts.push_back(i);
  if (type.getRank() > 1)
    memref =
        memref::CollapseShapeOp::create(b, e.loc, memref, SmallVector<ReassociationIndices>{all});
  return memref::ExpandShapeOp::create(b, e.loc, carried, memref,
                                       SmallVector<ReassociationIndices>{parts});
}

Value ScanBuilder::build(ArrayRef<int64_t> shape,
                         llvm::function_ref<void(OpBuilder &, Location, ValueRange)> body) {
  OpBuilder &b = e.builder;
  MLIRContext *context = op->getContext();
  SmallVector<int64_t> full{ShapedType::kDynamic};
  llvm::append_range(full, shape);
  auto type = MemRefType::get(full, b.getF32Type());
  // Read behind all ops that make one of them: memory that has been read is given to others.
  SmallVector<Value> reads;
  for (Value tensor : tensors)
    reads.push_back(e.read(tensor));
  Value results = memref::AllocOp::create(b, e.loc, type, ValueRange{e.rows()});
  auto scan = kernel::ScanOp::create(b, e.loc, reads, reshaped(e.before(op)), reshaped(e.after(op)),
                                     results, b.getAffineMapArrayAttr(maps));
  Block &region = scan.getBody().emplaceBlock();
  auto addRest = [&](Value memref, unsigned places) {
    auto whole = cast<MemRefType>(memref.getType());
    ArrayRef<int64_t> rest = whole.getShape().drop_front(places);
    SmallVector<int64_t> strides(rest.size(), 1);
    for (int64_t i = int64_t(rest.size()) - 2; i >= 0; --i)
      strides[i] = strides[i + 1] * rest[i + 1];
    region.addArgument(
        MemRefType::get(rest, whole.getElementType(),
                        StridedLayoutAttr::get(context, ShapedType::kDynamic, strides)),
        e.loc);
  };
  addRest(scan.getBefore(), 1);
  for (auto [read, map] : llvm::zip(scan.getReads(), maps))
    addRest(read, map.getNumResults());
  addRest(results, 2);
  OpBuilder inside = OpBuilder::atBlockBegin(&region);
  body(inside, e.loc, region.getArguments());
  return bufferization::ToTensorOp::create(b, e.loc, RankedTensorType::get(full, b.getF32Type()),
                                           results,
                                           /*restrict=*/true);
}

/// A linalg.generic on memory, over the loops of `iterators`.
void ctxc::overMemory(OpBuilder &b, Location l, ValueRange ins, Value out, ArrayRef<AffineMap> maps,
                      ArrayRef<IteratorType> iterators, KernelEmitter::Body body) {
  linalg::GenericOp::create(b, l, ins, out, maps, iterators,
                            [&](OpBuilder &n, Location at, ValueRange a) {
                              linalg::YieldOp::create(n, at, body(n, at, a));
                            });
}

namespace {

/// Into how many parts a recurrence of `size` numbers is cut, each of which is computed in vectors.
int64_t partsOf(int64_t size) {
  constexpr int64_t mostOfPart = 256;
  int64_t each = std::min(size, mostOfPart);
  while (size % each)
    --each;
  return size / each;
}

/// Rows of any shape as (rows, numbers).
Value flat(KernelEmitter &e, Value rows) {
  int64_t rank = ranked(rows).getRank();
  if (rank == 2)
    return rows;
  SmallVector<ReassociationIndices> groups{{0}, {}};
  for (int64_t i = 1; i < rank; ++i)
    groups.back().push_back(i);
  return tensor::CollapseShapeOp::create(e.builder, e.loc, rows, groups);
}

/// The same numbers in each row, as `shape`.
Value asShape(KernelEmitter &e, Value rows, ArrayRef<int64_t> shape) {
  rows = flat(e, rows);
  if (shape.size() == 1)
    return rows;
  SmallVector<ReassociationIndices> groups{{0}, {}};
  SmallVector<int64_t> full{ShapedType::kDynamic};
  SmallVector<OpFoldResult> sizes{e.rows()};
  for (size_t i = 0; i < shape.size(); ++i) {
    groups.back().push_back(i + 1);
    full.push_back(shape[i]);
    sizes.push_back(e.builder.getIndexAttr(shape[i]));
  }
  return tensor::ExpandShapeOp::create(
      e.builder, e.loc, RankedTensorType::get(full, e.builder.getF32Type()), rows, groups, sizes);
}

/// h = a ⊙ h' + b.
struct LowerScan : Lowering<LowerScan, xf::ScanOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto scan = cast<xf::ScanOp>(op);
    const int64_t size = ranked(scan).getNumElements(), parts = partsOf(size), each = size / parts;
    ScanBuilder builder(op, e, {parts, each});
    for (Value operand : op->getOperands())
      builder.readRows(asShape(e, e.data(operand), {parts, each}), parts, parts);
    Value made = builder.build({parts, each}, [&](OpBuilder &b, Location l, ValueRange memory) {
      AffineMap all = AffineMap::getMultiDimIdentityMap(1, b.getContext());
      Value h = memory[0], result = memory[3];
      overMemory(b, l, ValueRange{memory[1], memory[2]}, h, {all, all, all}, IteratorType::parallel,
                 [](OpBuilder &n, Location at, ValueRange a) {
                   return add(n, at, mul(n, at, a[0], a[2]), a[1]);
                 });
      overMemory(b, l, h, result, {all, all}, IteratorType::parallel,
                 [](OpBuilder &, Location, ValueRange a) { return a[0]; });
    });
    e.bind(scan, asShape(e, made, ranked(scan).getShape()));
    return success();
  }
};

/// A row of memory of (rows, numbers).
Value rowOf(OpBuilder &b, Location l, Value memory, int64_t row) {
  auto type = cast<MemRefType>(memory.getType());
  SmallVector<OpFoldResult> offsets{b.getIndexAttr(row), b.getIndexAttr(0)},
      sizes{b.getIndexAttr(1), b.getIndexAttr(type.getDimSize(1))}, strides(2, b.getIndexAttr(1));
  auto made = cast<MemRefType>(memref::SubViewOp::inferRankReducedResultType(
      {type.getDimSize(1)}, type, offsets, sizes, strides));
  return memref::SubViewOp::create(b, l, made, memory, offsets, sizes, strides);
}

/// A mean in which earlier weights decay. The rows of its state are the sums of weighed values and
/// of weights, both over e^M, and M, where e^M is the largest weight so far.
struct LowerDecayingMean : Lowering<LowerDecayingMean, xf::DecayingMeanOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto mean = cast<xf::DecayingMeanOp>(op);
    const int64_t size = ranked(mean).getNumElements(), parts = partsOf(size), each = size / parts;
    ScanBuilder builder(op, e, {parts, 3, each});
    for (Value operand : op->getOperands())
      builder.readRows(asShape(e, e.data(operand), {parts, each}), parts, parts);
    Value made = builder.build(
        {parts, each}, [](OpBuilder &b, Location l, ValueRange memory) { write(b, l, memory); });
    e.bind(mean, asShape(e, made, ranked(mean).getShape()));
    return success();
  }

private:
  /// Sums after another weight, all over e^exponent.
  struct Sums {
    Value values, weights, exponent;
  };

  /// What has the weights e^left and e^right: the larger exponent is that of the sums.
  static Sums weighed(OpBuilder &n, Location l, const Sums &before, Value left, Value right,
                      Value added) {
    Value top = arith::MaximumFOp::create(n, l, left, right);
    Value kept = math::ExpOp::create(n, l, sub(n, l, left, top)),
          share = math::ExpOp::create(n, l, sub(n, l, right, top));
    return {add(n, l, mul(n, l, kept, before.values), mul(n, l, share, added)),
            add(n, l, mul(n, l, kept, before.weights), share), top};
  }

  /// `memory` is the state, the keys, the values, the decays, what a token's own key has more, and
  /// the result.
  static void write(OpBuilder &b, Location l, ValueRange memory) {
    Value outs[] = {rowOf(b, l, memory[0], 0), rowOf(b, l, memory[0], 1), rowOf(b, l, memory[0], 2),
                    memory[5]};
    linalg::GenericOp::create(
        b, l, memory.slice(1, 4), outs,
        SmallVector<AffineMap>(8, AffineMap::getMultiDimIdentityMap(1, b.getContext())),
        IteratorType::parallel, [](OpBuilder &n, Location at, ValueRange a) {
          Value key = a[0], value = a[1];
          // The first token is after none, whose weight is less than any.
          Value isFirst = arith::CmpFOp::create(n, at, arith::CmpFPredicate::OEQ, a[5],
                                                ctxc::constant(n, at, 0.0));
          Value exponent =
              arith::SelectOp::create(n, at, isFirst, ctxc::constant(n, at, -1e30), a[6]);
          Sums before{a[4], a[5], exponent};
          Sums own = weighed(n, at, before, exponent, add(n, at, key, a[3]), value);
          Sums after = weighed(n, at, before, add(n, at, exponent, a[2]), key, value);
          linalg::YieldOp::create(n, at,
                                  ValueRange{after.values, after.weights, after.exponent,
                                             div(n, at, own.values, own.weights)});
        });
  }
};

} // namespace

namespace ctxc {
void registerRecurrenceLoweringModels(MLIRContext *context) {
  xf::ScanOp::attachInterface<LowerScan>(*context);
  xf::DecayingMeanOp::attachInterface<LowerDecayingMean>(*context);
}
} // namespace ctxc
