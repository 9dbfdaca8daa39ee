// Lowers each xf op that computes to linalg: its equation over S rows.
#include "Functions.h"
#include "ctxc/Lowering/LinalgArith.h"
#include "lib/Lowering/ToLinalg/SupportCall.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;
using utils::IteratorType;

namespace {

//===----------------------------------------------------------------------===//
// Parameterised ops
//===----------------------------------------------------------------------===//

struct LowerLinear : Lowering<LowerLinear, xf::LinearOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto linear = cast<xf::LinearOp>(op);
    if (e.hasRows(linear.getWeight()))
      return op->emitOpError("with a computed weight has no compiled kernel; the reference engine "
                             "runs it");
    e.bind(linear, e.linear(e.lookup(linear.getWeight()), e.data(linear.getData()),
                            linear.getTransposed()));
    return success();
  }
};

struct LowerBias : Lowering<LowerBias, xf::BiasOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto bias = cast<xf::BiasOp>(op);
    e.bind(bias, e.elementwise(
                     bias, {bias.getData(), bias.getBias()},
                     [](OpBuilder &b, Location l, ValueRange a) { return add(b, l, a[0], a[1]); }));
    return success();
  }
};

struct LowerScale : Lowering<LowerScale, xf::ScaleOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto scale = cast<xf::ScaleOp>(op);
    double offset = scale.getOffset().convertToFloat();
    e.bind(scale, e.elementwise(scale, {scale.getData(), scale.getScale()},
                                [&](OpBuilder &b, Location l, ValueRange a) {
                                  Value m =
                                      offset == 0 ? a[1] : add(b, l, constant(b, l, offset), a[1]);
                                  return mul(b, l, m, a[0]);
                                }));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Functions of a token
//===----------------------------------------------------------------------===//

struct LowerNormalize : Lowering<LowerNormalize, xf::NormalizeOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto norm = cast<xf::NormalizeOp>(op);
    Value x = e.data(norm.getData());
    double d = ranked(norm).getShape().back(), eps = norm.getEps().convertToDouble();
    if (norm.getKind() == xf::NormKind::sum) {
      Value total = e.reduceLast(x, 0, [](OpBuilder &b, Location l, ValueRange a) -> Value {
        return arith::AddFOp::create(b, l, a[0], a[1], kFast);
      });
      e.bind(norm, e.mapWithReduced(x, {total}, [&](OpBuilder &b, Location l, ValueRange a) {
        return div(b, l, a[0], add(b, l, a[1], constant(b, l, eps)));
      }));
      return success();
    }
    if (norm.getKind() == xf::NormKind::layer) {
      Value total = e.reduceLast(x, 0, [](OpBuilder &b, Location l, ValueRange a) -> Value {
        return arith::AddFOp::create(b, l, a[0], a[1], kFast);
      });
      x = e.mapWithReduced(x, {total}, [&](OpBuilder &b, Location l, ValueRange a) {
        return sub(b, l, a[0], div(b, l, a[1], constant(b, l, d)));
      });
    }
    double count = norm.getKind() == xf::NormKind::l2 ? 1 : d;
    Value squares = e.dotLast(x, x);
    e.bind(norm, e.mapWithReduced(x, {squares}, [&](OpBuilder &b, Location l, ValueRange a) {
      Value mean = count == 1 ? Value(a[1]) : div(b, l, a[1], constant(b, l, count));
      Value root = math::SqrtOp::create(b, l, add(b, l, mean, constant(b, l, eps)));
      return mul(b, l, a[0], div(b, l, constant(b, l, 1), root));
    }));
    return success();
  }
};

struct LowerSoftmax : Lowering<LowerSoftmax, xf::SoftmaxOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    e.bind(op->getResult(0), softmax(e, e.data(op->getOperand(0))));
    return success();
  }
};

/// add, sub and mul: one arith op for each element.
template <typename Op, typename ArithOp>
struct LowerBinary : Lowering<LowerBinary<Op, ArithOp>, Op> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    e.bind(op->getResult(0), e.elementwise(op->getResult(0), op->getOperands(),
                                           [](OpBuilder &b, Location l, ValueRange a) -> Value {
                                             return ArithOp::create(b, l, a[0], a[1]);
                                           }));
    return success();
  }
};

struct LowerDiv : Lowering<LowerDiv, xf::DivOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    e.bind(op->getResult(0),
           e.elementwise(
               op->getResult(0), op->getOperands(), [](OpBuilder &b, Location l, ValueRange a) {
                 Value zero = arith::CmpFOp::create(b, l, arith::CmpFPredicate::OEQ, a[1],
                                                    constant(b, l, 0));
                 Value divisor = arith::SelectOp::create(b, l, zero, constant(b, l, 1), a[1]);
                 return div(b, l, a[0], divisor);
               }));
    return success();
  }
};

struct LowerTimes : Lowering<LowerTimes, xf::TimesOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto times = cast<xf::TimesOp>(op);
    double factor = times.getFactor().convertToFloat();
    e.bind(times,
           e.elementwise(times, {times.getData()}, [&](OpBuilder &b, Location l, ValueRange a) {
             return mul(b, l, a[0], constant(b, l, factor));
           }));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// Collapses and expands: S × from → S × n → S × to.
struct LowerReshape : Lowering<LowerReshape, xf::ReshapeOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto reshape = cast<xf::ReshapeOp>(op);
    Value x = e.data(reshape.getData());
    if (int64_t rank = ranked(reshape.getData()).getRank(); rank > 1) {
      SmallVector<ReassociationIndices> groups{{0}, {}};
      llvm::append_range(groups.back(), llvm::seq<int64_t>(1, rank + 1));
      x = tensor::CollapseShapeOp::create(e.builder, e.loc, x, groups);
    }
    e.bind(reshape, expandRows(e, x, ranked(reshape).getShape()));
    return success();
  }
};

struct LowerTranspose : Lowering<LowerTranspose, xf::TransposeOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto transpose = cast<xf::TransposeOp>(op);
    MLIRContext *context = op->getContext();
    int64_t rank = ranked(transpose).getRank() + 1; // rows first
    SmallVector<AffineExpr> from(rank, getAffineDimExpr(0, context));
    for (auto [to, dim] : llvm::enumerate(transpose.getOrder()))
      from[1 + dim] = getAffineDimExpr(1 + to, context);
    e.bind(transpose,
           e.generic(e.emptyRows(ranked(transpose).getShape()), {e.data(transpose.getData())},
                     {AffineMap::get(rank, 0, from, context),
                      AffineMap::getMultiDimIdentityMap(rank, context)},
                     SmallVector<IteratorType>(rank, IteratorType::parallel),
                     [](OpBuilder &, Location, ValueRange a) { return a[0]; }));
    return success();
  }
};

struct LowerPermute : Lowering<LowerPermute, xf::PermuteOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto permute = cast<xf::PermuteOp>(op);
    int64_t dim = 1 + permute.getAlong(), at = 0;
    Value data = e.data(permute.getData()), result = e.emptyRows(ranked(permute).getShape());
    SmallVector<int64_t> starts = permute.getStarts();
    for (int64_t part : permute.getOrder()) {
      int64_t size = permute.getParts()[part];
      result = insert(e, slice(e, data, dim, starts[part], size, 1), result, dim, at, 1);
      at += size;
    }
    e.bind(permute, result);
    return success();
  }
};

struct LowerSlice : Lowering<LowerSlice, xf::SliceOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto s = cast<xf::SliceOp>(op);
    // The slice is copied, since matrices and support functions need rows that lie next to each
    // other.
    int64_t along = s.getAlong();
    Value part =
        slice(e, e.data(s.getData()), 1 + along, s.getFrom(), ranked(s).getDimSize(along), 1);
    e.bind(s, bufferization::AllocTensorOp::create(e.builder, e.loc, ranked(part), ValueRange(),
                                                   /*copy=*/part));
    return success();
  }
};

struct LowerConcat : Lowering<LowerConcat, xf::ConcatOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto concat = cast<xf::ConcatOp>(op);
    Value result = e.emptyRows(ranked(concat).getShape());
    int64_t at = 0, along = concat.getAlong();
    for (Value part : concat.getParts()) {
      result = insert(e, e.data(part), result, 1 + along, at, 1);
      at += ranked(part).getDimSize(along);
    }
    e.bind(concat, result);
    return success();
  }
};

struct LowerBroadcast : Lowering<LowerBroadcast, xf::BroadcastOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto broadcast = cast<xf::BroadcastOp>(op);
    int64_t rank = ranked(broadcast).getRank() + 1; // rows first
    SmallVector<AffineExpr> from;
    for (int64_t i = 0; i < rank; ++i)
      from.push_back(i == 1 ? getAffineConstantExpr(0, op->getContext())
                            : getAffineDimExpr(i, op->getContext()));
    e.bind(broadcast,
           e.generic(e.emptyRows(ranked(broadcast).getShape()), {e.data(broadcast.getData())},
                     {AffineMap::get(rank, 0, from, op->getContext()),
                      AffineMap::getMultiDimIdentityMap(rank, op->getContext())},
                     SmallVector<IteratorType>(rank, IteratorType::parallel),
                     [](OpBuilder &, Location, ValueRange a) { return a[0]; }));
    return success();
  }
};

} // namespace

namespace ctxc {
void registerXFLoweringModels(MLIRContext *context) {
  context->loadDialect<kernel::KernelDialect>(); // lowerings create its ops and attributes
  registerFunctionLowerings(*context);
  xf::LinearOp::attachInterface<LowerLinear>(*context);
  xf::BiasOp::attachInterface<LowerBias>(*context);
  xf::ScaleOp::attachInterface<LowerScale>(*context);
  xf::NormalizeOp::attachInterface<LowerNormalize>(*context);
  xf::SoftmaxOp::attachInterface<LowerSoftmax>(*context);
  xf::AddOp::attachInterface<LowerBinary<xf::AddOp, arith::AddFOp>>(*context);
  xf::SubOp::attachInterface<LowerBinary<xf::SubOp, arith::SubFOp>>(*context);
  xf::MulOp::attachInterface<LowerBinary<xf::MulOp, arith::MulFOp>>(*context);
  xf::DivOp::attachInterface<LowerDiv>(*context);
  xf::TimesOp::attachInterface<LowerTimes>(*context);
  xf::ReshapeOp::attachInterface<LowerReshape>(*context);
  xf::TransposeOp::attachInterface<LowerTranspose>(*context);
  xf::PermuteOp::attachInterface<LowerPermute>(*context);
  xf::SliceOp::attachInterface<LowerSlice>(*context);
  xf::ConcatOp::attachInterface<LowerConcat>(*context);
  xf::BroadcastOp::attachInterface<LowerBroadcast>(*context);
}
} // namespace ctxc
