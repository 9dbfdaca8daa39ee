// Lowers the patch ops. The inner problems of a post-norm scale and the counting of obligations are
// calls of kernel support functions (ctxc/Numerics/KernelABI.h); everything that reads a weight
// becomes linalg.
#include "ctxc/Lowering/LinalgArith.h"
#include "ctxc/Numerics/Update.h"
#include "lib/Lowering/ToLinalg/SupportCall.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ctxc;
using utils::IteratorType;
using Function = kernel::SupportFunction;

namespace {

Value scratch(KernelEmitter &e, int64_t d) {
  auto type = MemRefType::get({ShapedType::kDynamic, scratchDoubles(d)}, e.builder.getF64Type());
  return memref::AllocOp::create(e.builder, e.loc, type, ValueRange{e.rows()});
}

/// The two counts of obligation `index`, for each row.
Value countsOf(KernelEmitter &e, int64_t index) {
  Value counts = e.argument(KernelArgKind::Counts, "", 0);
  auto number = [&](int64_t i) -> OpFoldResult { return e.builder.getIndexAttr(i); };
  SmallVector<OpFoldResult> offsets{number(0), number(index), number(0)},
      sizes{e.rows(), number(1), number(2)}, strides(3, number(1));
  MemRefType type = memref::SubViewOp::inferRankReducedResultType(
      {ShapedType::kDynamic, 2}, cast<MemRefType>(counts.getType()), offsets, sizes, strides);
  return memref::SubViewOp::create(e.builder, e.loc, type, counts, offsets, sizes, strides);
}

/// offset + m, the factor that the norm's scale multiplies with.
Value effectiveScale(KernelEmitter &e, Value scale, double offset) {
  auto type = ranked(scale);
  MLIRContext *context = e.builder.getContext();
  AffineMap identity = AffineMap::getMultiDimIdentityMap(type.getRank(), context);
  Value empty = tensor::EmptyOp::create(e.builder, e.loc, type.getShape(), e.builder.getF32Type());
  return e.generic(empty, {scale}, {identity, identity},
                   SmallVector<IteratorType>(type.getRank(), IteratorType::parallel),
                   [&](OpBuilder &b, Location l, ValueRange a) -> Value {
                     return arith::AddFOp::create(b, l, constant(b, l, offset), a[0]);
                   });
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// The rows of all values, which are of one type, one value after the other.
Value packed(KernelEmitter &e, ValueRange values) {
  RankedTensorType type = ranked(values.front());
  Value all = e.emptyRows(type.getShape(), values.size(), type.getElementType());
  for (auto [i, value] : llvm::enumerate(values))
    all = e.putRows(all, e.data(value), i);
  return all;
}

/// Binds the results to their rows.
void bindParts(KernelEmitter &e, ResultRange results, Value all) {
  for (auto [i, result] : llvm::enumerate(results))
    e.bind(result, e.takeRows(all, i, ranked(result).getShape()));
}

struct LowerLinears : Lowering<LowerLinears, patch::LinearsOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto linears = cast<patch::LinearsOp>(op);
    if (e.hasRows(linears.getWeight()))
      return op->emitOpError("with a computed weight has no compiled kernel; the reference engine "
                             "runs it");
    bindParts(e, linears.getResults(),
              e.linear(e.lookup(linears.getWeight()), packed(e, linears.getData()),
                       linears.getTransposed()));
    return success();
  }
};

struct LowerExpertLinears : Lowering<LowerExpertLinears, patch::ExpertLinearsOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto linears = cast<patch::ExpertLinearsOp>(op);
    FailureOr<Value> y = e.expertLinear(op, linears.getBank(), packed(e, linears.getSelected()),
                                        packed(e, linears.getData()), linears.getTransposed(),
                                        int64_t(linears.getData().size()));
    if (failed(y))
      return failure();
    bindParts(e, linears.getResults(), *y);
    return success();
  }
};

struct LowerRank1 : Lowering<LowerRank1, patch::Rank1Op> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto rank1 = cast<patch::Rank1Op>(op);
    e.bind(rank1.getU(), e.elementwise(rank1.getU(), {rank1.getTarget(), rank1.getCurrent()},
                                       [](OpBuilder &b, Location l, ValueRange a) -> Value {
                                         return arith::SubFOp::create(b, l, a[0], a[1]);
                                       }));
    Value z = e.data(rank1.getData());
    Value square = e.dotLast(z, z);
    e.bind(rank1.getV(),
           e.mapWithReduced(z, {square}, [](OpBuilder &b, Location l, ValueRange a) -> Value {
             Value zero =
                 arith::CmpFOp::create(b, l, arith::CmpFPredicate::OEQ, a[1], constant(b, l, 0));
             Value divisor = arith::SelectOp::create(b, l, zero, constant(b, l, 1), a[1]);
             return arith::DivFOp::create(b, l, a[0], divisor);
           }));
    return success();
  }
};

struct LowerApplyRank1 : Lowering<LowerApplyRank1, patch::ApplyRank1Op> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto apply = cast<patch::ApplyRank1Op>(op);
    Value dot = e.dotLast(e.data(apply.getV()), e.data(apply.getData()));
    Value moved = e.mapWithReduced(e.data(apply.getU()), {dot},
                                   [](OpBuilder &b, Location l, ValueRange a) -> Value {
                                     return arith::MulFOp::create(b, l, a[0], a[1]);
                                   });
    e.bind(apply, e.elementwise(ranked(apply).getShape(), {e.data(apply.getBase()), moved},
                                {true, true}, [](OpBuilder &b, Location l, ValueRange a) -> Value {
                                  return arith::AddFOp::create(b, l, a[0], a[1]);
                                }));
    return success();
  }
};

/// Slot j looks through all parts i and takes the one that belongs to its expert.
struct LowerApplyExpertRank1 : Lowering<LowerApplyExpertRank1, patch::ApplyExpertRank1Op> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto apply = cast<patch::ApplyExpertRank1Op>(op);
    MLIRContext *context = op->getContext();
    int64_t k = ranked(apply).getDimSize(0);
    bool one = ranked(apply.getData()).getRank() == 1;
    AffineExpr s, j, i, d;
    bindDims(context, s, j, i, d);
    auto map = [&](unsigned dims, ArrayRef<AffineExpr> exprs) {
      return AffineMap::get(dims, 0, exprs, context);
    };
    constexpr auto parallel = IteratorType::parallel, reduction = IteratorType::reduction;
    // v_iᵀ z_j for each pair; 0 where part and slot belong to different experts
    Value dots = e.generic(
        e.filled(e.emptyRows({k, k}), 0), {e.data(apply.getV()), e.data(apply.getData())},
        {map(4, {s, i, d}), one ? map(4, {s, d}) : map(4, {s, j, d}), map(4, {s, j, i})},
        {parallel, parallel, parallel, reduction}, [](OpBuilder &b, Location l, ValueRange a) {
          return add(b, l, a[2], mul(b, l, a[0], a[1]));
        });
    Value factors = e.generic(
        e.emptyRows({k, k}), {dots, e.lookup(apply.getPatched()), e.lookup(apply.getSelected())},
        {map(3, {s, j, i}), map(3, {s, i}), map(3, {s, j}), map(3, {s, j, i})},
        {parallel, parallel, parallel}, [](OpBuilder &b, Location l, ValueRange a) -> Value {
          Value same = arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, a[1], a[2]);
          return arith::SelectOp::create(b, l, same, a[0], constant(b, l, 0));
        });
    Value moved = e.generic(
        e.filled(e.emptyRows(ranked(apply).getShape()), 0), {factors, e.data(apply.getU())},
        {map(4, {s, j, i}), map(4, {s, i, d}), map(4, {s, j, d})},
        {parallel, parallel, reduction, parallel}, [](OpBuilder &b, Location l, ValueRange a) {
          return add(b, l, a[2], mul(b, l, a[0], a[1]));
        });
    e.bind(apply, e.elementwise(ranked(apply).getShape(), {e.data(apply.getBase()), moved},
                                {true, true}, [](OpBuilder &b, Location l, ValueRange a) -> Value {
                                  return arith::AddFOp::create(b, l, a[0], a[1]);
                                }));
    return success();
  }
};

struct LowerSquaredNorms : Lowering<LowerSquaredNorms, patch::SquaredNormsOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto norms = cast<patch::SquaredNormsOp>(op);
    Value x = e.data(norms.getData());
    e.bind(norms, e.dotLast(x, x));
    return success();
  }
};

struct LowerApplyDelta : Lowering<LowerApplyDelta, patch::ApplyDeltaOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto apply = cast<patch::ApplyDeltaOp>(op);
    e.bind(apply, e.elementwise(apply, {apply.getParameter(), apply.getDelta()},
                                [](OpBuilder &b, Location l, ValueRange a) -> Value {
                                  return arith::AddFOp::create(b, l, a[0], a[1]);
                                }));
    return success();
  }
};

struct LowerInvertRmsNorm : Lowering<LowerInvertRmsNorm, patch::InvertRmsNormOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto invert = cast<patch::InvertRmsNormOp>(op);
    int64_t d = ranked(invert).getDimSize(0);
    Value m = effectiveScale(e, e.lookup(invert.getScale()), invert.getOffset().convertToFloat());
    Value result = callResult(e, d);
    callForRows(e, Function::ctxc_rows_invert_rms_norm,
                {int64_t(invert.getUpdate()), 1, d, invert.getEps().convertToDouble()},
                {e.data(invert.getTarget()), m, e.data(invert.getData()), result, scratch(e, d)});
    e.bind(invert, readResult(e, result));
    return success();
  }
};

struct LowerSolveScale : Lowering<LowerSolveScale, patch::SolveScaleOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto solve = cast<patch::SolveScaleOp>(op);
    // Entry by entry, dimensions do not matter; the other updates share one norm.
    auto type = ranked(solve);
    if (type.getRank() != 1 && solve.getUpdate() != patch::UpdateKind::naive)
      return solve.emitOpError("has no compiled kernel for a scale of several dimensions");
    int64_t d = type.getNumElements();
    Value m = effectiveScale(e, e.lookup(solve.getScale()), solve.getOffset().convertToFloat());
    Value result = callResult(e, d);
    callForRows(e, Function::ctxc_rows_solve_scale, {int64_t(solve.getUpdate()), 1, d},
                {e.data(solve.getTarget()), m, e.data(solve.getData()), result,
                 countsOf(e, solve.getIndex()), scratch(e, d)});
    e.bind(solve, expandRows(e, readResult(e, result), type.getShape()));
    return success();
  }
};

struct LowerObligation : Lowering<LowerObligation, patch::ObligationOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto obligation = cast<patch::ObligationOp>(op);
    int64_t all = ranked(obligation.getData()).getNumElements();
    bool elements = obligation.getCondition() == patch::Condition::nonzero_elements;
    int64_t width = elements ? all : ranked(obligation.getData()).getShape().back();
    int64_t vectors = all / width; // of each row
    if (!obligation.getChange()) {
      callForRows(e, Function::ctxc_rows_count_zeros, {elements, vectors, width},
                  {e.data(obligation.getData()), countsOf(e, obligation.getIndex())});
      return success();
    }
    callForRows(e, Function::ctxc_rows_count_unserved,
                {vectors, width, ranked(obligation.getChange()).getNumElements() / vectors},
                {e.data(obligation.getData()), e.data(obligation.getChange()),
                 countsOf(e, obligation.getIndex())});
    return success();
  }
};

struct LowerSameSelection : Lowering<LowerSameSelection, patch::SameSelectionOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto same = cast<patch::SameSelectionOp>(op);
    callForRows(
        e, Function::ctxc_rows_count_different, {1, ranked(same.getFull()).getNumElements()},
        {e.lookup(same.getFull()), e.lookup(same.getReduced()), countsOf(e, same.getIndex())});
    return success();
  }
};

struct LowerStore : Lowering<LowerStore, patch::StoreOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto store = cast<patch::StoreOp>(op);
    for (auto [i, part] : llvm::enumerate(store.getParts()))
      e.store(ranked(part).getElementType().isF32() ? e.data(part) : e.lookup(part),
              e.argument(KernelArgKind::Store, store.getParameter(), i));
    return success();
  }
};

struct LowerLoad : Lowering<LowerLoad, patch::LoadOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto load = cast<patch::LoadOp>(op);
    for (auto [i, part] : llvm::enumerate(load.getParts())) {
      Value memref = e.argument(KernelArgKind::Load, load.getParameter(), i);
      Value tensor = readResult(e, memref);
      // All rows of the call share one patch.
      int64_t rank = ranked(part).getRank() + 1;
      AffineMap rows = AffineMap::getMultiDimIdentityMap(rank, op->getContext());
      e.bind(part, e.generic(e.emptyRows(ranked(part).getShape(), 1, ranked(part).getElementType()),
                             {tensor}, {rows.getMinorSubMap(rank - 1), rows},
                             SmallVector<IteratorType>(rank, IteratorType::parallel),
                             [](OpBuilder &, Location, ValueRange a) { return a[0]; }));
    }
    return success();
  }
};

} // namespace

namespace ctxc {

/// The first of several slots. The slots have the same product vᵀ z, so that one of them suffices.
static Value firstSlot(KernelEmitter &e, Value vectors) {
  if (ranked(vectors).getRank() == 2)
    return vectors;
  Value first = slice(e, vectors, 1, 0, 1, 1);
  return bufferization::AllocTensorOp::create(e.builder, e.loc, ranked(first), ValueRange(),
                                              /*copy=*/first);
}

/// The output's error in another program comes from the patch that was formed last, which is that
/// of the output site.
void emitReplayPrediction(KernelEmitter &e) {
  patch::StoreOp last;
  for (patch::StoreOp store : e.block.getBody().getOps<patch::StoreOp>())
    last = store;
  if (!last)
    return;
  Value replay = e.argument(KernelArgKind::Replay, "", 0);
  Operation *maker = last.getParts().front().getDefiningOp();
  auto count = [](Value v) { return ranked(v).getNumElements(); };
  if (auto rank1 = dyn_cast_or_null<patch::Rank1Op>(maker)) {
    callForRows(e, Function::ctxc_rows_predict_rank1_replay,
                {1, count(rank1.getU()), ranked(rank1.getV()).getShape().back()},
                {e.data(rank1.getCurrent()), e.data(rank1.getU()),
                 firstSlot(e, e.data(rank1.getV())), firstSlot(e, e.data(rank1.getData())),
                 replay});
  } else if (auto solve = dyn_cast_or_null<patch::SolveScaleOp>(maker)) {
    Value target = solve.getData();
    double eps = 0;
    if (auto norm = target.getDefiningOp<xf::NormalizeOp>();
        norm && norm.getKind() == xf::NormKind::rms) {
      target = norm.getData();
      eps = norm.getEps().convertToDouble();
    }
    auto patched = target.getDefiningOp<patch::ApplyRank1Op>();
    callForRows(e, Function::ctxc_rows_predict_scale_replay, {1, count(target), eps},
                {effectiveScale(e, e.lookup(solve.getScale()), solve.getOffset().convertToFloat()),
                 e.data(solve.getResult()), e.data(target),
                 e.data(patched ? patched.getBase() : target), replay});
  } else if (auto shift = dyn_cast_or_null<xf::SubOp>(maker)) { // Δb = target − current
    Value change = e.data(shift.getResult());
    callForRows(e, Function::ctxc_rows_predict_rank1_replay, {1, count(shift.getResult()), 0},
                {e.data(shift.getRhs()), change, change, change, replay});
  }
}

void registerPatchLoweringModels(MLIRContext *context) {
  patch::LinearsOp::attachInterface<LowerLinears>(*context);
  patch::ExpertLinearsOp::attachInterface<LowerExpertLinears>(*context);
  patch::Rank1Op::attachInterface<LowerRank1>(*context);
  patch::ApplyRank1Op::attachInterface<LowerApplyRank1>(*context);
  patch::ApplyExpertRank1Op::attachInterface<LowerApplyExpertRank1>(*context);
  patch::SquaredNormsOp::attachInterface<LowerSquaredNorms>(*context);
  patch::ApplyDeltaOp::attachInterface<LowerApplyDelta>(*context);
  patch::InvertRmsNormOp::attachInterface<LowerInvertRmsNorm>(*context);
  patch::SolveScaleOp::attachInterface<LowerSolveScale>(*context);
  patch::ObligationOp::attachInterface<LowerObligation>(*context);
  patch::SameSelectionOp::attachInterface<LowerSameSelection>(*context);
  patch::StoreOp::attachInterface<LowerStore>(*context);
  patch::LoadOp::attachInterface<LowerLoad>(*context);
}
} // namespace ctxc
