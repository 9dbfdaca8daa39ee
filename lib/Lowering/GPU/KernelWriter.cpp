#include "lib/Lowering/GPU/KernelWriter.h"
#include "dialects/Kernel/Kernel.h"
#include "lib/Lowering/GPU/QuantizedNumbers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

Type gpu_lowering::storageType(Type element) {
  return element.isBF16() ? IntegerType::get(element.getContext(), 16) : element;
}

KernelWriter::KernelWriter(gpu::GPUModuleOp module, StringRef name, Location loc, int64_t threads,
                           const GpuTarget &target)
    : b(module.getContext()), loc(loc), threads(threads), lanes(target.subgroup()), target(target) {
  b.setInsertionPointToEnd(module.getBody());
  function = gpu::GPUFuncOp::create(b, loc, name, b.getFunctionType({}, {}));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  b.setInsertionPointToStart(&function.getBody().front());
  thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  block = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  lane = arith::RemUIOp::create(b, loc, thread, index(lanes));
  subgroup = arith::DivUIOp::create(b, loc, thread, index(lanes));
}

void KernelWriter::finish(int64_t blocks) {
  gpu::ReturnOp::create(b, loc);
  function.setKnownBlockSize(SmallVector<int32_t>{int32_t(threads), 1, 1});
  function.setKnownGridSize(SmallVector<int32_t>{int32_t(blocks), 1, 1});
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Value KernelWriter::index(int64_t i) { return arith::ConstantIndexOp::create(b, loc, i); }

Value KernelWriter::add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }

Value KernelWriter::isBelow(Value x, Value limit) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, x, limit);
}

Value KernelWriter::zeroOf(Type type) {
  return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
}

Value KernelWriter::visibleTokens(int64_t run) {
  if (visible[run])
    return visible[run];
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(subgroup.getDefiningOp());
  if (!visibleBuffer)
    visibleBuffer = argument(Value(), MemRefType::get({2}, b.getI32Type()));
  Value count = memref::LoadOp::create(b, loc, visibleBuffer, ValueRange{index(run)});
  return visible[run] = arith::IndexCastOp::create(b, loc, b.getIndexType(), count);
}

Value KernelWriter::number(const Extent &extent) {
  Value sum = extent.isFixed() || extent.fixed ? index(extent.fixed) : Value();
  for (int64_t run : {0, 1}) {
    int64_t factor = extent.visible[run];
    if (!factor)
      continue;
    Value term = visibleTokens(run);
    if (factor != 1)
      term = arith::MulIOp::create(b, loc, term, index(factor));
    sum = sum ? add(sum, term) : term;
  }
  return sum;
}

Value KernelWriter::times(Value x, const Extent &factor) {
  if (factor == fixedExtent(1))
    return x;
  return arith::MulIOp::create(b, loc, x, number(factor));
}

SmallVector<Value> KernelWriter::split(Value flat, ArrayRef<Extent> sizes) {
  SmallVector<Value> indices(sizes.size());
  int64_t first = 0; // the leading sizes that are not one
  while (first + 1 < int64_t(sizes.size()) && sizes[first] == fixedExtent(1))
    ++first;
  for (int64_t i = int64_t(sizes.size()) - 1; i >= 0; --i) {
    if (i < first || sizes[i] == fixedExtent(1)) {
      indices[i] = index(0);
    } else if (i == first) {
      indices[i] = flat;
    } else {
      Value size = number(sizes[i]);
      indices[i] = arith::RemUIOp::create(b, loc, flat, size);
      flat = arith::DivUIOp::create(b, loc, flat, size);
    }
  }
  return indices;
}

Value KernelWriter::fromBfloat16(Value bits) {
  Value sixteen = arith::ConstantIntOp::create(b, loc, 16, 32);
  Value word = arith::ShLIOp::create(b, loc, bits, sixteen);
  return arith::BitcastOp::create(b, loc, b.getF32Type(), word);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value KernelWriter::argument(Value root, MemRefType type) {
  roots.push_back(root);
  // Buffers come before the arguments for shared memory, which are always last.
  Block &body = function.getBody().front();
  Value argument = body.insertArgument(roots.size() - 1, type, loc);
  TypeRange types = body.getArgumentTypes();
  function.setFunctionType(b.getFunctionType(types.take_front(roots.size()), {}));
  return argument;
}

Value KernelWriter::buffer(Value root, Type element) {
  Value &buffer = buffers[root];
  if (buffer)
    return buffer;
  if (auto matrix = quantizedOf(root)) { // whose bytes are read as words
    int64_t bytes = cast<MemRefType>(matrix.getMemory().getType()).getNumElements();
    return buffer = argument(root, MemRefType::get({(bytes + 3) / 4}, b.getI32Type()));
  }
  auto type = cast<MemRefType>(root.getType());
  Type own = type.getElementType();
  if (!element)
    element = storageType(own);
  std::optional<Extent> count = elementsOf(root);
  int64_t size = ShapedType::kDynamic;
  if (count && count->isFixed()) {
    auto vector = dyn_cast<VectorType>(element);
    int64_t bits = vector ? vector.getElementTypeBitWidth() * vector.getNumElements()
                          : element.getIntOrFloatBitWidth();
    size = llvm::divideCeil(count->fixed * own.getIntOrFloatBitWidth(), bits);
  }
  return buffer = argument(root, MemRefType::get({size}, element));
}

Value KernelWriter::at(const Access &access, ValueRange loops) {
  Value sum = access.offset == Extent() ? Value() : number(access.offset);
  for (auto [step, i] : llvm::zip(access.steps, loops)) {
    if (step == Extent() || getConstantIntValue(i) == 0)
      continue;
    Value term = times(i, step);
    sum = sum ? add(sum, term) : term;
  }
  return sum ? sum : index(0);
}

Value KernelWriter::load(Value root, Value at) {
  if (auto matrix = quantizedOf(root)) {
    Value four = index(4), group = arith::DivUIOp::create(b, loc, at, four);
    Value in = arith::IndexCastOp::create(b, loc, b.getI32Type(),
                                          arith::RemUIOp::create(b, loc, at, four));
    return decode(*this, typeOf(matrix), buffer(root), group, in)[0];
  }
  Value x = memref::LoadOp::create(b, loc, buffer(root), ValueRange{at});
  if (!cast<MemRefType>(root.getType()).getElementType().isBF16())
    return x;
  return fromBfloat16(arith::ExtUIOp::create(b, loc, b.getI32Type(), x));
}

SmallVector<Value> KernelWriter::loadFour(Value root, Value group) {
  return decodeFour(*this, typeOf(quantizedOf(root)), buffer(root), group);
}

void KernelWriter::store(Value value, Value root, Value at) {
  memref::StoreOp::create(b, loc, value, buffer(root), ValueRange{at});
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

Value KernelWriter::inside(Value value, IRMapping &map) {
  if (!map.contains(value)) {
    auto extent = extentOf(value);
    map.map(value, extent ? number(*extent) : b.clone(*value.getDefiningOp())->getResult(0));
  }
  return map.lookup(value);
}

void KernelWriter::copy(Operation &op, IRMapping &map) {
  if (auto from = dyn_cast<memref::LoadOp>(op)) {
    View view = *viewOf(from.getMemRef());
    Access access{view, view.offset, view.strides};
    auto indices =
        llvm::map_to_vector(from.getIndices(), [&](Value index) { return inside(index, map); });
    return map.map(from.getResult(), load(view.root, at(access, indices)));
  }
  for (Value operand : op.getOperands())
    inside(operand, map);
  Value only = op.getNumOperands() ? map.lookup(op.getOperand(0)) : Value();
  if (isa<arith::ExtFOp>(op) && only.getType() == op.getResult(0).getType())
    map.map(op.getResult(0), only); // bfloat16 was widened when it was read
  else
    b.clone(op, map);
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

SmallVector<Value> KernelWriter::loop(Value from, Value to, Value step, ValueRange values,
                                      Body body) {
  auto loop = scf::ForOp::create(b, loc, from, to, step, values);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!values.empty())
    scf::YieldOp::create(b, loc, next);
  return SmallVector<Value>(loop.getResults());
}

void KernelWriter::loop(Value from, Value to, Value step, llvm::function_ref<void(Value)> body) {
  loop(from, to, step, ValueRange(), [&](Value i, ValueRange) {
    body(i);
    return SmallVector<Value>();
  });
}

void KernelWriter::when(Value condition, llvm::function_ref<void()> body) {
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

void KernelWriter::barrier() { gpu::BarrierOp::create(b, loc); }

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// The value of the lane whose number differs in the bit `half`. 64-bit values are exchanged as two
/// halves, since devices exchange 32 bits at a time.
Value KernelWriter::fromLane(Value x, int64_t half) {
  auto exchange = [&](Value part) -> Value {
    return gpu::ShuffleOp::create(b, loc, part, half, lanes, gpu::ShuffleMode::XOR)
        .getShuffleResult();
  };
  Type type = x.getType(), i32 = b.getI32Type(), i64 = b.getI64Type();
  if (type.getIntOrFloatBitWidth() < 64)
    return exchange(x);
  Value bits = arith::BitcastOp::create(b, loc, i64, x);
  Value by = arith::ConstantIntOp::create(b, loc, 32, 64);
  Value high = arith::TruncIOp::create(b, loc, i32, arith::ShRUIOp::create(b, loc, bits, by));
  Value low = exchange(arith::TruncIOp::create(b, loc, i32, bits));
  high = arith::ExtUIOp::create(b, loc, i64, exchange(high));
  bits = arith::OrIOp::create(b, loc, arith::ShLIOp::create(b, loc, high, by),
                              arith::ExtUIOp::create(b, loc, i64, low));
  return arith::BitcastOp::create(b, loc, type, bits);
}

Value KernelWriter::sharedMemory(Type type, unsigned number) {
  Value &memory = shared[{type, number}];
  if (!memory) {
    auto space = gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
    memory = function.addWorkgroupAttribution(
        MemRefType::get({threads / lanes}, type, MemRefLayoutAttrInterface(), space), loc);
  }
  return memory;
}

Value KernelWriter::combineLanes(Value x, Combine combine) {
  for (int64_t half = lanes / 2; half > 0; half /= 2)
    x = combine(x, fromLane(x, half));
  return x;
}

Value KernelWriter::combineBlock(Value x, Combine combine) {
  return combineBlock(ValueRange{x}, [&](ValueRange xs, ValueRange ys) {
    return SmallVector<Value>{combine(xs[0], ys[0])};
  })[0];
}

SmallVector<Value> KernelWriter::combineBlock(ValueRange xs, CombineAll combine) {
  SmallVector<Value> own(xs);
  for (int64_t half = lanes / 2; half > 0; half /= 2)
    own = combine(own, llvm::map_to_vector(own, [&](Value x) { return fromLane(x, half); }));
  int64_t subgroups = threads / lanes;
  if (subgroups == 1)
    return own;
  SmallVector<Value> sums;
  llvm::DenseMap<Type, unsigned> used;
  for (Value x : own)
    sums.push_back(sharedMemory(x.getType(), used[x.getType()]++));
  auto read = [&](Value i) {
    return llvm::map_to_vector(sums, [&](Value sum) -> Value {
      return memref::LoadOp::create(b, loc, sum, ValueRange{i});
    });
  };
  when(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane, index(0)), [&] {
    for (auto [x, sum] : llvm::zip(own, sums))
      memref::StoreOp::create(b, loc, x, sum, ValueRange{subgroup});
  });
  barrier();
  SmallVector<Value> all = loop(index(1), index(subgroups), index(1), read(index(0)),
                                [&](Value i, ValueRange sum) { return combine(sum, read(i)); });
  barrier(); // nobody may still read the memory when it is used again
  return all;
}
