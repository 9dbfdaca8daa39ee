// Helpers that several ops' lowerings share.
#include "ctxc/Lowering/LinalgArith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;

Value ctxc::softcap(OpBuilder &b, Location l, Value x, double cap) {
  Value tanh = math::TanhOp::create(b, l, div(b, l, x, constant(b, l, cap)));
  return mul(b, l, constant(b, l, cap), tanh);
}

/// Applies `body` to the entries of two tensors of the same shape.
static Value zip(KernelEmitter &e, Value x, Value y, KernelEmitter::Body body) {
  int64_t rank = ranked(x).getRank();
  AffineMap identity = AffineMap::getMultiDimIdentityMap(rank, x.getContext());
  Value empty = tensor::EmptyOp::create(
      e.builder, e.loc, tensor::getMixedSizes(e.builder, e.loc, x), ranked(x).getElementType());
  return e.generic(empty, {x, y}, {identity, identity, identity},
                   SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel), body);
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
  Value total = e.reduceLast(powers, 0, [](OpBuilder &b, Location l, ValueRange a) -> Value {
    return arith::AddFOp::create(b, l, a[0], a[1], kFast);
  });
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
