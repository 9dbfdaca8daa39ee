// Contractions with a stored matrix become calls of the caller's parallel-for with a function over
// the rows of W. There is one function for each shape and storage type (Contraction.h).
#include "ctxc/Lowering/KernelEmitter.h"
#include "ctxc/Lowering/Passes.h"
#include "dialects/Kernel/IntegerProducts.h"
#include "lib/Lowering/CPU/Contraction.h"
#include "lib/Lowering/CPU/FixedContraction.h"
#include "lib/Lowering/CPU/GroupExperts.h"
#include "lib/Lowering/CPU/IntegerContraction.h"
#include "lib/Lowering/CPU/Remarks.h"
#include "lib/Lowering/CPU/RoundVectors.h"
#include "lib/Lowering/CPU/SplitNumbers.h"
#include "lib/Lowering/CPU/TransposedContraction.h"
#include "lib/Lowering/CallFrame.h"
#include "lib/Lowering/Order.h"
#include "lib/Lowering/Rows.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ctxc;

namespace ctxc {
#define GEN_PASS_DEF_LOWERCONTRACTIONS
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

namespace {

/// Whether the rows of a matrix lie one after the other in memory.
bool hasAdjacentRows(Value matrix) {
  auto type = dyn_cast<MemRefType>(matrix.getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  return type && type.getRank() == 2 && succeeded(type.getStridesAndOffset(strides, offset)) &&
         strides[1] == 1 && strides[0] == type.getDimSize(1);
}

/// Why the contraction gets no function of its own; empty where it gets one.
StringRef whyNone(kernel::ContractOp op) {
  auto w = cast<MemRefType>(op.getMatrix().getType());
  if (!w.hasStaticShape() || !w.getLayout().isIdentity())
    return "the matrix is not stored in rows that lie one after the other, of sizes that are known";
  if (!hasAdjacentRows(op.getVectors()))
    return "the vectors do not lie one after the other";
  if (!hasAdjacentRows(op.getSums()))
    return "the results do not lie one after the other";
  if (op.getTransposed() && KernelEmitter::quantized(op.getMatrix()))
    return "the blocks of a quantised matrix lie along its rows, and it is stored as (in, out)";
  return "";
}

/// How the contraction multiplies.
ContractionScheme schemeOf(kernel::ContractOp op, const CpuTarget &target, ByteProducts products) {
  auto quantized = KernelEmitter::quantized(op.getMatrix());
  const bool isQuantized = quantized && !op.getTransposed();
  if (isQuantized && kernel::isInteger(quantized))
    return ContractionScheme::Integer;
  // Many vectors may be multiplied otherwise. How many there are of an expert depends on the other
  // rows, and no result of a row may.
  auto kernel = op->getParentOfType<func::FuncOp>();
  if (!ofExpert(op)) {
    if (kernel::isMarked<kernel::Rounded>(kernel) && target.bfloatPairs && !quantized &&
        cast<MemRefType>(op.getMatrix().getType()).getElementType().isBF16())
      return target.tiles ? ContractionScheme::RoundedTiles : ContractionScheme::Rounded;
    if (kernel::isMarked<kernel::Split>(kernel) && target.tiles)
      return ContractionScheme::Split;
  }
  if (!isQuantized)
    return ContractionScheme::Float;
  auto stored = cast<RankedTensorType>(quantized.getStored());
  return multipliesFixed(cast<xf::QuantizedType>(stored.getElementType()), target, products)
             ? ContractionScheme::Fixed
             : ContractionScheme::Float;
}

/// What the name of a function ends with.
StringRef stringify(ContractionScheme scheme) {
  switch (scheme) {
  case ContractionScheme::Float:
    return "";
  case ContractionScheme::Rounded:
  case ContractionScheme::RoundedTiles:
    return "_rounded";
  case ContractionScheme::Split:
    return "_split";
  case ContractionScheme::Integer:
    return "_integer";
  case ContractionScheme::Fixed:
    return "_fixed";
  }
  llvm_unreachable("a contraction of no known scheme");
}

/// Erases the ops that stand for quantised matrices; an op that still reads one is an error.
LogicalResult dropQuantized(ModuleOp module) {
  auto result = module.walk([](kernel::QuantizedOp op) {
    if (!op->use_empty()) {
      op->emitError("a quantised matrix is read by an op that has no compiled kernel for it; "
                    "expected the reference engine, or weights of storage type f32");
      return WalkResult::interrupt();
    }
    op.erase();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Memory for the sums of the blocks when there are few vectors; for an expert, outside of the loop
/// over all.
Value blockSums(const Contraction &c, kernel::ContractOp op) {
  std::optional<OfExpert> expert = ofExpert(op);
  OpBuilder b(expert ? expert->loop : op.getOperation());
  Location loc = op.getLoc();
  int64_t blocks = transposedBlocks(c);
  Value rows = memref::DimOp::create(b, loc, expert ? expert->vectors : op.getVectors(), 0);
  auto index = [&](int64_t i) { return arith::ConstantIndexOp::create(b, loc, i); };
  Value few = arith::MinUIOp::create(b, loc, rows, index(Contraction::manyVectors - 1));
  Value count = arith::MulIOp::create(b, loc, few, index(blocks));
  return memref::AllocOp::create(
      b, loc, MemRefType::get({ShapedType::kDynamic, c.out()}, b.getF32Type()), ValueRange{count});
}

/// The function that adds up the sums of the blocks.
func::FuncOp totalsOf(const Contraction &c, ModuleOp module, StringRef name, Location loc) {
  std::string own = (name + "_totals").str();
  auto function = module.lookupSymbol<func::FuncOp>(own);
  return function ? function : emitTransposedTotals(c, module, own, loc);
}

/// The name of the contraction's function. `type` is that of its matrix.
std::string nameOf(const Contraction &contraction, MemRefType type) {
  std::string element;
  llvm::raw_string_ostream os(element);
  if (RankedTensorType stored = contraction.stored)
    os << xf::stringifyBlockFormat(cast<xf::QuantizedType>(stored.getElementType()).getFormat());
  else
    os << type.getElementType();
  return (Contraction::prefix + Twine(type.getDimSize(0)) + "x" + Twine(type.getDimSize(1)) + "_" +
          element + (contraction.transposed ? "_transposed" : "") + stringify(contraction.scheme))
      .str();
}

/// A row of a quantised matrix is decoded on the thread's stack.
LogicalResult checkRow(kernel::ContractOp op, int64_t numbers) {
  if (numbers <= Contraction::maxDecoded)
    return success();
  return op.emitError("a quantised matrix has rows of ")
         << numbers << " numbers; compiled kernels decode at most " << Contraction::maxDecoded
         << "; expected the reference engine, or weights of storage type f32";
}

LogicalResult lowerContractions(ModuleOp module, const CpuTarget &target, ByteProducts products) {
  groupExperts(module);
  SmallVector<kernel::ContractOp> contractions;
  module.walk([&](kernel::ContractOp op) {
    StringRef why = whyNone(op);
    if (why.empty()) {
      contractions.push_back(op);
      return;
    }
    missed(op, "contraction", why);
    op.generalize();
  });
  VectorRounder rounder(/*parts=*/1), splitter(split::parts);
  SpanRounder toBytes(SpanRounder::Bytes), toFixed(SpanRounder::Fixed);
  llvm::DenseMap<Operation *, Value> rounded;
  for (kernel::ContractOp op : contractions)
    switch (schemeOf(op, target, products)) {
    case ContractionScheme::Float:
      break;
    case ContractionScheme::Rounded:
    case ContractionScheme::RoundedTiles:
      rounded[op] = rounder.roundedFor(op);
      break;
    case ContractionScheme::Split:
      rounded[op] = splitter.roundedFor(op);
      break;
    case ContractionScheme::Integer:
      rounded[op] = toBytes.roundedFor(op);
      break;
    case ContractionScheme::Fixed:
      rounded[op] = toFixed.roundedFor(op);
      break;
    }

  OpBuilder b(module.getContext());
  for (kernel::ContractOp op : contractions) {
    auto kernel = op->getParentOfType<func::FuncOp>();
    Location loc = op.getLoc();
    Value w = op.getMatrix(), x = op.getVectors(), y = op.getSums();
    auto type = cast<MemRefType>(w.getType());
    auto quantized = KernelEmitter::quantized(w);
    auto stored = quantized ? cast<RankedTensorType>(quantized.getStored()) : RankedTensorType();
    if (quantized && failed(checkRow(op, type.getDimSize(1))))
      return failure();
    Contraction contraction{type, stored, target.lanes, target.registers};
    contraction.scheme = schemeOf(op, target, products);
    contraction.products = products;
    contraction.readings = target.readings;
    contraction.transposed = op.getTransposed();
    if (quantized)
      w = quantized.getMemory();
    std::string name = nameOf(contraction, type);
    auto function = module.lookupSymbol<func::FuncOp>(name);
    if (!function)
      function = contraction.emit(module, name, loc);

    if (linalg::FillOp zeros = zerosFor(op, y))
      zeros.erase();
    b.setInsertionPoint(op);
    Value rows = memref::DimOp::create(b, loc, x, 0);
    SmallVector<Value> fields{addressOf(b, loc, w), addressOf(b, loc, x), addressOf(b, loc, y),
                              toI64(b, loc, rows)};
    if (contraction.transposed)
      fields.push_back(addressOf(b, loc, blockSums(contraction, op)));
    if (contraction.readsRounded())
      fields.push_back(addressOf(b, loc, rounded[op]));
    Value frame = storeFrame(b, loc, kernel, contraction.frameType(b.getContext()), fields);
    auto number = [&](int64_t n) -> Value {
      return LLVM::ConstantOp::create(b, loc, b.getI64Type(), b.getI64IntegerAttr(n));
    };
    if (!contraction.transposed) {
      callParallelFor(b, loc, kernel, function, number(contraction.units()), frame);
    } else {
      Value few =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, rows,
                                arith::ConstantIndexOp::create(b, loc, Contraction::manyVectors));
      Value count = arith::SelectOp::create(b, loc, few, number(transposedBlocks(contraction)),
                                            number(contraction.units()));
      callParallelFor(b, loc, kernel, function, count, frame);
      auto branch = scf::IfOp::create(b, loc, few, /*withElseRegion=*/false);
      OpBuilder inBranch = branch.getThenBodyBuilder();
      func::CallOp::create(inBranch, loc, totalsOf(contraction, module, name, loc),
                           ValueRange{frame});
    }
    op.erase();
  }
  return dropQuantized(module);
}

struct LowerContractions : ctxc::impl::LowerContractionsBase<LowerContractions> {
  using Base::Base;
  LowerContractions() = default;
  LowerContractions(const LowerContractions &other) : Base(other) {}
  LowerContractions(LowerContractionsOptions options, ByteProducts products) : Base(options) {
    byteProducts = int64_t(products);
  }
  Option<int64_t> byteProducts{*this, "byte-products",
                               llvm::cl::desc("how bytes are multiplied (ByteProduct.h)"),
                               llvm::cl::init(int64_t(ByteProducts::Plain))};

  void runOnOperation() override {
    CpuTarget target;
    target.lanes = lanes;
    target.registers = registers;
    target.bfloatPairs = bfloatPairs;
    llvm::Expected<Readings> given = Readings::parse(readings);
    if (!given) {
      getOperation().emitError("readings: ") << llvm::toString(given.takeError());
      return signalPassFailure();
    }
    target.readings = *given;
    target.tiles = tiles;
    if (failed(expectBuffers(getOperation(), getArgument())) ||
        failed(lowerContractions(getOperation(), target, ByteProducts(int64_t(byteProducts)))))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> ctxc::createLowerContractionsFor(const CpuTarget &target) {
  return std::make_unique<LowerContractions>(
      LowerContractionsOptions{target.lanes, target.registers, target.bfloatPairs,
                               target.readings.text(), target.tiles},
      byteProductsOf(target));
}
