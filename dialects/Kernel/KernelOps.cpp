#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::kernel;

static ShapedType shaped(Value v) { return cast<ShapedType>(v.getType()); }

LogicalResult QuantizedOp::verify() {
  // C1
  auto stored = cast<RankedTensorType>(getStored());
  if (!isa<xf::QuantizedType>(stored.getElementType()))
    return emitOpError("stores ") << stored << ", which is not quantised";
  int64_t bytes = getMemory().getType().getDimSize(0);
  if (getMatrix().getType().getShape() != stored.getShape() ||
      (bytes != xf::QuantizedType::bytesOf(stored) &&
       bytes != xf::QuantizedType::deviceBytesOf(stored)))
    return emitOpError("makes ") << getMatrix().getType() << " of " << getMemory().getType() << "; "
                                 << stored << " is in " << xf::QuantizedType::bytesOf(stored)
                                 << " bytes";
  return success();
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// Whether two sizes may be equal.
static bool agree(int64_t a, int64_t b) {
  return a == b || ShapedType::isDynamic(a) || ShapedType::isDynamic(b);
}

void ContractOp::build(OpBuilder &, OperationState &state, Value matrix, Value vectors, Value sums,
                       bool transposed) {
  state.addOperands({matrix, vectors, sums});
  state.getOrAddProperties<Properties>().transposed =
      transposed ? UnitAttr::get(state.getContext()) : UnitAttr();
  if (isa<TensorType>(sums.getType()))
    state.addTypes(sums.getType());
}

LogicalResult ContractOp::verify() {
  ShapedType W = shaped(getMatrix()), x = shaped(getVectors()), y = shaped(getSums());
  // C1
  int64_t m = W.getDimSize(getTransposed() ? 1 : 0), k = W.getDimSize(getTransposed() ? 0 : 1);
  if (!agree(x.getDimSize(1), k) || !agree(y.getDimSize(1), m) ||
      !agree(x.getDimSize(0), y.getDimSize(0)))
    return emitOpError("makes ") << Type(y) << " of " << Type(x) << " by a "
                                 << (getTransposed() ? "transposed " : "") << "matrix of type "
                                 << Type(W);
  // C2
  bool onTensors = isa<TensorType>(Type(y));
  if (isa<TensorType>(Type(W)) != onTensors || isa<TensorType>(Type(x)) != onTensors)
    return emitOpError("has operands on tensors and in memory; all must be the same");
  if (onTensors ? !getResult() || getResult().getType() != getSums().getType() : bool(getResult()))
    return emitOpError("needs ") << (onTensors ? "a result of the type of its sums"
                                               : "no result, as it writes to memory");
  return success();
}

SmallVector<AffineMap> ContractOp::getIndexingMaps() {
  AffineExpr s, i, j;
  bindDims(getContext(), s, i, j);
  AffineExpr m = getTransposed() ? j : i, k = getTransposed() ? i : j;
  return {AffineMap::get(3, 0, {i, j}, getContext()), AffineMap::get(3, 0, {s, k}, getContext()),
          AffineMap::get(3, 0, {s, m}, getContext())};
}

SmallVector<utils::IteratorType> ContractOp::getIteratorTypes() {
  SmallVector<utils::IteratorType> types(3, utils::IteratorType::parallel);
  types[getTransposed() ? 1 : 2] = utils::IteratorType::reduction;
  return types;
}

linalg::GenericOp ContractOp::generalize() {
  OpBuilder b(*this);
  auto op = linalg::GenericOp::create(
      b, getLoc(), getOperation()->getResultTypes(), ValueRange{getMatrix(), getVectors()},
      getSums(), getIndexingMaps(), getIteratorTypes(),
      [](OpBuilder &nested, Location loc, ValueRange a) {
        Value weight = a[0];
        if (!weight.getType().isF32())
          weight = arith::ExtFOp::create(nested, loc, nested.getF32Type(), weight);
        auto fast = arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;
        Value product = arith::MulFOp::create(nested, loc, weight, a[1], fast);
        Value sum = arith::AddFOp::create(nested, loc, a[2], product, fast);
        linalg::YieldOp::create(nested, loc, sum);
      });
  getOperation()->replaceAllUsesWith(op);
  erase();
  return op;
}

void ContractOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand &operand : getOperation()->getOpOperands())
    if (isa<MemRefType>(operand.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
  if (isa<MemRefType>(getSums().getType()))
    effects.emplace_back(MemoryEffects::Write::get(), &getSumsMutable());
}

bool ContractOp::bufferizesToMemoryRead(OpOperand &, const bufferization::AnalysisState &) {
  return true; // the products are added to the sums
}

bool ContractOp::bufferizesToMemoryWrite(OpOperand &operand, const bufferization::AnalysisState &) {
  return &operand == &getSumsMutable();
}

bufferization::AliasingValueList
ContractOp::getAliasingValues(OpOperand &operand, const bufferization::AnalysisState &) {
  if (&operand != &getSumsMutable())
    return {};
  return {{getResult(), bufferization::BufferRelation::Equivalent}};
}

LogicalResult ContractOp::bufferize(RewriterBase &rewriter,
                                    const bufferization::BufferizationOptions &options,
                                    bufferization::BufferizationState &state) {
  SmallVector<Value> buffers;
  for (Value operand : getOperands()) {
    FailureOr<Value> buffer = bufferization::getBuffer(rewriter, operand, options, state);
    if (failed(buffer))
      return failure();
    buffers.push_back(*buffer);
  }
  create(rewriter, getLoc(), buffers[0], buffers[1], buffers[2], getTransposed());
  bufferization::replaceOpWithBufferizedValues(rewriter, *this, buffers[2]);
  return success();
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

LogicalResult ExpertsOp::verify() {
  auto stored = cast<ShapedType>(getStored());
  ShapedType x = shaped(getVectors()), selected = shaped(getSelected()), y = shaped(getSums());
  // C1
  int64_t m = stored.getDimSize(getTransposed() ? 2 : 1),
          k = stored.getDimSize(getTransposed() ? 1 : 2), slots = y.getDimSize(1);
  bool each = x.getRank() == 3;
  if ((!each && x.getRank() != 2) || x.getDimSize(x.getRank() - 1) != k ||
      (each && x.getDimSize(1) != slots) || y.getDimSize(2) != m ||
      selected.getDimSize(1) != slots || !agree(x.getDimSize(0), y.getDimSize(0)) ||
      !agree(selected.getDimSize(0), y.getDimSize(0)))
    return emitOpError("makes ") << Type(y) << " of " << Type(x) << ", selected by "
                                 << Type(selected) << ", by "
                                 << (getTransposed() ? "transposed " : "") << "matrices of "
                                 << Type(stored);
  return success();
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Whether a tensor or memref has these sizes; a negative one may be any.
static bool hasSizes(Value v, ArrayRef<int64_t> sizes) {
  return llvm::equal(shaped(v).getShape(), sizes,
                     [](int64_t a, int64_t b) { return b < 0 || agree(a, b); });
}

LogicalResult AttentionOp::verify() {
  // C1
  ShapedType q = shaped(getQuery()), v = shaped(getValues()), y = shaped(getMixed());
  if (q.getRank() != 4 || v.getRank() != 3 || y.getRank() != 4)
    return emitOpError("has query, values and result of ranks ")
           << q.getRank() << ", " << v.getRank() << " and " << y.getRank() << "; expected 4, 3, 4";
  int64_t s = q.getDimSize(0), g = q.getDimSize(1), r = q.getDimSize(2), d = q.getDimSize(3),
          t = v.getDimSize(0), x = v.getDimSize(2);
  if (llvm::any_of(ArrayRef({g, r, d, x}), ShapedType::isDynamic))
    return emitOpError("needs known numbers of groups and heads, and known sizes of a head");
  auto fits = [&](Value operand, ArrayRef<int64_t> sizes) {
    return !operand || hasSizes(operand, sizes);
  };
  if (!fits(getKeys(), {t, g, d}) || !fits(getValues(), {t, g, x}) ||
      !fits(getMixed(), {s, g, r, x}) || !fits(getSinks(), {s, g, r}) ||
      !fits(getOwnScores(), {s, g, r}) || !fits(getOwnValues(), {s, g, x}))
    return emitOpError("has operands whose sizes do not fit ")
           << Type(q) << " and values of " << Type(v);
  if (bool(getOwnScores()) != bool(getOwnValues()))
    return emitOpError("needs the own score and the own value together");
  // C2
  bool onTensors = isa<TensorType>(Type(y));
  if (llvm::any_of(getOperandTypes(),
                   [&](Type type) { return isa<TensorType>(type) != onTensors; }))
    return emitOpError("has operands on tensors and in memory; all must be the same");
  if (onTensors ? !getResult() || getResult().getType() != y : bool(getResult()))
    return emitOpError("needs ") << (onTensors ? "a result of the type of its destination"
                                               : "no result, as it writes to memory");
  // C5
  if (getWindow() && !getCausal())
    return emitOpError("has a window and is not causal");
  return verifyScore();
}

LogicalResult AttentionOp::verifyScore() {
  // C3
  SmallVector<AffineMap> maps = llvm::to_vector(getMaps().getAsValueRange<AffineMapAttr>());
  if (maps.size() != getOthers().size())
    return emitOpError("has ") << maps.size() << " maps for " << getOthers().size()
                               << " other operands";
  for (auto [map, other] : llvm::zip(maps, getOthers())) {
    AffineExpr slot = getAffineDimExpr(3, getContext());
    if (map.getNumDims() != 4 || map.getNumResults() != shaped(other).getRank() ||
        llvm::any_of(map.getResults(),
                     [](AffineExpr e) {
                       return !isa<AffineDimExpr>(e) &&
                              e != getAffineConstantExpr(0, e.getContext());
                     }) ||
        (map.getNumResults() && llvm::is_contained(map.getResults().drop_back(), slot)))
      return emitOpError("reads ") << other.getType() << " at " << AffineMapAttr::get(map)
                                   << "; expected dimensions of (s, g, r, t) or 0, one for each "
                                      "dimension, t only as the last";
  }
  // C4
  Block &body = getScore().front();
  SmallVector<Type> expected{Float32Type::get(getContext())};
  for (Value other : getOthers())
    expected.push_back(shaped(other).getElementType());
  if (!llvm::equal(body.getArgumentTypes(), expected) || !isa<AttendOp>(body.back()))
    return emitOpError("needs a region of (") << expected << ") that ends with kernel.attend";
  return success();
}

void AttentionOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand &operand : getOperation()->getOpOperands())
    if (isa<MemRefType>(operand.get().getType())) {
      if (&operand == &getMixedMutable())
        effects.emplace_back(MemoryEffects::Write::get(), &operand);
      else
        effects.emplace_back(MemoryEffects::Read::get(), &operand);
    }
}

bool AttentionOp::bufferizesToMemoryRead(OpOperand &operand, const bufferization::AnalysisState &) {
  return &operand != &getMixedMutable();
}

bool AttentionOp::bufferizesToMemoryWrite(OpOperand &operand,
                                          const bufferization::AnalysisState &) {
  return &operand == &getMixedMutable();
}

bufferization::AliasingValueList
AttentionOp::getAliasingValues(OpOperand &operand, const bufferization::AnalysisState &) {
  if (&operand != &getMixedMutable())
    return {};
  return {{getResult(), bufferization::BufferRelation::Equivalent}};
}

LogicalResult AttentionOp::bufferize(RewriterBase &rewriter,
                                     const bufferization::BufferizationOptions &options,
                                     bufferization::BufferizationState &state) {
  bool isKnown = true;
  auto buffer = [&](Value operand) -> Value {
    if (!operand)
      return {};
    FailureOr<Value> found = bufferization::getBuffer(rewriter, operand, options, state);
    isKnown &= succeeded(found);
    return succeeded(found) ? *found : operand;
  };
  Value query = buffer(getQuery()), keys = buffer(getKeys()), values = buffer(getValues()),
        window = buffer(getWindow()), sinks = buffer(getSinks()),
        ownScores = buffer(getOwnScores()), ownValues = buffer(getOwnValues()),
        mixed = buffer(getMixed());
  SmallVector<Value> others = llvm::map_to_vector(getOthers(), buffer);
  if (!isKnown)
    return failure();
  auto made = create(rewriter, getLoc(), TypeRange(), query, keys, values, window, others, sinks,
                     ownScores, ownValues, mixed, getMaps(), getCausal());
  made.getScore().takeBody(getScore());
  bufferization::replaceOpWithBufferizedValues(rewriter, *this, mixed);
  return success();
}

//===----------------------------------------------------------------------===//
// Recurrences
//===----------------------------------------------------------------------===//

LogicalResult ScanOp::verify() {
  // C1
  MemRefType before = getBefore().getType(), results = getResults().getType();
  if (!before.hasStaticShape() || before.getRank() == 0 ||
      (getAfter() && getAfter().getType().getShape() != before.getShape()))
    return emitOpError("carries ")
           << before << "; it needs one known shape of one or more dimensions";
  if (results.getRank() < 2 || results.getDimSize(1) != getParts())
    return emitOpError("writes ") << results << "; expected (rows, " << getParts() << ", …)";
  // C2
  SmallVector<AffineMap> maps = llvm::to_vector(getMaps().getAsValueRange<AffineMapAttr>());
  if (maps.size() != getReads().size())
    return emitOpError("has ") << maps.size() << " maps for " << getReads().size()
                               << " operands that it reads";
  for (auto [map, read] : llvm::zip(maps, getReads()))
    if (map.getNumDims() != 2 || map.getNumSymbols() ||
        map.getNumResults() > shaped(read).getRank())
      return emitOpError("reads ") << read.getType() << " at " << AffineMapAttr::get(map)
                                   << "; expected a map from (s, p) to its first dimensions";
  // C3
  Block &body = getBody().front();
  auto isRest = [](Type argument, Value of, unsigned places) {
    auto type = dyn_cast<MemRefType>(argument);
    return type && type.getElementType() == shaped(of).getElementType() &&
           type.getShape() == shaped(of).getShape().drop_front(places);
  };
  bool fit = body.getNumArguments() == maps.size() + 2 &&
             isRest(body.getArgumentTypes().front(), getBefore(), 1) &&
             isRest(body.getArguments().back().getType(), getResults(), 2);
  for (unsigned i = 0; fit && i < maps.size(); ++i)
    fit = isRest(body.getArgumentTypes()[i + 1], getReads()[i], maps[i].getNumResults());
  if (!fit)
    return emitOpError("needs a region of what is left of each operand; found (")
           << body.getArgumentTypes() << ")";
  return success();
}

void ScanOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand &operand : getOperation()->getOpOperands())
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
  effects.emplace_back(MemoryEffects::Write::get(), &getResultsMutable());
  for (OpOperand &after : getAfterMutable())
    effects.emplace_back(MemoryEffects::Write::get(), &after);
}
