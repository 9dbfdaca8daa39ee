#include "lib/Lowering/CPU/RoundedPanel.h"
#include "lib/Lowering/CPU/QuantizedRows.h"
#include "lib/Lowering/CPU/SplitNumbers.h"
#include "lib/Lowering/CPU/VectorSums.h"
#include "lib/Lowering/CallFrame.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ctxc;

/// The elements that columns of a panel are a multiple of.
static int64_t blockOf(const RoundedOperands &operands, int64_t width) {
  if (!operands.quantised)
    return width;
  auto format = cast<xf::QuantizedType>(operands.quantised->stored.getElementType());
  return std::max(width, BlockReader::elements(format));
}

RoundedPanel::RoundedPanel(OpBuilder &b, Location loc, const RoundedOperands &operands,
                           int64_t lanes, const Limits &limits)
    : LoopBuilder(b, loc), given(operands), lanes(lanes), width(2 * lanes),
      in(cast<MemRefType>(operands.w.getType()).getDimSize(operands.transposed ? 0 : 1)),
      planes(!operands.isSplit ? 1
             : operands.quantised
                 ? split::partsOf(operands.quantised->stored.getElementType())
                 : split::partsOf(cast<MemRefType>(operands.w.getType()).getElementType())),
      together(limits.together), element(cast<MemRefType>(operands.w.getType()).getElementType()) {
  int64_t panels = llvm::divideCeil(in, limits.length);
  length = llvm::alignTo(llvm::divideCeil(in, panels), blockOf(operands, width));
  int64_t fitting = limits.bytes / (2 * planes * length) / (together * lanes);
  panelGroups = std::max<int64_t>(1, fitting) * together;
}

Value RoundedPanel::allocate(Type element, int64_t count) {
  Value size = LLVM::ConstantOp::create(b, loc, b.getI64Type(), b.getI64IntegerAttr(count));
  return LLVM::AllocaOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()), element, size,
                                /*alignment=*/64);
}

Value RoundedPanel::groupsOf(const Part &part) {
  return over(add(sub(part.to, part.from), index(lanes - 1)), lanes);
}

void RoundedPanel::forEachPart(Value begin, Value end,
                               llvm::function_ref<void(const Part &)> compute) {
  auto type = MemRefType::get({planes * panelGroups, length / 2, lanes}, b.getI32Type());
  memory = allocate(b.getI32Type(), type.getNumElements());
  panel = memrefAt(b, loc, memory, type, {});
  forRange(begin, end, panelGroups * lanes, [&](Value from) {
    Value to = least(add(from, index(panelGroups * lanes)), end);
    forRange(index(0), index(in), length, [&](Value column) {
      Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, column, index(0));
      Part part{from, to, column, least(index(length), sub(index(in), column)), isFirst};
      copy(part);
      compute(part);
    });
  });
}

void RoundedPanel::copy(const Part &part) {
  if (given.transposed) {
    forRange(index(0), pairsOf(part), 1, [&](Value pair) {
      forRange(index(0), groupsOf(part), 1,
               [&](Value group) { interleaveRows(part, group, pair); });
    });
    return;
  }
  Value whole = multiples(part.count, width);
  forRange(index(0), groupsOf(part), 1, [&](Value group) {
    if (given.quantised)
      decode(part, group);
    forRange(index(0), whole, width, [&](Value k) { copyPairs(part, group, k, {}); });
    forRange(whole, part.count, width,
             [&](Value k) { copyPairs(part, group, k, mask(width, sub(part.count, k))); });
  });
}

/// Decodes the part's columns of a group's rows. Behind the last row, the last row is repeated.
void RoundedPanel::decode(const Part &part, Value group) {
  Value first = rowOf(part, group), last = sub(part.to, index(1));
  forRange(index(0), index(lanes), 1, [&](Value i) {
    QuantizedRows(b, loc, *given.quantised, given.blocks, given.address, given.w)
        .decodeColumns(least(add(first, i), last), part.column, add(part.column, part.count), i);
  });
}

/// Copies `lanes` pairs of each row of a group, side by side. Behind the last row, the last row is
/// repeated; the sums of the copies are never stored.
void RoundedPanel::copyPairs(const Part &part, Value group, Value k, Value mask) {
  SmallVector<SmallVector<Value>> rows(planes);
  Value first = rowOf(part, group), last = sub(part.to, index(1));
  auto stored = VectorType::get({width}, element);
  for (int64_t i = 0; i < lanes; ++i) {
    Value row = given.quantised ? index(i) : least(add(first, index(i)), last);
    Values split =
        split::takeParts(b, loc, load(stored, given.w, {row, add(part.column, k)}, mask), planes);
    for (int64_t plane = 0; plane < planes; ++plane)
      rows[plane].push_back(vector::BitCastOp::create(b, loc, pairs(), split[plane]));
  }
  Value pair = over(k, 2);
  for (int64_t plane = 0; plane < planes; ++plane) {
    transposeSquare(b, loc, rows[plane]);
    for (auto [i, row] : llvm::enumerate(rows[plane]))
      toPlane(plane, row, group, add(pair, index(i)));
  }
}

void RoundedPanel::toPlane(int64_t plane, Value pairs, Value group, Value pair) {
  vector::StoreOp::create(b, loc, pairs, panel,
                          ValueRange{add(group, index(plane * panelGroups)), pair, index(0)});
}

/// Copies the pairs of a matrix that is stored transposed: each pair takes a number from each of
/// two rows. Behind the last row the last row is repeated, and is multiplied by zero.
void RoundedPanel::interleaveRows(const Part &part, Value group, Value pair) {
  Value first = rowOf(part, group), present = presentRows(part, first);
  auto row = [&](int64_t i) {
    Value k = add(part.column, add(times(pair, 2), index(i)));
    return split::takeParts(
        b, loc,
        load(VectorType::get({lanes}, element), given.w, {least(k, index(in - 1)), first}, present),
        planes);
  };
  Values even = row(0), odd = row(1);
  for (int64_t plane = 0; plane < planes; ++plane) {
    Value both = vector::InterleaveOp::create(b, loc, even[plane], odd[plane]);
    toPlane(plane, vector::BitCastOp::create(b, loc, pairs(), both), group, pair);
  }
}
