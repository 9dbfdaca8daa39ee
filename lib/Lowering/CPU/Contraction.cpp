#include "lib/Lowering/CPU/Contraction.h"
#include "lib/Lowering/CPU/FixedContraction.h"
#include "lib/Lowering/CPU/IntegerContraction.h"
#include "lib/Lowering/CPU/LoopBuilder.h"
#include "lib/Lowering/CPU/RoundedContraction.h"
#include "lib/Lowering/CPU/RowContraction.h"
#include "lib/Lowering/CPU/TileContraction.h"
#include "lib/Lowering/CPU/TransposedContraction.h"
#include "lib/Lowering/CallFrame.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ctxc;

namespace {

/// The function of a contraction, which chooses by the number of vectors how they are multiplied.
class FunctionEmitter : LoopBuilder {
public:
  FunctionEmitter(const Contraction &c, ModuleOp module, Location loc)
      : LoopBuilder(OpBuilder(module.getContext()), loc), c(c) {}

  func::FuncOp emit(ModuleOp module, StringRef name);

private:
  const Contraction &c;
};

} // namespace

func::FuncOp FunctionEmitter::emit(ModuleOp module, StringRef name) {
  Type ptr = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  b.setInsertionPointToEnd(module.getBody());
  auto function = func::FuncOp::create(b, loc, name, b.getFunctionType({ptr, i64, i64}, {}));
  function.setPrivate();
  // Keeps LLVM from replacing the copying loop by a call of memcpy.
  function->setAttr("passthrough", b.getStrArrayAttr({"no-builtins"}));
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  auto field = [&](int32_t i, Type type) {
    Value at = LLVM::GEPOp::create(b, loc, ptr, c.frameType(b.getContext()), entry->getArgument(0),
                                   ArrayRef<LLVM::GEPArg>{0, i});
    return LLVM::LoadOp::create(b, loc, type, at);
  };
  auto rowsOf = [&](int64_t width) {
    return MemRefType::get({ShapedType::kDynamic, width}, b.getF32Type());
  };
  RowOperands given;
  Value rows = given.rows = toIndex(b, loc, field(3, i64));
  given.address = field(0, ptr);
  if (!c.stored)
    given.w = memrefAt(b, loc, given.address, c.weight, {});
  Value vectors = field(1, ptr);
  given.x = memrefAt(b, loc, vectors, rowsOf(c.in()), rows);
  given.y = memrefAt(b, loc, field(2, ptr), rowsOf(c.out()), rows);
  if (int64_t count = c.transposed ? 0 : scratchRows(c)) {
    Value size = LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(count * c.in()));
    given.scratchAddress =
        LLVM::AllocaOp::create(b, loc, ptr, b.getF32Type(), size, /*alignment=*/64);
    given.scratch = memrefAt(b, loc, given.scratchAddress,
                             MemRefType::get({count, c.in()}, b.getF32Type()), {});
  }

  Value begin = toIndex(b, loc, entry->getArgument(1));
  Value end = toIndex(b, loc, entry->getArgument(2));
  using Scheme = ContractionScheme;
  if (c.scheme == Scheme::Integer || c.scheme == Scheme::Fixed) {
    auto emit = c.scheme == Scheme::Integer ? emitInteger : emitFixed;
    emit(b, loc, c, given, field(4, ptr), begin, end);
    b.setInsertionPointToEnd(entry);
    func::ReturnOp::create(b, loc);
    return function;
  }
  auto few = [&] {
    if (!c.transposed)
      return emitRowsFew(b, loc, c, given, begin, end);
    emitTransposedFew(b, loc, c, {given.w, given.x, field(4, ptr), vectors, rows}, begin, end);
  };
  auto rounded = [&](Value from, Value to) {
    RoundedOperands operands{given.w,      field(c.transposed ? 5 : 4, ptr), given.y, rows,
                             c.transposed, c.scheme == Scheme::Split};
    if (c.stored) {
      operands.w = given.scratch;
      operands.quantised = &c;
      operands.blocks = given.address;
      operands.address = given.scratchAddress;
    }
    if (c.scheme == Scheme::Rounded)
      emitRounded(b, loc, operands, from, to, c.lanes);
    else
      emitTiles(b, loc, operands, from, to);
  };
  if (panelRows(c) == 0 && !c.readsRounded() && !c.transposed) {
    few();
  } else {
    Value many = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, rows,
                                       index(Contraction::manyVectors));
    auto branch = scf::IfOp::create(b, loc, many, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value from = times(begin, c.unit()), to = times(end, c.unit());
    if (c.out() % c.unit())
      to = least(to, index(c.out()));
    if (c.readsRounded())
      rounded(from, to);
    else if (c.transposed)
      emitTransposedMany(b, loc, c, {given.w, given.x, given.y, vectors, rows}, from, to);
    else
      emitRowsMany(b, loc, c, given, from, to);
    b.setInsertionPointToStart(branch.elseBlock());
    few();
  }
  b.setInsertionPointToEnd(entry);
  func::ReturnOp::create(b, loc);
  return function;
}

int64_t Contraction::unit() const { return transposed ? transposedUnit(*this) : 1; }

LLVM::LLVMStructType Contraction::frameType(MLIRContext *context) const {
  Type ptr = LLVM::LLVMPointerType::get(context);
  SmallVector<Type> fields{ptr, ptr, ptr, IntegerType::get(context, 64)};
  if (transposed)
    fields.push_back(ptr);
  if (readsRounded())
    fields.push_back(ptr);
  return LLVM::LLVMStructType::getLiteral(context, fields);
}

func::FuncOp Contraction::emit(ModuleOp module, StringRef name, Location loc) const {
  return FunctionEmitter(*this, module, loc).emit(module, name);
}
