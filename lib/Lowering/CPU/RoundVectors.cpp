#include "lib/Lowering/CPU/RoundVectors.h"
#include "ctxc/Numerics/ByteVectors.h"
#include "ctxc/Numerics/FixedVectors.h"
#include "lib/Lowering/CPU/Contraction.h"
#include "lib/Lowering/CPU/GroupExperts.h"
#include "lib/Lowering/CPU/LowerCalls.h"
#include "lib/Lowering/CPU/SplitNumbers.h"
#include "lib/Lowering/CallFrame.h"
#include "lib/Lowering/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ctxc;

int64_t VectorRounder::stride(int64_t k) {
  return (llvm::divideCeil(k, alignment) | 1) * alignment;
}

Value VectorRounder::roundedFor(kernel::ContractOp contraction) {
  Value x = contraction.getVectors();
  if (auto known = made.find(x); known != made.end() && staysSame(x, known->second.at, contraction))
    return known->second.numbers;

  OpBuilder b(contraction);
  Location loc = contraction.getLoc();
  int64_t k = cast<MemRefType>(x.getType()).getDimSize(1), end = llvm::alignTo(k, alignment);
  Value rows = rowsOf(b, loc, x);
  auto type = MemRefType::get({ShapedType::kDynamic, parts * stride(k)}, b.getBF16Type());
  Value numbers = memref::AllocOp::create(b, loc, type, rows);
  auto columns = [&](int64_t part, int64_t from, int64_t to) -> Value {
    return memref::SubViewOp::create(
        b, loc, numbers,
        ArrayRef<OpFoldResult>{b.getIndexAttr(0), b.getIndexAttr(part * stride(k) + from)},
        ArrayRef<OpFoldResult>{rows, b.getIndexAttr(to - from)},
        ArrayRef<OpFoldResult>{b.getIndexAttr(1), b.getIndexAttr(1)});
  };
  Operation *rounding = nullptr;
  for (int64_t part = 0; part < parts; ++part) {
    SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(2));
    rounding = linalg::GenericOp::create(
        b, loc, ValueRange{x}, ValueRange{columns(part, 0, k)}, maps,
        SmallVector<utils::IteratorType>(2, utils::IteratorType::parallel),
        [&](OpBuilder &nested, Location l, ValueRange a) {
          Value rest = a[0], taken = split::takePart(nested, l, rest);
          for (int64_t before = 0; before < part; ++before)
            taken = split::takePart(nested, l, rest);
          linalg::YieldOp::create(nested, l, taken);
        });
  }
  if (k < end) {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(b.getBF16Type()));
    for (int64_t part = 0; part < parts; ++part)
      rounding = linalg::FillOp::create(b, loc, zero, columns(part, k, end));
  }
  made[x] = {numbers, rounding};
  return numbers;
}

//===----------------------------------------------------------------------===//
// To integers
//===----------------------------------------------------------------------===//

static_assert(int64_t(CTXC_FIXED_SPAN) == int64_t(CTXC_BYTE_SPAN));

static int64_t spanBytes(SpanRounder::Kind kind) {
  return kind == SpanRounder::Bytes ? sizeof(ctxc_byte_span) : sizeof(ctxc_fixed_span);
}

int64_t SpanRounder::stride(Kind kind, int64_t k) {
  return llvm::divideCeil(k, int64_t(CTXC_BYTE_SPAN)) * spanBytes(kind);
}

Value SpanRounder::at(OpBuilder &b, Location loc, Kind kind, int64_t k, Value vectors, Value vector,
                      Value span, int64_t offset) {
  auto index = [&](int64_t i) { return arith::ConstantIndexOp::create(b, loc, i); };
  Value ofVector = arith::MulIOp::create(b, loc, vector, index(stride(kind, k))),
        ofSpan = arith::MulIOp::create(b, loc, span, index(spanBytes(kind)));
  Value bytes =
      arith::AddIOp::create(b, loc, arith::AddIOp::create(b, loc, ofVector, ofSpan), index(offset));
  return LLVM::GEPOp::create(b, loc, vectors.getType(), b.getI8Type(), vectors,
                             ArrayRef<LLVM::GEPArg>{toI64(b, loc, bytes)});
}

static LLVM::LLVMStructType roundingFrame(MLIRContext *context) {
  Type ptr = LLVM::LLVMPointerType::get(context), i64 = IntegerType::get(context, 64);
  return LLVM::LLVMStructType::getLiteral(context, {ptr, ptr, i64}); // x, where to, K
}

func::FuncOp SpanRounder::function(ModuleOp module, Location loc) {
  StringRef name = kind == Bytes ? "round_to_bytes" : "round_to_fixed";
  if (auto known = module.lookupSymbol<func::FuncOp>(name))
    return known;
  OpBuilder b(module.getBodyRegion());
  Type ptr = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  auto function = func::FuncOp::create(b, loc, name, b.getFunctionType({ptr, i64, i64}, {}));
  function.setPrivate();
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  auto field = [&](int32_t i, Type type) -> Value {
    Value at = LLVM::GEPOp::create(b, loc, ptr, roundingFrame(b.getContext()),
                                   entry->getArgument(0), ArrayRef<LLVM::GEPArg>{0, i});
    return LLVM::LoadOp::create(b, loc, type, at);
  };
  callSupport(b, loc,
              kind == Bytes ? kernel::SupportFunction::ctxc_round_to_bytes
                            : kernel::SupportFunction::ctxc_round_to_fixed,
              ValueRange{field(0, ptr), entry->getArgument(1), entry->getArgument(2), field(2, i64),
                         field(1, ptr)});
  func::ReturnOp::create(b, loc);
  return function;
}

Value SpanRounder::roundedFor(kernel::ContractOp contraction) {
  std::optional<OfExpert> expert = ofExpert(contraction);
  if (!expert)
    return roundedFor(contraction.getVectors(), contraction);
  Value bytes = roundedFor(expert->vectors, expert->loop);
  OpBuilder b(contraction);
  OpFoldResult count = rowsOf(contraction.getVectors()), zero = b.getIndexAttr(0),
               one = b.getIndexAttr(1);
  OpFoldResult width = b.getIndexAttr(cast<MemRefType>(bytes.getType()).getDimSize(1));
  return memref::SubViewOp::create(b, contraction.getLoc(), bytes,
                                   ArrayRef<OpFoldResult>{expert->first, zero}, {count, width},
                                   {one, one});
}

Value SpanRounder::roundedFor(Value x, Operation *reader) {
  if (auto known = made.find(x); known != made.end() && staysSame(x, known->second.at, reader))
    return known->second.spans;

  auto kernel = reader->getParentOfType<func::FuncOp>();
  Location loc = reader->getLoc();
  func::FuncOp rounding = function(kernel->getParentOfType<ModuleOp>(), loc);
  OpBuilder b(reader);
  int64_t k = cast<MemRefType>(x.getType()).getDimSize(1);
  Value count = rowsOf(b, loc, x);
  auto type = MemRefType::get({ShapedType::kDynamic, stride(kind, k)}, b.getI8Type());
  Value bytes = memref::AllocOp::create(b, loc, type, count);
  Value width = LLVM::ConstantOp::create(b, loc, b.getI64Type(), b.getI64IntegerAttr(k));
  Value frame = storeFrame(b, loc, kernel, roundingFrame(b.getContext()),
                           {addressOf(b, loc, x), addressOf(b, loc, bytes), width});
  Value all = toI64(b, loc, count);
  Value few =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, count,
                            arith::ConstantIndexOp::create(b, loc, Contraction::manyVectors));
  auto branch = scf::IfOp::create(b, loc, few, /*withElseRegion=*/true);
  b.setInsertionPointToStart(branch.thenBlock());
  Value zero = LLVM::ConstantOp::create(b, loc, b.getI64Type(), b.getI64IntegerAttr(0));
  func::CallOp::create(b, loc, rounding, ValueRange{frame, zero, all});
  b.setInsertionPointToStart(branch.elseBlock());
  callParallelFor(b, loc, kernel, rounding, all, frame);
  made[x] = {bytes, branch};
  return bytes;
}
