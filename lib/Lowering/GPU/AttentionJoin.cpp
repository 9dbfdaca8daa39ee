// The second kernel of a row's attention: a block for each head.
#include "lib/Lowering/GPU/AttentionKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

static constexpr int64_t threadsOfJoin = 256;
/// How many splits a thread reads, at most, before it uses the first.
static constexpr int64_t splitsAhead = 32;

namespace {

class JoinWriter : AttentionWriter {
public:
  JoinWriter(KernelWriter &w, const AttentionShape &shape) : AttentionWriter(w, shape) {}
  /// Writes the kernel's body, and returns the number of blocks.
  int64_t write();
};

} // namespace

int64_t JoinWriter::write() {
  Value shared = sharedMemory(shape.splits);
  Values at = w.split(w.block, {fixedExtent(shape.groups), fixedExtent(shape.repeat)});
  group = at[0];
  Value head = at[1], none = real(-INFINITY);
  Value sumAt = w.index(shape.out), largestAt = w.index(shape.out + 1);
  Value used = usedSplits(w.number(shape.row.loops[Loop::Slot]));
  Value last = arith::SubIOp::create(w.b, w.loc, used, w.index(1));
  // Behind the last split that is used, the last again, with the weight 0: loops of known length
  // have their loads in flight together.
  auto get = [&](Value split, Value i) {
    Value from = arith::MinUIOp::create(w.b, w.loc, split, last);
    return w.load(shape.partial, w.add(partialAt(from, head), i));
  };
  auto whereUsed = [&](Value split, Value weight) -> Value {
    return arith::SelectOp::create(w.b, w.loc, w.isBelow(split, used), weight, real(0));
  };
  // Every subgroup computes the same sums over the splits.
  auto overSplits = [&](Value start, llvm::function_ref<Value(Value, Value)> body) {
    return w.loop(w.lane, w.index(shape.splits), w.index(shape.lanes), start,
                  [&](Value s, ValueRange sum) { return Values{body(s, sum[0])}; })[0];
  };
  Value largest = largestOfLanes(
      overSplits(none, [&](Value s, Value sum) { return larger(sum, get(s, largestAt)); }));
  Values beside;
  if (op.getSinks())
    beside.push_back(read(operand(op.getSinksMutable()), indices(head, w.index(0))));
  if (op.getOwnScores())
    beside.push_back(read(operand(op.getOwnScoresMutable()), indices(head, w.index(0))));
  for (Value score : beside)
    largest = larger(largest, score);
  Value total = sumOfLanes(overSplits(real(0), [&](Value s, Value sum) {
    Value weight = whereUsed(s, weightOf(get(s, largestAt), largest));
    return multiplyAdd(weight, get(s, sumAt), sum);
  }));
  for (Value score : beside)
    total = plus(total, weightOf(score, largest));
  auto share = [&](Value score) -> Value {
    return arith::DivFOp::create(w.b, w.loc, weightOf(score, largest), total);
  };
  w.loop(w.thread, w.index(shape.splits), w.index(w.threads), [&](Value s) {
    Value of = whereUsed(s, share(get(s, largestAt)));
    memref::StoreOp::create(w.b, w.loc, of, shared, ValueRange{s});
  });
  w.barrier();
  const int64_t ahead = std::min(shape.splits, splitsAhead);
  w.loop(w.thread, w.index(shape.out), w.index(w.threads), [&](Value i) {
    Value mixed = w.loop(w.index(0), w.index(shape.splits), w.index(ahead), real(0),
                         [&](Value first, ValueRange sum) {
                           Values numbers;
                           Value mixed = sum[0];
                           for (int64_t s = 0; s < ahead; ++s)
                             numbers.push_back(get(w.add(first, w.index(s)), i));
                           for (auto [s, number] : llvm::enumerate(numbers)) {
                             Value of = w.add(first, w.index(s));
                             Value weight = memref::LoadOp::create(w.b, w.loc, shared, of);
                             mixed = multiplyAdd(weight, number, mixed);
                           }
                           return Values{mixed};
                         })[0];
    Values place = indices(head, w.index(0));
    place[Loop::Out] = i;
    if (op.getOwnValues())
      mixed =
          multiplyAdd(share(beside.back()), read(operand(op.getOwnValuesMutable()), place), mixed);
    const Access &target = *shape.row.accesses.back();
    w.store(mixed, target.view.root, w.at(target, place));
  });
  return shape.groups * shape.repeat;
}

WrittenKernel gpu_lowering::writeAttentionJoin(gpu::GPUModuleOp module, StringRef name,
                                               const AttentionShape &shape,
                                               const GpuTarget &target) {
  KernelWriter w(module, name, shape.row.op->getLoc(), threadsOfJoin, target);
  int64_t blocks = JoinWriter(w, shape).write();
  w.finish(blocks);
  return {w.function, w.roots, blocks, w.threads};
}
