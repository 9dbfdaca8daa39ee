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

Value ctxc::softmax(KernelEmitter &e, Value x) {
  Value largest = e.reduceLast(x, -INFINITY, [](OpBuilder &b, Location l, ValueRange a) -> Value {
    return arith::MaximumFOp::create(b, l, a[0], a[1]);
  });
  Value powers =
      e.mapWithReduced(x, {largest}, [](OpBuilder &b, Location l, ValueRange a) -> Value {
        return math::ExpOp::create(b, l, sub(b, l, a[0], a[1]));
      });
  Value total = e.reduceLast(powers, 0, [](OpBuilder &b, Location l, ValueRange a) -> Value {
    return arith::AddFOp::create(b, l, a[0], a[1], kFast);
  });
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
