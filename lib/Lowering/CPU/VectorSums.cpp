#include "lib/Lowering/CPU/VectorSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

/// For each of the `blocks` equal blocks of x, and then of y: its first half plus its second half.
static Value addedHalves(OpBuilder &b, Location loc, Value x, Value y, int64_t blocks) {
  int64_t half = cast<VectorType>(x.getType()).getDimSize(0) / blocks / 2;
  SmallVector<int64_t> first, second;
  for (int64_t block = 0; block < (y ? 2 : 1) * blocks; ++block)
    for (int64_t i = 0; i < half; ++i) {
      first.push_back(block * 2 * half + i);
      second.push_back(block * 2 * half + half + i);
    }
  Value other = y ? y : x;
  return arith::AddFOp::create(b, loc, vector::ShuffleOp::create(b, loc, x, other, first),
                               vector::ShuffleOp::create(b, loc, x, other, second));
}

Value ctxc::totals(OpBuilder &b, Location loc, SmallVector<Value> sums) {
  int64_t blocks = 1, lanes = cast<VectorType>(sums.front().getType()).getDimSize(0);
  for (; sums.size() > 1 && lanes > 1; blocks *= 2, lanes /= 2) {
    SmallVector<Value> next;
    for (size_t i = 0; i < sums.size(); i += 2)
      next.push_back(addedHalves(b, loc, sums[i], sums[i + 1], blocks));
    sums = next;
  }
  assert(sums.size() == 1 && "more sums than lanes");
  for (; lanes > 1; lanes /= 2)
    sums[0] = addedHalves(b, loc, sums[0], {}, blocks);
  return sums[0];
}

void ctxc::transposeSquare(OpBuilder &b, Location loc, SmallVectorImpl<Value> &rows) {
  int64_t lanes = rows.size();
  for (int64_t block = 1; block < lanes; block *= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < lanes; ++i) {
      bool moves = i & block;
      low.push_back(moves ? lanes + i - block : i);
      high.push_back(moves ? lanes + i : i + block);
    }
    for (int64_t i = 0; i < lanes; ++i) {
      if (i & block)
        continue;
      Value x = rows[i], y = rows[i + block];
      rows[i] = vector::ShuffleOp::create(b, loc, x, y, low);
      rows[i + block] = vector::ShuffleOp::create(b, loc, x, y, high);
    }
  }
}
