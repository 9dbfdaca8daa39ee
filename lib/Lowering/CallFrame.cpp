#include "lib/Lowering/CallFrame.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ctxc;

static LLVM::LLVMPointerType pointer(OpBuilder &b) {
  return LLVM::LLVMPointerType::get(b.getContext());
}

Value ctxc::loadCallField(OpBuilder &b, Location loc, Value call, CallField field, int64_t index) {
  Type i64 = b.getI64Type(), ptr = pointer(b);
  auto frame = LLVM::LLVMStructType::getLiteral(
      b.getContext(), {i64, LLVM::LLVMArrayType::get(i64, 2), ptr, ptr, ptr, ptr});
  SmallVector<LLVM::GEPArg> path{0, int32_t(field)};
  if (field == CallField::Visible)
    path.push_back(int32_t(index));
  Value address = LLVM::GEPOp::create(b, loc, ptr, frame, call, path);
  bool number = field == CallField::Rows || field == CallField::Visible;
  return LLVM::LoadOp::create(b, loc, number ? i64 : ptr, address);
}

Value ctxc::toI64(OpBuilder &b, Location loc, Value index) {
  return arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
}

Value ctxc::toIndex(OpBuilder &b, Location loc, Value i64) {
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), i64);
}

Value ctxc::storeFrame(OpBuilder &b, Location loc, func::FuncOp kernel, LLVM::LLVMStructType type,
                       ValueRange values) {
  Type ptr = pointer(b), i64 = b.getI64Type();
  Value frame;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&kernel.getBody().front());
    Value one = LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(1));
    frame = LLVM::AllocaOp::create(b, loc, ptr, type, one);
  }
  for (auto [i, value] : llvm::enumerate(values)) {
    Value field =
        LLVM::GEPOp::create(b, loc, ptr, type, frame, ArrayRef<LLVM::GEPArg>{0, int32_t(i)});
    LLVM::StoreOp::create(b, loc, value, field);
  }
  return frame;
}

void ctxc::callParallelFor(OpBuilder &b, Location loc, func::FuncOp kernel, func::FuncOp function,
                           Value count, Value frame) {
  Type ptr = pointer(b), i64 = b.getI64Type();
  Value call = kernel.getArguments().back();
  Value parallelFor = loadCallField(b, loc, call, CallField::ParallelFor);
  Value context = loadCallField(b, loc, call, CallField::ParallelContext);
  Value body = func::ConstantOp::create(b, loc, function.getFunctionType(),
                                        FlatSymbolRefAttr::get(function));
  Value address = UnrealizedConversionCastOp::create(b, loc, ptr, body).getResult(0);
  auto signature =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {ptr, i64, ptr, ptr});
  LLVM::CallOp::create(b, loc, signature, ValueRange{parallelFor, context, count, address, frame});
}

Value ctxc::memrefAt(OpBuilder &b, Location loc, Value address, MemRefType type, Value leading) {
  MLIRContext *context = b.getContext();
  Type i64 = b.getI64Type();
  int64_t rank = type.getRank();
  SmallVector<Type> fields{pointer(b), pointer(b), i64};
  if (rank > 0) {
    fields.push_back(LLVM::LLVMArrayType::get(i64, rank));
    fields.push_back(LLVM::LLVMArrayType::get(i64, rank));
  }
  auto descriptorType = LLVM::LLVMStructType::getLiteral(context, fields);
  Value descriptor = LLVM::UndefOp::create(b, loc, descriptorType);
  auto set = [&](Value value, ArrayRef<int64_t> path) {
    descriptor = LLVM::InsertValueOp::create(b, loc, descriptor, value, path);
  };
  auto number = [&](int64_t x) {
    return LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(x));
  };
  set(address, {0});
  set(address, {1});
  set(number(0), {2});
  int64_t stride = 1;
  for (int64_t i = rank - 1; i >= 0; --i) {
    bool dynamic = type.isDynamicDim(i);
    assert((!dynamic || i == 0) && "only the first dimension may be dynamic");
    set(dynamic ? toI64(b, loc, leading) : Value(number(type.getDimSize(i))), {3, i});
    set(number(stride), {4, i});
    if (!dynamic)
      stride *= type.getDimSize(i);
  }
  return UnrealizedConversionCastOp::create(b, loc, type, descriptor).getResult(0);
}

Value ctxc::addressOf(OpBuilder &b, Location loc, Value memref) {
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
  auto type = cast<MemRefType>(memref.getType());
  if (!type.getLayout().isIdentity()) {
    auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, memref);
    Value bytes = arith::ConstantIndexOp::create(b, loc, type.getElementTypeBitWidth() / 8);
    base = arith::AddIOp::create(b, loc, base,
                                 arith::MulIOp::create(b, loc, metadata.getOffset(), bytes));
  }
  return LLVM::IntToPtrOp::create(b, loc, pointer(b), toI64(b, loc, base));
}

Value ctxc::hidden(OpBuilder &b, Location loc, Value address) {
  return LLVM::InlineAsmOp::create(b, loc, address.getType(), address, "", "=r,0",
                                   /*has_side_effects=*/false, /*is_align_stack=*/false,
                                   LLVM::tailcallkind::TailCallKind::None,
                                   /*asm_dialect=*/nullptr, /*operand_attrs=*/nullptr)
      .getResult(0);
}

Type ctxc::crossingType(Type type) {
  MLIRContext *context = type.getContext();
  Type i64 = IntegerType::get(context, 64), ptr = LLVM::LLVMPointerType::get(context);
  if (type.isIndex())
    return i64;
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref)
    return LLVM::isCompatibleType(type) ? type : Type();
  SmallVector<Type> fields{ptr, ptr, i64};
  if (memref.getRank() > 0)
    fields.append(2, LLVM::LLVMArrayType::get(i64, memref.getRank()));
  return LLVM::LLVMStructType::getLiteral(context, fields);
}

static Value toCrossing(OpBuilder &b, Location loc, Value value) {
  if (value.getType().isIndex())
    return toI64(b, loc, value);
  Type type = crossingType(value.getType());
  return type == value.getType()
             ? value
             : UnrealizedConversionCastOp::create(b, loc, type, value).getResult(0);
}

static Value fromCrossing(OpBuilder &b, Location loc, Value crossed, Type type) {
  if (type.isIndex())
    return toIndex(b, loc, crossed);
  return type == crossed.getType()
             ? crossed
             : UnrealizedConversionCastOp::create(b, loc, type, crossed).getResult(0);
}

/// The type of a frame with these values.
static LLVM::LLVMStructType crossingFrame(OpBuilder &b, ArrayRef<Value> values) {
  auto types =
      llvm::map_to_vector(values, [](Value value) { return crossingType(value.getType()); });
  return LLVM::LLVMStructType::getLiteral(b.getContext(), types);
}

Value ctxc::storeCrossing(OpBuilder &b, Location loc, func::FuncOp kernel, ArrayRef<Value> values) {
  auto crossed =
      llvm::map_to_vector(values, [&](Value value) { return toCrossing(b, loc, value); });
  return storeFrame(b, loc, kernel, crossingFrame(b, values), crossed);
}

SmallVector<Value> ctxc::loadCrossing(OpBuilder &b, Location loc, Value frame,
                                      ArrayRef<Value> values) {
  LLVM::LLVMStructType type = crossingFrame(b, values);
  SmallVector<Value> loaded;
  for (auto [i, value] : llvm::enumerate(values)) {
    Value field =
        LLVM::GEPOp::create(b, loc, pointer(b), type, frame, ArrayRef<LLVM::GEPArg>{0, int32_t(i)});
    Value crossed = LLVM::LoadOp::create(b, loc, type.getBody()[i], field);
    loaded.push_back(fromCrossing(b, loc, crossed, value.getType()));
  }
  return loaded;
}

func::FuncOp ctxc::beginPart(OpBuilder &b, Location loc, func::FuncOp kernel, const Twine &name) {
  Type i64 = b.getI64Type();
  b.setInsertionPointAfter(kernel);
  auto part =
      func::FuncOp::create(b, loc, name.str(), b.getFunctionType({pointer(b), i64, i64}, {}));
  part.setPrivate();
  part->setAttr("passthrough", b.getStrArrayAttr({"noinline", "no-builtins"}));
  b.setInsertionPointToStart(part.addEntryBlock());
  return part;
}
