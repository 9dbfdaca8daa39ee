// Sums and maxima along the last dimension, computed in vectors.
//
// The order of a sum is that of contractions: `rowLanes` partial sums by position modulo rowLanes,
// each added up along the dimension; then the second half is added to the first, and so on. With
// LLVM's own vectoriser the order would depend on the surrounding loops and on the length of the
// dimension. In this order zeros at the end change nothing.
#include "lib/Lowering/CPU/RowReductions.h"
#include "lib/Lowering/CPU/Remarks.h"
#include "lib/Lowering/CPU/VectorBody.h"
#include "lib/Lowering/CPU/VectorSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

using namespace mlir;
using namespace ctxc;

namespace {

/// y = combine(y, f(x…)), along the last of the loops.
struct Reduction {
  linalg::GenericOp op;
  Operation *combiner = nullptr; ///< an addf that may be reassociated, or a maximumf
  Value term;                    ///< f(x…) in the body

  vector::CombiningKind kind() const {
    return isa<arith::AddFOp>(combiner) ? vector::CombiningKind::ADD
                                        : vector::CombiningKind::MAXIMUMF;
  }
};

bool hasAdjacentElements(Value memref) {
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(cast<MemRefType>(memref.getType()).getStridesAndOffset(strides, offset)) &&
         !strides.empty() && strides.back() == 1;
}

/// Whether the operand's last dimension is indexed by the last loop, or no dimension is.
bool isReadInLine(OpOperand &operand, AffineMap map, unsigned last) {
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  if (!type || !map.isProjectedPermutation() || !type.getElementType().isFloat())
    return false;
  if (!map.isFunctionOfDim(last))
    return true;
  return map.getNumResults() > 0 && map.getDimPosition(map.getNumResults() - 1) == last &&
         hasAdjacentElements(operand.get());
}

/// The reduction that `op` is. Where it is none, `why` may tell the reason.
std::optional<Reduction> matchReduction(linalg::GenericOp op, StringRef &why) {
  auto none = [&](StringRef reason) {
    why = reason;
    return std::nullopt;
  };
  unsigned last = op.getNumLoops() - 1;
  if (op.getNumLoops() < 2 || op.getNumDpsInits() != 1 || op.getNumReductionLoops() != 1 ||
      op.getIteratorTypesArray().back() != utils::IteratorType::reduction)
    return none("it does not run along the innermost loop alone");
  OpOperand *init = op.getDpsInitOperand(0);
  if (op.getMatchingIndexingMap(init).isFunctionOfDim(last) ||
      !cast<MemRefType>(init->get().getType()).getElementType().isF32())
    return none("its result is not of float32");
  for (OpOperand *input : op.getDpsInputOperands())
    if (!isReadInLine(*input, op.getMatchingIndexingMap(input), last))
      return none("an operand's numbers do not lie side by side along it");
  Block *body = op.getBody();
  Value sum = body->getArguments().back();
  Reduction found{op, body->getTerminator()->getOperand(0).getDefiningOp(), {}};
  auto addition = dyn_cast_or_null<arith::AddFOp>(found.combiner);
  bool mayReorder =
      addition && bitEnumContainsAll(addition.getFastmath(), arith::FastMathFlags::reassoc);
  if (!mayReorder && !isa_and_nonnull<arith::MaximumFOp>(found.combiner))
    return none("it is no maximum, and no sum whose order is free");
  if (!sum.hasOneUse() || !llvm::is_contained(found.combiner->getOperands(), sum))
    return none("what is added depends on the sum");
  found.term = found.combiner->getOperand(found.combiner->getOperand(0) == sum);
  if (!hasVectorForm(*body))
    return none("its body has an op that no vector has");
  return found;
}

class ReductionEmitter {
public:
  ReductionEmitter(OpBuilder &b, Reduction reduction)
      : b(b), loc(reduction.op.getLoc()), reduction(reduction), op(reduction.op) {}

  scf::ForOp emit() {
    SmallVector<Value> sizes = loopSizes();
    Value zero = index(0), one = index(1);
    scf::ForOp outer;
    for (Value size : ArrayRef(sizes).drop_back()) {
      auto loop = scf::ForOp::create(b, loc, zero, size, one);
      if (!outer)
        outer = loop;
      at.push_back(loop.getInductionVar());
      b.setInsertionPointToStart(loop.getBody());
    }
    at.push_back({});
    reduce(sizes.back());
    b.setInsertionPointAfter(outer);
    return outer;
  }

private:
  Value index(int64_t i) { return arith::ConstantIndexOp::create(b, loc, i); }

  /// The loop bounds, from the dimensions of the operands.
  SmallVector<Value> loopSizes() {
    SmallVector<Value> sizes(op.getNumLoops());
    for (OpOperand &operand : op->getOpOperands()) {
      AffineMap map = op.getMatchingIndexingMap(&operand);
      for (unsigned i = 0; i < map.getNumResults(); ++i)
        if (Value &size = sizes[map.getDimPosition(i)]; !size)
          size = b.createOrFold<memref::DimOp>(loc, operand.get(), int64_t(i));
    }
    return sizes;
  }

  SmallVector<Value> indicesOf(OpOperand *operand) {
    SmallVector<Value> indices;
    AffineMap map = op.getMatchingIndexingMap(operand);
    for (unsigned i = 0; i < map.getNumResults(); ++i)
      indices.push_back(at[map.getDimPosition(i)]);
    return indices;
  }

  /// Loads the lanes of an operand from at.back() on; zero where the mask leaves lanes out.
  Value load(OpOperand *operand, Value mask) {
    Value memref = operand->get();
    Type element = cast<MemRefType>(memref.getType()).getElementType();
    auto type = VectorType::get({rowLanes}, element);
    SmallVector<Value> indices = indicesOf(operand);
    if (!op.getMatchingIndexingMap(operand).isFunctionOfDim(op.getNumLoops() - 1))
      return broadcastLanes(b, loc, memref::LoadOp::create(b, loc, memref, indices));
    if (!mask)
      return vector::LoadOp::create(b, loc, type, memref, indices);
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    return vector::MaskedLoadOp::create(b, loc, type, memref, indices, mask, zero);
  }

  Value combine(Value a, Value c) {
    return reduction.kind() == vector::CombiningKind::ADD
               ? arith::AddFOp::create(b, loc, a, c, fast()).getResult()
               : arith::MaximumFOp::create(b, loc, a, c).getResult();
  }
  /// Allows a product and its sum to become one fused operation, as the op's body does.
  static arith::FastMathFlags fast() { return arith::FastMathFlags::contract; }

  /// `sums` with the lanes from at.back() on added.
  Value step(Value sums, Value neutral, Value mask) {
    IRMapping wide;
    for (auto [argument, operand] :
         llvm::zip(op.getBody()->getArguments(), op.getDpsInputOperands()))
      wide.map(argument, load(operand, mask));
    applyToVectors(b, loc, *op.getBody(), wide, reduction.combiner);
    Value term = wide.lookup(reduction.term);
    if (mask)
      term = arith::SelectOp::create(b, loc, mask, term, neutral);
    return combine(sums, term);
  }

  /// Along the last loop, of `size` iterations.
  void reduce(Value size) {
    bool isSum = reduction.kind() == vector::CombiningKind::ADD;
    Value neutral = broadcastLanes(
        b, loc,
        arith::ConstantOp::create(
            b, loc, b.getF32FloatAttr(isSum ? 0 : -std::numeric_limits<float>::infinity())));
    Value width = index(rowLanes);
    Value whole =
        b.createOrFold<arith::SubIOp>(loc, size, b.createOrFold<arith::RemUIOp>(loc, size, width));
    auto loop = scf::ForOp::create(b, loc, index(0), whole, width, neutral);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      at.back() = loop.getInductionVar();
      scf::YieldOp::create(b, loc, step(loop.getRegionIterArg(0), neutral, {}));
    }
    Value sums = loop.getResult(0);
    auto known = getConstantIntValue(size);
    if (!known || *known % rowLanes) {
      at.back() = whole;
      Value left = arith::SubIOp::create(b, loc, size, whole);
      Value mask =
          vector::CreateMaskOp::create(b, loc, VectorType::get({rowLanes}, b.getI1Type()), left);
      sums = step(sums, neutral, mask);
    }
    Value total = isSum ? vector::ExtractOp::create(b, loc, totals(b, loc, {sums}), 0).getResult()
                        : vector::ReductionOp::create(b, loc, reduction.kind(), sums).getResult();
    OpOperand *init = op.getDpsInitOperand(0);
    SmallVector<Value> indices = indicesOf(init);
    Value before = memref::LoadOp::create(b, loc, init->get(), indices);
    memref::StoreOp::create(b, loc, combine(before, total), init->get(), indices);
  }

  OpBuilder &b;
  Location loc;
  Reduction reduction;
  linalg::GenericOp op;
  SmallVector<Value> at; ///< the loops' indices
};

} // namespace

scf::ForOp ctxc::reductionToLoops(OpBuilder &b, linalg::LinalgOp op) {
  auto generic = dyn_cast<linalg::GenericOp>(*op);
  if (!generic || !generic.getNumReductionLoops())
    return {};
  StringRef why;
  if (auto reduction = matchReduction(generic, why))
    return ReductionEmitter(b, *reduction).emit();
  missed(op, "reduction", why);
  return {};
}
