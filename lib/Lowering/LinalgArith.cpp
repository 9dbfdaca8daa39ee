// What several ops' lowerings share.
#include "ctxc/Lowering/LinalgArith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;

Value ctxc::softcap(OpBuilder &b, Location l, Value x, double cap) {
  Value tanh = math::TanhOp::create(b, l, div(b, l, x, constant(b, l, cap)));
  return mul(b, l, constant(b, l, cap), tanh);
}

/// `body` of the entries of two tensors of one shape.
static Value zip(KernelEmitter &e, Value x, Value y, KernelEmitter::Body body) {
  int64_t rank = ranked(x).getRank();
  AffineMap identity = AffineMap::getMultiDimIdentityMap(rank, x.getContext());
  Value empty = tensor::EmptyOp::create(
      e.builder, e.loc, tensor::getMixedSizes(e.builder, e.loc, x), ranked(x).getElementType());
  return e.generic(empty, {x, y}, {identity, identity, identity},
                   SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel), body);
}

/// Sum over the last dimension. In kSumLanes partial sums where it is dynamic, so that zeros at
/// the end change nothing: the sum of what a token sees is the same in every call.
static Value sumLast(KernelEmitter &e, Value x) {
  auto plus = [](OpBuilder &b, Location l, ValueRange a) -> Value {
    return arith::AddFOp::create(b, l, a[0], a[1], kFast);
  };
  int64_t rank = ranked(x).getRank();
  if (!ranked(x).isDynamicDim(rank - 1))
    return e.reduceLast(x, 0, plus);
  OpBuilder &b = e.builder;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, e.loc, x);
  SmallVector<int64_t> shape(ranked(x).getShape());
  SmallVector<ReassociationIndices> groups;
  for (int64_t i = 0; i < rank; ++i)
    groups.push_back({i});
  groups.back().push_back(rank);
  sizes.back() =
      arith::DivUIOp::create(b, e.loc, cast<Value>(sizes.back()), e.index(kSumLanes)).getResult();
  sizes.push_back(b.getIndexAttr(kSumLanes));
  shape.push_back(kSumLanes);
  Value blocks = tensor::ExpandShapeOp::create(
      b, e.loc, RankedTensorType::get(shape, b.getF32Type()), x, groups, sizes);
  sizes.erase(sizes.end() - 2);
  Value lanes = e.filled(tensor::EmptyOp::create(b, e.loc, sizes, b.getF32Type()), 0);
  AffineMap identity = AffineMap::getMultiDimIdentityMap(rank + 1, b.getContext());
  SmallVector<utils::IteratorType> iterators(rank + 1, utils::IteratorType::parallel);
  iterators[rank - 1] = utils::IteratorType::reduction;
  lanes = e.generic(lanes, {blocks}, {identity, identity.dropResult(rank - 1)}, iterators,
                    [&](OpBuilder &n, Location l, ValueRange a) { return add(n, l, a[1], a[0]); });
  return e.reduceLast(lanes, 0, plus);
}

Value ctxc::softmax(KernelEmitter &e, Value x, Value rest) {
  auto maximum = [](OpBuilder &b, Location l, ValueRange a) -> Value {
    return arith::MaximumFOp::create(b, l, a[0], a[1]);
  };
  Value largest = e.reduceLast(x, -INFINITY, maximum);
  if (rest)
    largest = zip(e, largest, rest, maximum);
  Value powers =
      e.mapWithReduced(x, {largest}, [](OpBuilder &b, Location l, ValueRange a) -> Value {
        return math::ExpOp::create(b, l, sub(b, l, a[0], a[1]));
      });
  Value total = sumLast(e, powers);
  if (rest) {
    Value power = zip(e, rest, largest, [](OpBuilder &b, Location l, ValueRange a) -> Value {
      return math::ExpOp::create(b, l, sub(b, l, a[0], a[1]));
    });
    total = zip(e, total, power,
                [](OpBuilder &b, Location l, ValueRange a) { return add(b, l, a[0], a[1]); });
  }
  return e.mapWithReduced(powers, {total}, [](OpBuilder &b, Location l, ValueRange a) {
    return div(b, l, a[0], a[1]);
  });
}

Value ctxc::slice(KernelEmitter &e, Value x, int64_t dim, int64_t from, int64_t size,
                  int64_t stride) {
  OpBuilder &b = e.builder;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, e.loc, x);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0)),
      strides(sizes.size(), b.getIndexAttr(1));
  offsets[dim] = b.getIndexAttr(from);
  sizes[dim] = b.getIndexAttr(size);
  strides[dim] = b.getIndexAttr(stride);
  return tensor::ExtractSliceOp::create(b, e.loc, x, offsets, sizes, strides);
}

Value ctxc::insert(KernelEmitter &e, Value part, Value into, int64_t dim, int64_t from,
                   int64_t stride) {
  OpBuilder &b = e.builder;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, e.loc, part);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0)),
      strides(sizes.size(), b.getIndexAttr(1));
  offsets[dim] = b.getIndexAttr(from);
  strides[dim] = b.getIndexAttr(stride);
  return tensor::InsertSliceOp::create(b, e.loc, part, into, offsets, sizes, strides);
}
