// Contractions with a stored matrix become calls of the caller's parallel-for over a function of
// the rows of W, one for each shape and storage type (Contraction.h).
#include "ctxc/Lowering/KernelEmitter.h"
#include "lib/Lowering/CallFrame.h"
#include "lib/Lowering/Contraction.h"
#include "lib/Lowering/Passes.h"
#include "lib/Lowering/RoundVectors.h"
#include "lib/Lowering/Rows.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ctxc;

namespace {

/// Whether the rows of a matrix lie one after the other.
bool hasAdjacentRows(Value matrix) {
  auto type = dyn_cast<MemRefType>(matrix.getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  return type && type.getRank() == 2 && succeeded(type.getStridesAndOffset(strides, offset)) &&
         strides[1] == 1 && strides[0] == type.getDimSize(1);
}

/// Whether `op` is y[s, m] += W[m, k] x[s, k] on a stored matrix.
bool isContraction(linalg::GenericOp op) {
  if (op.getNumLoops() != 3 || op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1)
    return false;
  MLIRContext *context = op.getContext();
  AffineExpr s, m, k;
  bindDims(context, s, m, k);
  auto maps = op.getIndexingMapsArray();
  auto w = dyn_cast<MemRefType>(op.getDpsInputs()[0].getType());
  return w && w.hasStaticShape() && w.getLayout().isIdentity() &&
         hasAdjacentRows(op.getDpsInputs()[1]) && hasAdjacentRows(op.getDpsInits()[0]) &&
         maps[0] == AffineMap::get(3, 0, {m, k}, context) &&
         maps[1] == AffineMap::get(3, 0, {s, k}, context) &&
         maps[2] == AffineMap::get(3, 0, {s, m}, context);
}

/// Whether many vectors are rounded. An expert has one at a time.
bool isRounded(linalg::GenericOp op, const CpuTarget &target) {
  Value w = op.getDpsInputs()[0], x = op.getDpsInputs()[1];
  return op->getParentOfType<func::FuncOp>()->hasAttr(roundedAttr) && target.bfloatPairs &&
         !KernelEmitter::quantized(w) && cast<MemRefType>(w.getType()).getElementType().isBF16() &&
         cast<MemRefType>(x.getType()).isDynamicDim(0);
}

/// The stand-ins of quantised matrices, of which no reader may be left.
LogicalResult dropQuantized(ModuleOp module) {
  auto result = module.walk([](UnrealizedConversionCastOp op) {
    if (op->getNumResults() != 1 || !KernelEmitter::quantized(op.getResult(0)))
      return WalkResult::advance();
    if (!op->use_empty()) {
      op->emitError("a quantised matrix is read by an op that has no compiled kernel for it; "
                    "run it with --backend reference, or read the weights as --dtype f32");
      return WalkResult::interrupt();
    }
    op.erase();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

} // namespace

LogicalResult ctxc::lowerContractions(ModuleOp module, const CpuTarget &target) {
  SmallVector<linalg::GenericOp> contractions;
  module.walk([&](linalg::GenericOp op) {
    if (isContraction(op))
      contractions.push_back(op);
  });
  VectorRounder rounder;
  llvm::DenseMap<Operation *, Value> rounded;
  for (linalg::GenericOp op : contractions)
    if (isRounded(op, target))
      rounded[op] = rounder.roundedFor(op);

  OpBuilder b(module.getContext());
  for (linalg::GenericOp op : contractions) {
    auto kernel = op->getParentOfType<func::FuncOp>();
    Location loc = op.getLoc();
    Value w = op.getDpsInputs()[0], x = op.getDpsInputs()[1], y = op.getDpsInits()[0];
    auto type = cast<MemRefType>(w.getType());
    auto quantized = KernelEmitter::quantized(w);
    // A row is decoded on the thread's stack.
    if (quantized && type.getDimSize(1) > Contraction::maxDecoded)
      return op.emitError("a quantised matrix has rows of ")
             << type.getDimSize(1) << " numbers; compiled kernels decode at most "
             << Contraction::maxDecoded
             << ": run it with --backend reference, or read the weights as --dtype f32";
    Contraction contraction{type, quantized ? quantized->stored : RankedTensorType(), target.lanes,
                            target.registers};
    contraction.rounded = rounded.contains(op);
    std::string element;
    llvm::raw_string_ostream os(element);
    if (quantized) {
      os << xf::stringifyBlockFormat(
          cast<xf::QuantizedType>(quantized->stored.getElementType()).getFormat());
      w = quantized->memory;
    } else {
      os << type.getElementType();
    }
    std::string name =
        (Contraction::prefix + Twine(type.getDimSize(0)) + "x" + Twine(type.getDimSize(1)) + "_" +
         element + (contraction.rounded ? "_rounded" : ""))
            .str();
    auto function = module.lookupSymbol<func::FuncOp>(name);
    if (!function)
      function = contraction.emit(module, name, loc);

    if (linalg::FillOp zeros = zerosFor(op, y))
      zeros.erase();
    b.setInsertionPoint(op);
    Value rows = memref::DimOp::create(b, loc, x, 0);
    SmallVector<Value> fields{addressOf(b, loc, w), addressOf(b, loc, x), addressOf(b, loc, y),
                              toI64(b, loc, rows)};
    if (contraction.rounded)
      fields.push_back(addressOf(b, loc, rounded[op]));
    Value frame = storeFrame(b, loc, kernel, contraction.frameType(b.getContext()), fields);
    Value count =
        LLVM::ConstantOp::create(b, loc, b.getI64Type(), b.getI64IntegerAttr(contraction.out()));
    callParallelFor(b, loc, kernel, function, count, frame);
    op.erase();
  }
  return dropQuantized(module);
}
