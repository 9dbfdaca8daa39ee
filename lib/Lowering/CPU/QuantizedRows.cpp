#include "lib/Lowering/CPU/QuantizedRows.h"
#include "ctxc/Numerics/ByteVectors.h"
#include "lib/Lowering/CPU/LowerCalls.h"
#include "lib/Lowering/CallFrame.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ctxc;

xf::QuantizedType QuantizedRows::format() const {
  return cast<xf::QuantizedType>(c.stored.getElementType());
}

Value QuantizedRows::at(Value address, Type element, Value index) {
  return LLVM::GEPOp::create(b, loc, address.getType(), element, address,
                             ArrayRef<LLVM::GEPArg>{toI64(b, loc, index)});
}

QuantizedRows::Row QuantizedRows::open(Value row, int64_t slot) {
  Value bytes = index(c.in() / format().getBlockElements() * format().getBlockBytes());
  if (!BlockReader::hasScalesApart(format())) {
    // Side by side: at a distance of 4 KB a load would seem to read what was stored for another
    // row, and wait for it.
    Value memory;
    if (scratchAddress)
      memory = at(scratchAddress, b.getI8Type(), index(slot * BlockReader::memoryBytes(format())));
    return {at(address, b.getI8Type(), arith::MulIOp::create(b, loc, row, bytes)), {}, memory};
  }
  Value scales = at(scratchAddress, b.getF32Type(), index(slot * c.in()));
  SmallVector<Value> operands{address, toI64(b, loc, row), toI64(b, loc, bytes), scales};
  return {callSupport(b, loc, kernel::SupportFunction::ctxc_scaled_row, operands), scales, {}};
}

Value QuantizedRows::areRead(ArrayRef<Row> rows) {
  if (!BlockReader::hasScalesApart(format()))
    return {};
  Value null = LLVM::ZeroOp::create(b, loc, address.getType()), all;
  for (const Row &row : rows) {
    Value isRead = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ne, row.elements, null);
    all = all ? Value(arith::AndIOp::create(b, loc, all, isRead)) : isRead;
  }
  return all;
}

std::unique_ptr<BlockReader> QuantizedRows::block(const Row &row, Value block) {
  Value scale;
  if (row.scales)
    scale = LLVM::LoadOp::create(b, loc, b.getF32Type(), at(row.scales, b.getF32Type(), block));
  Value address = at(row.elements, b.getI8Type(), times(block, BlockReader::bytes(format())));
  return BlockReader::open(b, loc, format(), c.lanes, {address, scale, row.memory});
}

ByteBlock::Place QuantizedRows::span(const Row &row, Value span, int64_t present) {
  Value address = at(row.elements, b.getI8Type(), times(span, ByteBlock::bytesOf(format())));
  Value scales;
  if (row.scales)
    scales = at(row.scales, b.getF32Type(), times(span, ByteBlock::span / CTXC_BYTE_GROUP));
  return {address, scales, present, 4 * c.lanes, c.products};
}

void QuantizedRows::askAhead(const Row &row, Value byte, int64_t count) {
  for (int64_t line = 0; line < count; line += Contraction::lineBytes)
    LLVM::Prefetch::create(
        b, loc, at(row.elements, b.getI8Type(), add(byte, index(Contraction::aheadBytes + line))),
        /*rw=*/0, /*hint=*/2, /*cache=*/1);
}

void QuantizedRows::decode(Value row, Value count, Value into) {
  if (BlockReader::hasScalesApart(format()))
    return decodeByCall(times(row, c.in()), times(count, c.in()), times(into, c.in()));
  forRange(index(0), count, 1,
           [&](Value i) { decodeBlocks(add(row, i), index(0), index(c.in()), add(into, i)); });
}

void QuantizedRows::decodeColumns(Value row, Value from, Value to, Value into) {
  if (BlockReader::hasScalesApart(format()))
    return decodeByCall(add(times(row, c.in()), from), sub(to, from),
                        add(times(into, c.in()), from));
  decodeBlocks(row, from, to, into);
}

void QuantizedRows::decodeBlocks(Value row, Value from, Value to, Value into) {
  Row blocks = open(row, 0);
  blocks.memory = {}; // the scratch memory is where the row is decoded to
  int64_t elements = BlockReader::elements(format());
  Value end = over(add(to, index(elements - 1)), elements);
  forRange(over(from, elements), end, 1, [&](Value number) {
    std::unique_ptr<BlockReader> reader = block(blocks, number);
    for (int64_t k = 0; k < elements; k += c.lanes)
      vector::StoreOp::create(b, loc, reader->numbers(k), scratch,
                              ValueRange{into, add(times(number, elements), index(k))});
  });
}

/// `first`, `count` and `into` are numbers of W and of the scratch memory.
void QuantizedRows::decodeByCall(Value first, Value count, Value into) {
  SmallVector<Value> operands{
      arith::ConstantIntOp::create(b, loc, int64_t(format().getFormat()), 32), address,
      toI64(b, loc, first), toI64(b, loc, count), at(scratchAddress, b.getF32Type(), into)};
  callSupport(b, loc, kernel::SupportFunction::ctxc_decode, operands);
}
