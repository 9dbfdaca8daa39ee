// y = W x over rows, as register-tiled loops over blocks of W's rows.
//
// One function for each shape and storage type of W; the block of rows is what
// threads share out. Within a block the loop over the vectors is outside and the
// loop along a row of W is innermost, so W comes from memory once whatever S is.
// A quantised W is decoded, block of rows by block, into memory of the thread first.
// Every sum runs along its row in the same order: `lanes` partial sums by
// position modulo lanes, then their fixed tree. It depends on neither S nor the
// threads, so fused and separate runs agree to the last bit.
#include "ctxc/Lowering/KernelEmitter.h"
#include "lib/Lowering/CallFrame.h"
#include "lib/Lowering/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ctxc;

namespace {

/// Numbers of a quantised W that are decoded at a time: 256 KB.
constexpr int64_t maxDecoded = 1 << 16;

/// Emits one contraction function.
class ContractionEmitter {
public:
  /// `stored` is null but for a quantised W.
  ContractionEmitter(OpBuilder &b, Location loc, MemRefType weight, RankedTensorType stored,
                     const CpuTarget &target)
      : b(b), loc(loc), weight(weight), stored(stored), lanes(target.lanes),
        blockRows(target.registers >= 32 ? 8 : 4), out(weight.getDimSize(0)),
        in(weight.getDimSize(1)), accumulator(VectorType::get({target.lanes}, b.getF32Type())) {
    // Decoded rows should stay in the caches closest to the core.
    while (stored && blockRows > 1 && blockRows * in > maxDecoded)
      blockRows /= 2;
  }

  func::FuncOp emit(ModuleOp module, StringRef name) {
    Type ptr = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(module.getBody());
    auto function = func::FuncOp::create(b, loc, name, b.getFunctionType({ptr, i64, i64}, {}));
    function.setPrivate();
    Block *entry = function.addEntryBlock();
    b.setInsertionPointToStart(entry);
    auto frame = frameType(b);
    auto field = [&](int32_t i, Type type) {
      Value address = LLVM::GEPOp::create(b, loc, ptr, frame, entry->getArgument(0),
                                          ArrayRef<LLVM::GEPArg>{0, i});
      return LLVM::LoadOp::create(b, loc, type, address);
    };
    Value rows = toIndex(b, loc, field(3, i64));
    Value address = field(0, ptr);
    if (stored)
      allocateDecoded(address);
    else
      w = memrefAt(b, loc, address, weight, {});
    x = memrefAt(b, loc, field(1, ptr), MemRefType::get({ShapedType::kDynamic, in}, b.getF32Type()),
                 rows);
    y = memrefAt(b, loc, field(2, ptr),
                 MemRefType::get({ShapedType::kDynamic, out}, b.getF32Type()), rows);

    Value begin = toIndex(b, loc, entry->getArgument(1)),
          end = toIndex(b, loc, entry->getArgument(2));
    forRange(begin, end, 1, [&](Value block) {
      Value row = arith::MulIOp::create(b, loc, block, index(blockRows));
      int64_t rest = out % blockRows;
      auto compute = [&](int64_t count) {
        if (stored)
          decode(row, count);
        allVectors(row, rows, count);
      };
      if (rest == 0)
        return compute(blockRows);
      Value full =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, block, index(out / blockRows));
      auto branch = scf::IfOp::create(b, loc, full, /*withElseRegion=*/true);
      OpBuilder::InsertionGuard inner(b);
      b.setInsertionPointToStart(branch.thenBlock());
      compute(blockRows);
      b.setInsertionPointToStart(branch.elseBlock());
      compute(rest);
    });
    b.setInsertionPointToEnd(entry);
    func::ReturnOp::create(b, loc);
    return function;
  }

  int64_t blocks() const { return (out + blockRows - 1) / blockRows; }

  /// What the function finds at its first argument: W, x, y, S.
  static LLVM::LLVMStructType frameType(OpBuilder &b) {
    Type ptr = LLVM::LLVMPointerType::get(b.getContext());
    return LLVM::LLVMStructType::getLiteral(b.getContext(), {ptr, ptr, ptr, b.getI64Type()});
  }

private:
  Value index(int64_t i) { return arith::ConstantIndexOp::create(b, loc, i); }

  void forRange(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(b, loc, from, to, index(step));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }

  /// Memory of the thread for the rows that are being worked on, in float32.
  void allocateDecoded(Value address) {
    Type ptr = address.getType(), i64 = b.getI64Type();
    packed = address;
    Value size = LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(blockRows * in));
    decoded = LLVM::AllocaOp::create(b, loc, ptr, b.getF32Type(), size, /*alignment=*/64);
    w = memrefAt(b, loc, decoded, MemRefType::get({blockRows, in}, b.getF32Type()), {});
  }

  /// `count` rows of a quantised W from `row` on: each is read once, whatever S is.
  void decode(Value row, int64_t count) {
    auto element = cast<xf::QuantizedType>(stored.getElementType());
    Type i64 = b.getI64Type();
    Value first = toI64(b, loc, arith::MulIOp::create(b, loc, row, index(in)));
    auto module = b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
    StringRef name = "ctxc_decode";
    SmallVector<Value> operands{
        arith::ConstantIntOp::create(b, loc, int64_t(element.getFormat()), 32), packed, first,
        LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(count * in)), decoded};
    if (!module.lookupSymbol(name)) {
      OpBuilder declare(module.getBodyRegion());
      func::FuncOp::create(declare, loc, name,
                           b.getFunctionType(TypeRange(ValueRange(operands)), {}))
          .setPrivate();
    }
    func::CallOp::create(b, loc, name, TypeRange(), operands);
  }

  /// `count` rows of W from `row` on, with every vector: two at a time, so that a row
  /// that is loaded serves both, and a last one alone.
  void allVectors(Value row, Value rows, int64_t count) {
    Value two = index(2);
    Value pairs = arith::MulIOp::create(b, loc, arith::DivUIOp::create(b, loc, rows, two), two);
    forRange(index(0), pairs, 2, [&](Value s) { tile(row, s, count, 2); });
    forRange(pairs, rows, 1, [&](Value s) { tile(row, s, count, 1); });
  }

  Value load(Value memref, Value row, Value column, Value mask) {
    auto element = cast<MemRefType>(memref.getType()).getElementType();
    auto type = VectorType::get({lanes}, element);
    Value v;
    if (mask) {
      Value zero = arith::ConstantOp::create(b, loc, type, b.getZeroAttr(type));
      v = vector::MaskedLoadOp::create(b, loc, type, memref, ValueRange{row, column}, mask, zero);
    } else {
      v = vector::LoadOp::create(b, loc, type, memref, ValueRange{row, column});
    }
    return element.isF32() ? v : Value(arith::ExtFOp::create(b, loc, accumulator, v));
  }

  /// One step along the rows: sums += W[·, k…] x[·, k…].
  SmallVector<Value> step(ValueRange sums, ArrayRef<Value> wRows, ArrayRef<Value> xRows, Value k,
                          Value mask) {
    SmallVector<Value> xs, next;
    for (Value s : xRows)
      xs.push_back(load(x, s, k, mask));
    for (auto [i, r] : llvm::enumerate(wRows)) {
      Value wide = load(w, r, k, mask);
      for (auto [j, xv] : llvm::enumerate(xs))
        next.push_back(vector::FMAOp::create(b, loc, wide, xv, sums[i * xs.size() + j]));
    }
    return next;
  }

  void tile(Value row, Value s, int64_t rowCount, int64_t vectorCount) {
    SmallVector<Value> wRows, yRows, xRows;
    for (int64_t i = 0; i < rowCount; ++i) {
      yRows.push_back(arith::AddIOp::create(b, loc, row, index(i)));
      wRows.push_back(stored ? index(i) : yRows.back());
    }
    for (int64_t j = 0; j < vectorCount; ++j)
      xRows.push_back(arith::AddIOp::create(b, loc, s, index(j)));
    Value zero = arith::ConstantOp::create(b, loc, accumulator, b.getZeroAttr(accumulator));
    SmallVector<Value> sums(rowCount * vectorCount, zero);
    int64_t whole = in / lanes * lanes;
    if (whole > 0) {
      auto loop = scf::ForOp::create(b, loc, index(0), index(whole), index(lanes), sums);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      scf::YieldOp::create(
          b, loc, step(loop.getRegionIterArgs(), wRows, xRows, loop.getInductionVar(), {}));
      sums.assign(loop.result_begin(), loop.result_end());
    }
    if (whole < in) {
      Value mask = vector::ConstantMaskOp::create(b, loc, VectorType::get({lanes}, b.getI1Type()),
                                                  ArrayRef<int64_t>{in - whole});
      sums = step(sums, wRows, xRows, index(whole), mask);
    }
    for (int64_t i = 0; i < rowCount; ++i)
      for (int64_t j = 0; j < vectorCount; ++j) {
        Value total =
            vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD,
                                        sums[i * vectorCount + j], arith::FastMathFlags::reassoc);
        memref::StoreOp::create(b, loc, total, y, ValueRange{xRows[j], yRows[i]});
      }
  }

  OpBuilder &b;
  Location loc;
  MemRefType weight;
  RankedTensorType stored;
  int64_t lanes, blockRows, out, in;
  VectorType accumulator;
  Value w, x, y;
  Value packed, decoded; ///< of a quantised W: where it is stored, and the rows that `w` is
};

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
  OpBuilder b(module.getContext());
  Type ptr = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  for (linalg::GenericOp op : contractions) {
    auto kernel = op->getParentOfType<func::FuncOp>();
    Location loc = op.getLoc();
    Value w = op.getDpsInputs()[0], x = op.getDpsInputs()[1], y = op.getDpsInits()[0];
    auto type = cast<MemRefType>(w.getType());
    auto quantized = KernelEmitter::quantized(w);
    // A row is decoded on the thread's stack.
    if (quantized && type.getDimSize(1) > maxDecoded)
      return op.emitError("a quantised matrix has rows of ")
             << type.getDimSize(1) << " numbers; compiled kernels decode at most " << maxDecoded
             << ": run it with --backend reference, or read the weights as --dtype f32";
    ContractionEmitter emitter(b, loc, type, quantized ? quantized->stored : RankedTensorType(),
                               target);
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
        ("contract_" + Twine(type.getDimSize(0)) + "x" + Twine(type.getDimSize(1)) + "_" + element)
            .str();
    auto function = module.lookupSymbol<func::FuncOp>(name);
    if (!function)
      function = emitter.emit(module, name);

    b.setInsertionPointToStart(&kernel.getBody().front());
    Value one = LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(1));
    auto frameType = ContractionEmitter::frameType(b);
    Value frame = LLVM::AllocaOp::create(b, loc, ptr, frameType, one);
    b.setInsertionPoint(op);
    Value rows = memref::DimOp::create(b, loc, x, 0);
    for (auto [i, value] :
         llvm::enumerate(SmallVector<Value>{addressOf(b, loc, w), addressOf(b, loc, x),
                                            addressOf(b, loc, y), toI64(b, loc, rows)})) {
      Value field =
          LLVM::GEPOp::create(b, loc, ptr, frameType, frame, ArrayRef<LLVM::GEPArg>{0, int32_t(i)});
      LLVM::StoreOp::create(b, loc, value, field);
    }
    Value call = kernel.getArguments().back();
    Value parallelFor = loadCallField(b, loc, call, CallField::ParallelFor);
    Value context = loadCallField(b, loc, call, CallField::ParallelContext);
    Value body = func::ConstantOp::create(b, loc, function.getFunctionType(),
                                          FlatSymbolRefAttr::get(function));
    Value bodyAddress = UnrealizedConversionCastOp::create(b, loc, ptr, body).getResult(0);
    Value count = LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(emitter.blocks()));
    auto signature =
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {ptr, i64, ptr, ptr});
    LLVM::CallOp::create(b, loc, signature,
                         ValueRange{parallelFor, context, count, bodyAddress, frame});
    op.erase();
  }
  return dropQuantized(module);
}
