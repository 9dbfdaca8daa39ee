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
  if (getMatrix().getType().getShape() != stored.getShape() ||
      getMemory().getType().getDimSize(0) != xf::QuantizedType::bytesOf(stored))
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
