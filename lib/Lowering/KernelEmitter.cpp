#include "ctxc/Lowering/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ctxc;

#include "ctxc/Lowering/LoweringInterface.cpp.inc"

using utils::IteratorType;

static RankedTensorType ranked(Value v) { return cast<RankedTensorType>(v.getType()); }

int64_t ctxc::streamIndex(StringRef stream) { return stream == "reduced" ? 1 : 0; }

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

static constexpr StringRef kindNames[] = {"positions", "tokens",  "input", "output", "param",
                                          "bank",      "setting", "state", "slots",  "store",
                                          "load",      "counts",  "replay"};

StringRef ctxc::stringifyKernelArgKind(KernelArgKind kind) { return kindNames[int(kind)]; }

SmallVector<KernelArg> ctxc::kernelArguments(func::FuncOp kernel) {
  SmallVector<KernelArg> args;
  for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i) {
    auto kind = kernel.getArgAttrOfType<StringAttr>(i, "ctxc.kind");
    if (!kind)
      continue; // the call itself
    KernelArg arg;
    arg.kind = KernelArgKind(llvm::find(kindNames, kind.getValue()) - std::begin(kindNames));
    if (auto name = kernel.getArgAttrOfType<StringAttr>(i, "ctxc.name"))
      arg.name = name.str();
    if (auto index = kernel.getArgAttrOfType<IntegerAttr>(i, "ctxc.index"))
      arg.index = index.getInt();
    if (auto stream = kernel.getArgAttrOfType<IntegerAttr>(i, "ctxc.stream"))
      arg.stream = stream.getInt();
    if (auto stored = kernel.getArgAttrOfType<TypeAttr>(i, "ctxc.stored"))
      arg.stored = cast<RankedTensorType>(stored.getValue());
    arg.type = kernel.getArgumentTypes()[i];
    args.push_back(arg);
  }
  return args;
}

KernelEmitter::KernelEmitter(xf::BlockOp block, ModuleOp module, StringRef name)
    : builder(module.getContext()), loc(block.getLoc()), block(block), module(module),
      name(name.str()) {}

void KernelEmitter::addArgument(KernelArgKind kind, MemRefType type, StringRef name, int64_t index,
                                int64_t stream) {
  args.push_back({kind, name.str(), index, stream, type, {}});
}

/// memref of a leading dynamic dimension and `shape`.
static MemRefType rowsOf(ArrayRef<int64_t> shape, Type element) {
  SmallVector<int64_t> full{ShapedType::kDynamic};
  llvm::append_range(full, shape);
  return MemRefType::get(full, element);
}

void KernelEmitter::addArguments() {
  Type f32 = builder.getF32Type(), i32 = builder.getI32Type(), i64 = builder.getI64Type();
  addArgument(KernelArgKind::Positions, rowsOf({}, i32));
  addArgument(KernelArgKind::Tokens, rowsOf({}, i32));
  for (auto [i, type] : llvm::enumerate(block.getArgumentTypes()))
    addArgument(KernelArgKind::Input, rowsOf(cast<RankedTensorType>(type).getShape(), f32), "", i);
  for (auto [i, type] : llvm::enumerate(block.getResultTypes()))
    addArgument(KernelArgKind::Output, rowsOf(cast<RankedTensorType>(type).getShape(), f32), "", i);

  llvm::StringSet<> seenParams, seenSettings;
  block.walk([&](xf::ParamOp p) {
    if (!seenParams.insert(p.getName()).second)
      return;
    RankedTensorType type = ranked(p.getResult());
    if (isBank(p)) {
      addArgument(KernelArgKind::Bank, MemRefType::get({type.getDimSize(0)}, i64), p.getName());
      args.back().stored = type;
    } else if (isa<xf::QuantizedType>(type.getElementType())) {
      addArgument(KernelArgKind::Param,
                  MemRefType::get({xf::QuantizedType::bytesOf(type)}, builder.getI8Type()),
                  p.getName());
      args.back().stored = type;
    } else {
      addArgument(KernelArgKind::Param, MemRefType::get(type.getShape(), type.getElementType()),
                  p.getName());
    }
  });
  block.walk([&](xf::SettingOp s) {
    if (!seenSettings.insert(s.getName()).second)
      return;
    auto tensor = dyn_cast<RankedTensorType>(s.getType());
    addArgument(KernelArgKind::Setting,
                tensor ? MemRefType::get(tensor.getShape(), f32)
                       : MemRefType::get({1}, s.getType().isF32() ? f32 : i64),
                s.getName());
  });

  int64_t states = 0;
  bool streams[2] = {false, false};
  block.walk([&](xf::ContextualOpInterface op) {
    int64_t stream = streamIndex(op.getStateStream());
    firstState[op] = states;
    streams[stream] = true;
    for (Value operand : op.getStateOperands())
      if (auto type = dyn_cast<RankedTensorType>(operand.getType()))
        addArgument(KernelArgKind::State, rowsOf(type.getShape(), f32), "", states++, stream);
  });
  for (int64_t stream : {0, 1})
    if (streams[stream])
      addArgument(KernelArgKind::Slots, rowsOf({}, i32), "", 0, stream);

  int64_t obligations = 0;
  block.walk([&](Operation *op) {
    if (auto store = dyn_cast<patch::StoreOp>(op))
      for (auto [i, part] : llvm::enumerate(store.getParts()))
        addArgument(KernelArgKind::Store,
                    rowsOf(ranked(part).getShape(), ranked(part).getElementType()),
                    store.getParameter(), i);
    if (auto load = dyn_cast<patch::LoadOp>(op))
      for (auto [i, part] : llvm::enumerate(load.getParts()))
        addArgument(KernelArgKind::Load,
                    MemRefType::get(ranked(part).getShape(), ranked(part).getElementType()),
                    load.getParameter(), i);
    if (auto solve = dyn_cast<patch::SolveScaleOp>(op))
      obligations = std::max<int64_t>(obligations, solve.getIndex() + 1);
    if (auto obligation = dyn_cast<patch::ObligationOp>(op))
      obligations = std::max<int64_t>(obligations, obligation.getIndex() + 1);
    if (auto same = dyn_cast<patch::SameSelectionOp>(op))
      obligations = std::max<int64_t>(obligations, same.getIndex() + 1);
  });
  if (obligations)
    addArgument(KernelArgKind::Counts, MemRefType::get({obligations, 2}, i64));
  if (!block.getBody().getOps<patch::StoreOp>().empty())
    addArgument(KernelArgKind::Replay, MemRefType::get({1}, builder.getF64Type()));
}

Value KernelEmitter::argument(KernelArgKind kind, StringRef name, int64_t index) {
  for (auto [i, arg] : llvm::enumerate(args))
    if (arg.kind == kind && arg.name == name && arg.index == index)
      return kernel.getArgument(i);
  llvm_unreachable("the kernel has no such argument");
}

static Value readTensor(OpBuilder &b, Location loc, Value memref, bool writable = false) {
  auto type = cast<MemRefType>(memref.getType());
  return bufferization::ToTensorOp::create(
      b, loc, RankedTensorType::get(type.getShape(), type.getElementType()), memref,
      /*restrict=*/true, writable);
}

bool KernelEmitter::isBank(xf::ParamOp param) {
  return llvm::any_of(param->getUsers(), [](Operation *op) { return isa<xf::ExpertLinearOp>(op); });
}

static constexpr StringLiteral quantizedAttr = "ctxc.quantized";

Value KernelEmitter::param(StringRef name) {
  auto argument = cast<BlockArgument>(this->argument(KernelArgKind::Param, name, 0));
  RankedTensorType stored = args[argument.getArgNumber()].stored;
  return readTensor(builder, loc, stored ? quantizedMatrix(argument, stored) : Value(argument));
}

Value KernelEmitter::quantizedMatrix(Value memory, RankedTensorType stored) {
  auto numbers = UnrealizedConversionCastOp::create(
      builder, loc, MemRefType::get(stored.getShape(), builder.getF32Type()), memory);
  numbers->setAttr(quantizedAttr, TypeAttr::get(stored));
  return numbers.getResult(0);
}

std::optional<KernelEmitter::Quantized> KernelEmitter::quantized(Value value) {
  if (auto tensor = value.getDefiningOp<bufferization::ToTensorOp>())
    value = tensor.getBuffer();
  auto cast = value.getDefiningOp<UnrealizedConversionCastOp>();
  auto stored = cast ? cast->getAttrOfType<TypeAttr>(quantizedAttr) : TypeAttr();
  if (!stored)
    return std::nullopt;
  return Quantized{cast.getInputs().front(), llvm::cast<RankedTensorType>(stored.getValue())};
}

Value KernelEmitter::setting(StringRef name) {
  return readTensor(builder, loc, argument(KernelArgKind::Setting, name, 0));
}

SmallVector<Value> KernelEmitter::states(Operation *op) {
  SmallVector<Value> memrefs;
  for (auto [i, arg] : llvm::enumerate(args))
    if (arg.kind == KernelArgKind::State && arg.index >= firstState.lookup(op) &&
        arg.index < firstState.lookup(op) +
                        int64_t(cast<xf::ContextualOpInterface>(op).getStateOperands().size()))
      memrefs.push_back(kernel.getArgument(i));
  return memrefs;
}

static Value slotsArgument(func::FuncOp kernel, ArrayRef<KernelArg> args, int64_t stream) {
  for (auto [i, arg] : llvm::enumerate(args))
    if (arg.kind == KernelArgKind::Slots && arg.stream == stream)
      return kernel.getArgument(i);
  llvm_unreachable("the kernel has no such stream");
}

Value KernelEmitter::slots(StringRef stream) {
  return readTensor(builder, loc, slotsArgument(kernel, args, streamIndex(stream)));
}

Value KernelEmitter::visible(StringRef stream) {
  return memref::DimOp::create(builder, loc, slotsArgument(kernel, args, streamIndex(stream)), 0);
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

bool KernelEmitter::hasRows(Value value) const {
  Value tensor = lookup(value);
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  return type && type.getRank() > 0 && type.isDynamicDim(0);
}

Value KernelEmitter::data(Value value) {
  Value tensor = lookup(value);
  if (hasRows(value))
    return tensor;
  return elementwise(ranked(tensor).getShape(), {tensor}, {false},
                     [](OpBuilder &, Location, ValueRange a) { return a[0]; });
}

Value KernelEmitter::constant(double x) {
  return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(float(x)));
}

Value KernelEmitter::index(int64_t i) { return arith::ConstantIndexOp::create(builder, loc, i); }

Value KernelEmitter::emptyRows(ArrayRef<int64_t> shape, int64_t factor, Type element) {
  SmallVector<int64_t> full{ShapedType::kDynamic};
  llvm::append_range(full, shape);
  Value count = rowCount;
  if (factor != 1)
    count = arith::MulIOp::create(builder, loc, count, index(factor));
  return tensor::EmptyOp::create(builder, loc, full, element ? element : builder.getF32Type(),
                                 ValueRange{count});
}

Value KernelEmitter::filled(Value empty, double x) {
  return linalg::FillOp::create(builder, loc, ValueRange{constant(x)}, ValueRange{empty})
      .getResult(0);
}

Value KernelEmitter::widen(OpBuilder &b, Location loc, Value x) {
  if (x.getType().isF32())
    return x;
  return arith::ExtFOp::create(b, loc, b.getF32Type(), x);
}

Value KernelEmitter::generic(Value init, ValueRange ins, ArrayRef<AffineMap> maps,
                             ArrayRef<IteratorType> iterators, Body body) {
  auto op = linalg::GenericOp::create(
      builder, loc, TypeRange{init.getType()}, ins, ValueRange{init}, maps, iterators,
      [&](OpBuilder &b, Location l, ValueRange args) {
        SmallVector<Value> wide;
        for (Value arg : args)
          wide.push_back(isa<FloatType>(arg.getType()) ? widen(b, l, arg) : arg);
        linalg::YieldOp::create(b, l, body(b, l, wide));
      });
  return op.getResult(0);
}

Value KernelEmitter::elementwise(ArrayRef<int64_t> shape, ValueRange operands,
                                 ArrayRef<bool> operandHasRows, Body body) {
  unsigned rank = shape.size() + 1;
  MLIRContext *context = builder.getContext();
  SmallVector<AffineMap> maps;
  for (auto [operand, rows] : llvm::zip(operands, operandHasRows)) {
    ArrayRef<int64_t> own = ranked(operand).getShape();
    SmallVector<AffineExpr> exprs;
    if (rows) {
      exprs.push_back(builder.getAffineDimExpr(0));
      own = own.drop_front();
    }
    bool single = own == ArrayRef<int64_t>{1} && shape != ArrayRef<int64_t>{1};
    for (unsigned i = rank - own.size(); i < rank; ++i)
      exprs.push_back(single ? builder.getAffineConstantExpr(0) : builder.getAffineDimExpr(i));
    maps.push_back(AffineMap::get(rank, 0, exprs, context));
  }
  maps.push_back(AffineMap::getMultiDimIdentityMap(rank, context));
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  return generic(emptyRows(shape), operands, maps, iterators, body);
}

Value KernelEmitter::elementwise(Value result, ValueRange blockOperands, Body body) {
  SmallVector<Value> operands;
  SmallVector<bool> withRows;
  for (Value operand : blockOperands) {
    operands.push_back(lookup(operand));
    withRows.push_back(hasRows(operand));
  }
  return elementwise(ranked(result).getShape(), operands, withRows, body);
}

/// The map of rank + 1 dimensions that drops the last.
static AffineMap dropLast(unsigned rank, MLIRContext *context) {
  return AffineMap::getMultiDimIdentityMap(rank, context).getMajorSubMap(rank - 1);
}

Value KernelEmitter::reduceLast(Value tensor, double init, Body body) {
  unsigned rank = ranked(tensor).getRank();
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  iterators.back() = IteratorType::reduction;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tensor);
  sizes.pop_back();
  Value empty = tensor::EmptyOp::create(builder, loc, sizes, builder.getF32Type());
  MLIRContext *context = builder.getContext();
  return generic(
      filled(empty, init), {tensor},
      {AffineMap::getMultiDimIdentityMap(rank, context), dropLast(rank, context)}, iterators,
      [&](OpBuilder &b, Location l, ValueRange args) { return body(b, l, {args[1], args[0]}); });
}

Value KernelEmitter::dotLast(Value a, Value b) {
  unsigned rank = ranked(a).getRank();
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  iterators.back() = IteratorType::reduction;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, a);
  sizes.pop_back();
  Value empty = tensor::EmptyOp::create(builder, loc, sizes, builder.getF32Type());
  MLIRContext *context = builder.getContext();
  AffineMap identity = AffineMap::getMultiDimIdentityMap(rank, context);
  return generic(filled(empty, 0), {a, b}, {identity, identity, dropLast(rank, context)}, iterators,
                 [&](OpBuilder &nested, Location l, ValueRange args) -> Value {
                   auto fast = arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;
                   Value product = arith::MulFOp::create(nested, l, args[0], args[1], fast);
                   return arith::AddFOp::create(nested, l, args[2], product, fast);
                 });
}

Value KernelEmitter::mapWithReduced(Value tensor, ValueRange reduced, Body body) {
  unsigned rank = ranked(tensor).getRank();
  MLIRContext *context = builder.getContext();
  AffineMap identity = AffineMap::getMultiDimIdentityMap(rank, context);
  SmallVector<AffineMap> maps{identity};
  SmallVector<Value> ins{tensor};
  for (Value r : reduced) {
    maps.push_back(dropLast(rank, context));
    ins.push_back(r);
  }
  maps.push_back(identity);
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  Value empty = tensor::EmptyOp::create(builder, loc, tensor::getMixedSizes(builder, loc, tensor),
                                        builder.getF32Type());
  return generic(empty, ins, maps, iterators, body);
}

Value KernelEmitter::linear(Value weight, Value x, bool transposed) {
  MLIRContext *context = builder.getContext();
  auto xType = ranked(x);
  int64_t out = ranked(weight).getDimSize(transposed ? 1 : 0);
  // Leading dimensions of a head are rows like any other.
  Value flat = x;
  SmallVector<ReassociationIndices> groups;
  if (xType.getRank() > 2) {
    groups.emplace_back();
    for (int64_t i = 0; i < xType.getRank() - 1; ++i)
      groups.back().push_back(i);
    groups.push_back({xType.getRank() - 1});
    flat = tensor::CollapseShapeOp::create(builder, loc, x, groups);
  }
  Value count = tensor::DimOp::create(builder, loc, flat, 0);
  Value empty = tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{ShapedType::kDynamic, out},
                                        builder.getF32Type(), ValueRange{count});
  AffineExpr s, m, k;
  bindDims(context, s, m, k);
  SmallVector<AffineExpr> w =
      transposed ? SmallVector<AffineExpr>{k, m} : SmallVector<AffineExpr>{m, k};
  Value y = generic(filled(empty, 0), {weight, flat},
                    {AffineMap::get(3, 0, w, context), AffineMap::get(3, 0, {s, k}, context),
                     AffineMap::get(3, 0, {s, m}, context)},
                    {IteratorType::parallel, IteratorType::parallel, IteratorType::reduction},
                    [&](OpBuilder &b, Location l, ValueRange args) -> Value {
                      auto fast = arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;
                      Value product = arith::MulFOp::create(b, l, args[0], args[1], fast);
                      return arith::AddFOp::create(b, l, args[2], product, fast);
                    });
  if (groups.empty())
    return y;
  SmallVector<int64_t> shape(xType.getShape());
  shape.back() = out;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, x);
  sizes.back() = builder.getIndexAttr(out);
  return tensor::ExpandShapeOp::create(
      builder, loc, RankedTensorType::get(shape, builder.getF32Type()), y, groups, sizes);
}

static void rowWindow(KernelEmitter &e, int64_t from, ArrayRef<int64_t> shape,
                      SmallVectorImpl<OpFoldResult> &offsets, SmallVectorImpl<OpFoldResult> &sizes,
                      SmallVectorImpl<OpFoldResult> &strides) {
  OpBuilder &b = e.builder;
  Value start = arith::MulIOp::create(b, e.loc, e.rows(), e.index(from));
  offsets.push_back(start);
  sizes.push_back(e.rows());
  for (int64_t d : shape) {
    offsets.push_back(b.getIndexAttr(0));
    sizes.push_back(b.getIndexAttr(d));
  }
  strides.assign(offsets.size(), b.getIndexAttr(1));
}

Value KernelEmitter::takeRows(Value tensor, int64_t from, ArrayRef<int64_t> shape) {
  SmallVector<OpFoldResult> offsets, sizes, strides;
  rowWindow(*this, from, shape, offsets, sizes, strides);
  return tensor::ExtractSliceOp::create(builder, loc, tensor, offsets, sizes, strides);
}

Value KernelEmitter::putRows(Value into, Value tensor, int64_t from) {
  SmallVector<OpFoldResult> offsets, sizes, strides;
  rowWindow(*this, from, ranked(tensor).getShape().drop_front(), offsets, sizes, strides);
  return tensor::InsertSliceOp::create(builder, loc, tensor, into, offsets, sizes, strides);
}

Value KernelEmitter::read(Value tensor) {
  // Rows lie one after the other, but may begin inside a packed buffer.
  RankedTensorType type = ranked(tensor);
  SmallVector<int64_t> strides(type.getRank(), 1);
  for (int64_t i = type.getRank() - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * type.getDimSize(i + 1);
  auto layout = StridedLayoutAttr::get(builder.getContext(), ShapedType::kDynamic, strides);
  auto buffer = bufferization::ToBufferOp::create(
      builder, loc, MemRefType::get(type.getShape(), type.getElementType(), layout), tensor,
      /*read_only=*/true);
  // Bufferisation keeps the tensor until this op, and not until another read that
  // common subexpressions would make share it.
  buffer->setAttr("ctxc.read", builder.getI64IntegerAttr(nextRead++));
  return buffer;
}

void KernelEmitter::store(Value tensor, Value memref) {
  auto op = bufferization::MaterializeInDestinationOp::create(builder, loc, tensor, memref);
  op.setRestrict(true);
  op.setWritable(true);
}

//===----------------------------------------------------------------------===//
// The block
//===----------------------------------------------------------------------===//

FailureOr<func::FuncOp> KernelEmitter::run() {
  addArguments();
  SmallVector<Type> types;
  for (const KernelArg &arg : args)
    types.push_back(arg.type);
  types.push_back(LLVM::LLVMPointerType::get(builder.getContext()));
  builder.setInsertionPointToEnd(module.getBody());
  kernel = func::FuncOp::create(builder, loc, name, builder.getFunctionType(types, {}));
  kernel.setPrivate();
  for (auto [i, arg] : llvm::enumerate(args)) {
    kernel.setArgAttr(i, "ctxc.kind", builder.getStringAttr(stringifyKernelArgKind(arg.kind)));
    if (!arg.name.empty())
      kernel.setArgAttr(i, "ctxc.name", builder.getStringAttr(arg.name));
    if (arg.index)
      kernel.setArgAttr(i, "ctxc.index", builder.getI64IntegerAttr(arg.index));
    if (arg.stream)
      kernel.setArgAttr(i, "ctxc.stream", builder.getI64IntegerAttr(arg.stream));
    if (arg.stored)
      kernel.setArgAttr(i, "ctxc.stored", TypeAttr::get(arg.stored));
  }
  Block *entry = kernel.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  rowCount = memref::DimOp::create(builder, loc, entry->getArgument(0), 0);
  positionTensor = readTensor(builder, loc, entry->getArgument(0));
  tokenTensor = readTensor(builder, loc, entry->getArgument(1));
  for (auto [i, input] : llvm::enumerate(block.getArguments()))
    bind(input, readTensor(builder, loc, argument(KernelArgKind::Input, "", i)));

  for (Operation &op : block.getBody().front()) {
    loc = op.getLoc();
    if (auto yield = dyn_cast<xf::YieldOp>(op)) {
      for (auto [i, value] : llvm::enumerate(yield.getValues()))
        store(data(value), argument(KernelArgKind::Output, "", i));
      continue;
    }
    auto lowering = dyn_cast<LinalgLoweringOpInterface>(op);
    if (!lowering) {
      kernel.erase();
      return op.emitOpError("has no compiled kernel; run it with --backend reference");
    }
    if (failed(lowering.lowerToLinalg(*this))) {
      kernel.erase();
      return failure();
    }
  }
  emitReplayPrediction(*this);
  func::ReturnOp::create(builder, loc);
  return kernel;
}

FailureOr<func::FuncOp> ctxc::lowerBlockToLinalg(xf::BlockOp block, ModuleOp module,
                                                 StringRef name) {
  return KernelEmitter(block, module, name).run();
}
