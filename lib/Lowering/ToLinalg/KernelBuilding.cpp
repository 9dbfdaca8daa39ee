// The shapes of linalg ops that kernels consist of, and reads and writes of memory.
#include "ctxc/Lowering/KernelEmitter.h"
#include "ctxc/Lowering/LinalgArith.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"

using namespace mlir;
using namespace ctxc;
using utils::IteratorType;

bool KernelEmitter::hasRows(Value value) const {
  Value tensor = lookup(value);
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  return type && type.getRank() > 0 && type.isDynamicDim(0);
}

Value KernelEmitter::data(Value value) {
  Value tensor = lookup(value);
  if (hasRows(value))
    return tensor;
  return elementwise(ranked(tensor).getShape(), {tensor}, {false},
                     [](OpBuilder &, Location, ValueRange a) { return a[0]; });
}

Value KernelEmitter::constant(double x) {
  return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(float(x)));
}

Value KernelEmitter::index(int64_t i) { return arith::ConstantIndexOp::create(builder, loc, i); }

Value KernelEmitter::emptyRows(ArrayRef<int64_t> shape, int64_t factor, Type element) {
  SmallVector<int64_t> full{ShapedType::kDynamic};
  llvm::append_range(full, shape);
  Value count = rowCount;
  if (factor != 1)
    count = arith::MulIOp::create(builder, loc, count, index(factor));
  return tensor::EmptyOp::create(builder, loc, full, element ? element : builder.getF32Type(),
                                 ValueRange{count});
}

Value KernelEmitter::filled(Value empty, double x) {
  return linalg::FillOp::create(builder, loc, ValueRange{constant(x)}, ValueRange{empty})
      .getResult(0);
}

Value KernelEmitter::widen(OpBuilder &b, Location loc, Value x) {
  if (x.getType().isF32())
    return x;
  return arith::ExtFOp::create(b, loc, b.getF32Type(), x);
}

Value KernelEmitter::generic(Value init, ValueRange ins, ArrayRef<AffineMap> maps,
                             ArrayRef<IteratorType> iterators, Body body) {
  auto op = linalg::GenericOp::create(
      builder, loc, TypeRange{init.getType()}, ins, ValueRange{init}, maps, iterators,
      [&](OpBuilder &b, Location l, ValueRange args) {
        SmallVector<Value> wide;
        for (Value arg : args)
          wide.push_back(isa<FloatType>(arg.getType()) ? widen(b, l, arg) : arg);
        linalg::YieldOp::create(b, l, body(b, l, wide));
      });
  return op.getResult(0);
}

Value KernelEmitter::elementwise(ArrayRef<int64_t> shape, ValueRange operands,
                                 ArrayRef<bool> operandHasRows, Body body) {
  unsigned rank = shape.size() + 1;
  MLIRContext *context = builder.getContext();
  SmallVector<AffineMap> maps;
  for (auto [operand, rows] : llvm::zip(operands, operandHasRows)) {
    ArrayRef<int64_t> own = ranked(operand).getShape();
    SmallVector<AffineExpr> exprs;
    if (rows) {
      exprs.push_back(builder.getAffineDimExpr(0));
      own = own.drop_front();
    }
    bool single = own == ArrayRef<int64_t>{1} && shape != ArrayRef<int64_t>{1};
    for (unsigned i = rank - own.size(); i < rank; ++i)
      exprs.push_back(single ? builder.getAffineConstantExpr(0) : builder.getAffineDimExpr(i));
    maps.push_back(AffineMap::get(rank, 0, exprs, context));
  }
  maps.push_back(AffineMap::getMultiDimIdentityMap(rank, context));
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  return generic(emptyRows(shape), operands, maps, iterators, body);
}

Value KernelEmitter::elementwise(Value result, ValueRange blockOperands, Body body) {
  SmallVector<Value> operands;
  SmallVector<bool> withRows;
  for (Value operand : blockOperands) {
    operands.push_back(lookup(operand));
    withRows.push_back(hasRows(operand));
  }
  return elementwise(ranked(result).getShape(), operands, withRows, body);
}

/// The map of rank + 1 dimensions that drops the last one.
static AffineMap dropLast(unsigned rank, MLIRContext *context) {
  return AffineMap::getMultiDimIdentityMap(rank, context).getMajorSubMap(rank - 1);
}

Value KernelEmitter::reduceLast(Value tensor, double init, Body body) {
  unsigned rank = ranked(tensor).getRank();
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  iterators.back() = IteratorType::reduction;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tensor);
  sizes.pop_back();
  Value empty = tensor::EmptyOp::create(builder, loc, sizes, builder.getF32Type());
  MLIRContext *context = builder.getContext();
  return generic(
      filled(empty, init), {tensor},
      {AffineMap::getMultiDimIdentityMap(rank, context), dropLast(rank, context)}, iterators,
      [&](OpBuilder &b, Location l, ValueRange args) { return body(b, l, {args[1], args[0]}); });
}

Value KernelEmitter::dotLast(Value a, Value b) {
  unsigned rank = ranked(a).getRank();
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  iterators.back() = IteratorType::reduction;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, a);
  sizes.pop_back();
  Value empty = tensor::EmptyOp::create(builder, loc, sizes, builder.getF32Type());
  MLIRContext *context = builder.getContext();
  AffineMap identity = AffineMap::getMultiDimIdentityMap(rank, context);
  return generic(filled(empty, 0), {a, b}, {identity, identity, dropLast(rank, context)}, iterators,
                 [&](OpBuilder &nested, Location l, ValueRange args) -> Value {
                   auto fast = arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;
                   Value product = arith::MulFOp::create(nested, l, args[0], args[1], fast);
                   return arith::AddFOp::create(nested, l, args[2], product, fast);
                 });
}

Value KernelEmitter::mapWithReduced(Value tensor, ValueRange reduced, Body body) {
  unsigned rank = ranked(tensor).getRank();
  MLIRContext *context = builder.getContext();
  AffineMap identity = AffineMap::getMultiDimIdentityMap(rank, context);
  SmallVector<AffineMap> maps{identity};
  SmallVector<Value> ins{tensor};
  for (Value r : reduced) {
    maps.push_back(dropLast(rank, context));
    ins.push_back(r);
  }
  maps.push_back(identity);
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  Value empty = tensor::EmptyOp::create(builder, loc, tensor::getMixedSizes(builder, loc, tensor),
                                        builder.getF32Type());
  return generic(empty, ins, maps, iterators, body);
}

Value KernelEmitter::linear(Value weight, Value x, bool transposed) {
  auto xType = ranked(x);
  int64_t out = ranked(weight).getDimSize(transposed ? 1 : 0);
  // The leading dimensions within a head are treated as further rows.
  Value flat = x;
  SmallVector<ReassociationIndices> groups;
  if (xType.getRank() > 2) {
    groups.emplace_back();
    for (int64_t i = 0; i < xType.getRank() - 1; ++i)
      groups.back().push_back(i);
    groups.push_back({xType.getRank() - 1});
    flat = tensor::CollapseShapeOp::create(builder, loc, x, groups);
  }
  Value count = tensor::DimOp::create(builder, loc, flat, 0);
  Value empty = tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{ShapedType::kDynamic, out},
                                        builder.getF32Type(), ValueRange{count});
  Value y = kernel::ContractOp::create(builder, loc, weight, flat, filled(empty, 0), transposed)
                .getResult();
  if (groups.empty())
    return y;
  SmallVector<int64_t> shape(xType.getShape());
  shape.back() = out;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, x);
  sizes.back() = builder.getIndexAttr(out);
  return tensor::ExpandShapeOp::create(
      builder, loc, RankedTensorType::get(shape, builder.getF32Type()), y, groups, sizes);
}

static void rowWindow(KernelEmitter &e, int64_t from, ArrayRef<int64_t> shape,
                      SmallVectorImpl<OpFoldResult> &offsets, SmallVectorImpl<OpFoldResult> &sizes,
                      SmallVectorImpl<OpFoldResult> &strides) {
  OpBuilder &b = e.builder;
  Value start = arith::MulIOp::create(b, e.loc, e.rows(), e.index(from));
  offsets.push_back(start);
  sizes.push_back(e.rows());
  for (int64_t d : shape) {
    offsets.push_back(b.getIndexAttr(0));
    sizes.push_back(b.getIndexAttr(d));
  }
  strides.assign(offsets.size(), b.getIndexAttr(1));
}

Value KernelEmitter::takeRows(Value tensor, int64_t from, ArrayRef<int64_t> shape) {
  SmallVector<OpFoldResult> offsets, sizes, strides;
  rowWindow(*this, from, shape, offsets, sizes, strides);
  return tensor::ExtractSliceOp::create(builder, loc, tensor, offsets, sizes, strides);
}

Value KernelEmitter::putRows(Value into, Value tensor, int64_t from) {
  SmallVector<OpFoldResult> offsets, sizes, strides;
  rowWindow(*this, from, ranked(tensor).getShape().drop_front(), offsets, sizes, strides);
  return tensor::InsertSliceOp::create(builder, loc, tensor, into, offsets, sizes, strides);
}

Value KernelEmitter::read(Value tensor) {
  // Rows lie one after the other, but the first may lie inside a packed buffer.
  RankedTensorType type = ranked(tensor);
  SmallVector<int64_t> strides(type.getRank(), 1);
  for (int64_t i = type.getRank() - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * type.getDimSize(i + 1);
  auto layout = StridedLayoutAttr::get(builder.getContext(), ShapedType::kDynamic, strides);
  auto buffer = bufferization::ToBufferOp::create(
      builder, loc, MemRefType::get(type.getShape(), type.getElementType(), layout), tensor,
      /*read_only=*/true);
  // Bufferisation keeps the tensor alive until this op. If common-subexpression elimination merged
  // it with another read, the tensor would live until that read.
  kernel::KernelDialect::ReadAttrHelper(builder.getContext())
      .setAttr(buffer, builder.getI64IntegerAttr(nextRead++));
  return buffer;
}

void KernelEmitter::store(Value tensor, Value memref) {
  auto op = bufferization::MaterializeInDestinationOp::create(builder, loc, tensor, memref);
  op.setRestrict(true);
  op.setWritable(true);
}

Value KernelEmitter::readState(Value memref, bool writable) {
  auto type = cast<MemRefType>(memref.getType());
  return bufferization::ToTensorOp::create(
      builder, loc, RankedTensorType::get(type.getShape(), type.getElementType()), memref,
      /*restrict=*/true, writable);
}

Value KernelEmitter::extendState(Value memref, Value fresh, Value visible) {
  auto type = cast<MemRefType>(memref.getType());
  Value state = readState(memref, /*writable=*/true);
  Value seen = arith::SubIOp::create(builder, loc, visible, rows());
  SmallVector<OpFoldResult> offsets{seen}, sizes{rows()},
      strides(type.getRank(), builder.getIndexAttr(1));
  for (int64_t d : type.getShape().drop_front()) {
    offsets.push_back(builder.getIndexAttr(0));
    sizes.push_back(builder.getIndexAttr(d));
  }
  Value extended =
      tensor::InsertSliceOp::create(builder, loc, fresh, state, offsets, sizes, strides);
  store(extended, memref); // in place: the tensor lies in this memref
  return extended;
}
