// The first kernel of a row's attention: some heads and slots in a block.
#include "lib/Lowering/GPU/AttentionKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

namespace {

class PartsWriter : AttentionWriter {
public:
  PartsWriter(KernelWriter &w, const AttentionShape &shape)
      : AttentionWriter(w, shape), keys(shape.keys), values(shape.values), out(shape.out) {}

  /// Writes the kernel's body, and returns the number of blocks.
  int64_t write(int64_t sharedBytes);

private:
  /// Which component of a key or a value is number `i` of this lane.
  Value component(const Pieces &p, int64_t i) {
    if (p.inFours)
      return w.add(by(w.add(w.lane, w.index(i / 4 * shape.lanes)), 4), w.index(i % 4));
    return w.add(w.lane, w.index(i * shape.lanes));
  }
  bool isFull(const Pieces &p) const { return p.size % shape.lanes == 0; }
  /// This lane's numbers of the key or value of `slot`. Beyond the last, the last again.
  Values readPieces(const Pieces &p, Value slot) {
    Values numbers, at = indices(w.index(0), slot);
    if (!p.inFours) {
      for (int64_t i = 0; i < p.perLane; ++i) {
        at[p.along] = component(p, i);
        if (!isFull(p))
          at[p.along] = arith::MinUIOp::create(w.b, w.loc, at[p.along], w.index(p.size - 1));
        numbers.push_back(w.load(p.access->view.root, w.at(*p.access, at)));
      }
      return numbers;
    }
    Value buffer = w.buffer(p.access->view.root, VectorType::get({4}, w.b.getF32Type()));
    Value start = w.index(p.access->offset.fixed / 4);
    for (Loop loop : {Loop::Group, Loop::Slot})
      start = w.add(start, by(at[loop], p.access->steps[loop].fixed / 4));
    start = w.add(start, w.lane);
    for (int64_t j = 0; j < p.perLane / 4; ++j) {
      Value four = memref::LoadOp::create(w.b, w.loc, buffer,
                                          ValueRange{w.add(start, w.index(j * shape.lanes))});
      for (int64_t i = 0; i < 4; ++i)
        numbers.push_back(vector::ExtractOp::create(w.b, w.loc, four, i));
    }
    return numbers;
  }
  /// What a subgroup has for one head.
  struct Running {
    Value largest, sum;
    Values mixed;
  };
  Values pack(ArrayRef<Running> all) {
    Values values;
    for (const Running &one : all) {
      values.append({one.largest, one.sum});
      llvm::append_range(values, one.mixed);
    }
    return values;
  }
  SmallVector<Running> unpack(ValueRange values) {
    SmallVector<Running> all;
    for (int64_t h = 0; h < shape.heads; ++h, values = values.drop_front(2 + this->values.perLane))
      all.push_back({values[0], values[1], Values(values.slice(2, this->values.perLane))});
    return all;
  }
  Value headAt(int64_t h) {
    Value head = w.add(by(part, shape.heads), w.index(h));
    return shape.repeat % shape.heads
               ? arith::MinUIOp::create(w.b, w.loc, head, w.index(shape.repeat - 1))
               : head;
  }
  Value firstSlot(Value slots);
  SmallVector<Values> readQueries();
  Value scoreOf(Value product, Value head, Value slot);
  void addSlots(Value first, Value slots, ArrayRef<Values> queries,
                SmallVectorImpl<Running> &running);
  void joinSubgroups(int64_t from, ArrayRef<Running> some, Value shared);

  const Pieces &keys, &values;
  const int64_t out;
  Value part, split;
};

} // namespace

/// The first slot that this subgroup reads.
Value PartsWriter::firstSlot(Value slots) {
  int64_t all = shape.subgroups();
  Value own = w.add(by(split, AttentionShape::subgroupsOfBlock), w.subgroup);
  if (!op.getWindow())
    return own;
  Value begin = beginOf(slots);
  // Its own slots are those whose number modulo all subgroups is its own number.
  Value rest = arith::RemUIOp::create(w.b, w.loc, begin, w.index(all));
  Value ahead = arith::SubIOp::create(w.b, w.loc, w.add(own, w.index(all)), rest);
  return w.add(begin, arith::RemUIOp::create(w.b, w.loc, ahead, w.index(all)));
}

/// This lane's components of the queries; zeros beyond the last component.
SmallVector<SmallVector<Value>> PartsWriter::readQueries() {
  SmallVector<Values> queries(shape.heads);
  for (int64_t h = 0; h < shape.heads; ++h)
    for (int64_t i = 0; i < keys.perLane; ++i) {
      Values at = indices(headAt(h), w.index(0));
      Value k = component(keys, i), last = w.index(keys.size - 1);
      at[Loop::In] = isFull(keys) ? k : arith::MinUIOp::create(w.b, w.loc, k, last);
      Value number = read(0, at);
      if (!isFull(keys))
        number =
            arith::SelectOp::create(w.b, w.loc, w.isBelow(k, w.index(keys.size)), number, real(0));
      queries[h].push_back(number);
    }
  return queries;
}

/// The region's score of a product.
Value PartsWriter::scoreOf(Value product, Value head, Value slot) {
  Block &region = op.getScore().front();
  IRMapping inside;
  inside.map(region.getArgument(0), product);
  for (auto [i, argument] : llvm::enumerate(region.getArguments().drop_front()))
    inside.map(argument, read(operand(op.getOthersMutable()) + i, indices(head, slot)));
  for (Operation &nested : region.without_terminator())
    w.copy(nested, inside);
  return w.inside(op.yielded(), inside);
}

/// Adds `ahead` slots from `first` on, each as far apart as there are subgroups.
void PartsWriter::addSlots(Value first, Value slots, ArrayRef<Values> queries,
                           SmallVectorImpl<Running> &running) {
  Values at, isThere;
  SmallVector<Values> keysOf, valuesOf;
  Value last = arith::SubIOp::create(w.b, w.loc, slots, w.index(1));
  for (int64_t u = 0; u < shape.ahead; ++u) {
    Value slot = w.add(first, w.index(u * shape.subgroups()));
    isThere.push_back(w.isBelow(slot, slots));
    at.push_back(arith::MinUIOp::create(w.b, w.loc, slot, last));
  }
  for (Value slot : at)
    keysOf.push_back(readPieces(keys, slot));
  for (Value slot : at)
    valuesOf.push_back(readPieces(values, slot));
  for (int64_t h = 0; h < shape.heads; ++h) {
    Running &one = running[h];
    Values scores;
    Value largest = one.largest;
    for (int64_t u = 0; u < shape.ahead; ++u) {
      Value sum = real(0);
      for (auto [query, key] : llvm::zip(queries[h], keysOf[u]))
        sum = multiplyAdd(query, key, sum);
      Value score = scoreOf(sumOfLanes(sum), headAt(h), at[u]);
      scores.push_back(arith::SelectOp::create(w.b, w.loc, isThere[u], score, real(-INFINITY)));
      largest = larger(largest, scores.back());
    }
    Value before = weightOf(one.largest, largest);
    one.sum = times(one.sum, before);
    for (Value &number : one.mixed)
      number = times(number, before);
    for (int64_t u = 0; u < shape.ahead; ++u) {
      Value weight = weightOf(scores[u], largest);
      one.sum = plus(one.sum, weight);
      for (auto [number, value] : llvm::zip(one.mixed, valuesOf[u]))
        number = multiplyAdd(weight, value, number);
    }
    one.largest = largest;
  }
}

/// Joins what the subgroups of the block have for some heads, from head `from` on. Each subgroup
/// brings its own to the largest score of the block; then all are added.
void PartsWriter::joinSubgroups(int64_t from, ArrayRef<Running> some, Value shared) {
  const int64_t count = some.size(), ofHead = out + 2;
  auto place = [&](Value subgroup, int64_t h, Value i) {
    return w.add(w.add(by(subgroup, count * ofHead), w.index(h * ofHead)), i);
  };
  auto put = [&](Value number, int64_t h, Value i) {
    memref::StoreOp::create(w.b, w.loc, number, shared, ValueRange{place(w.subgroup, h, i)});
  };
  auto get = [&](int64_t subgroup, Value at) -> Value {
    Value from = w.add(at, w.index(subgroup * count * ofHead));
    return memref::LoadOp::create(w.b, w.loc, shared, ValueRange{from});
  };
  Value sumAt = w.index(out), largestAt = w.index(out + 1), isLeader = isZero(w.lane);
  w.when(isLeader, [&] {
    for (auto [h, one] : llvm::enumerate(some))
      put(one.largest, h, largestAt);
  });
  w.barrier();
  Values largest;
  for (auto [h, one] : llvm::enumerate(some)) {
    Value at = place(w.index(0), h, largestAt);
    largest.push_back(get(0, at));
    for (int64_t s = 1; s < AttentionShape::subgroupsOfBlock; ++s)
      largest[h] = larger(largest[h], get(s, at));
    Value weight = weightOf(one.largest, largest[h]);
    for (auto [i, number] : llvm::enumerate(one.mixed)) {
      Value component = this->component(values, i), weighted = times(number, weight);
      if (isFull(values))
        put(weighted, h, component);
      else
        w.when(w.isBelow(component, sumAt), [&, h = h] { put(weighted, h, component); });
    }
    w.when(isLeader, [&, &one = one, h = h] { put(times(one.sum, weight), h, sumAt); });
  }
  w.barrier();
  w.loop(w.thread, w.index(count * (out + 1)), w.index(w.threads), [&](Value flat) {
    Values at = w.split(flat, {fixedExtent(count), fixedExtent(out + 1)});
    Value place = w.add(by(at[0], ofHead), at[1]), sum = get(0, place);
    for (int64_t s = 1; s < AttentionShape::subgroupsOfBlock; ++s)
      sum = plus(sum, get(s, place));
    Value head = w.add(w.add(by(part, shape.heads), w.index(from)), at[0]);
    w.when(w.isBelow(head, w.index(shape.repeat)),
           [&] { w.store(sum, shape.partial, w.add(partialAt(split, head), at[1])); });
  });
  w.when(isZero(w.thread), [&] {
    for (int64_t h = 0; h < count; ++h) {
      Value head = w.add(by(part, shape.heads), w.index(from + h));
      w.when(w.isBelow(head, w.index(shape.repeat)),
             [&] { w.store(largest[h], shape.partial, w.add(partialAt(split, head), largestAt)); });
    }
  });
  w.barrier(); // the next heads use the same memory
}

int64_t PartsWriter::write(int64_t sharedBytes) {
  const int64_t numbers = AttentionShape::subgroupsOfBlock * (out + 2); // of a head
  const int64_t together = std::clamp<int64_t>(sharedBytes / (4 * numbers), 1, shape.heads);
  Value shared = sharedMemory(together * numbers);
  Values at = w.split(
      w.block, {fixedExtent(shape.splits), fixedExtent(shape.groups), fixedExtent(shape.parts)});
  split = at[0], group = at[1], part = at[2];
  Value slots = w.number(shape.row.loops[Loop::Slot]);
  w.when(w.isBelow(split, usedSplits(slots)), [&] {
    SmallVector<Values> queries = readQueries();
    Running none{real(-INFINITY), real(0), Values(values.perLane, real(0))};
    Values all = pack(SmallVector<Running>(shape.heads, none));
    Value step = w.index(shape.ahead * shape.subgroups());
    all = w.loop(firstSlot(slots), slots, step, all, [&](Value first, ValueRange before) {
      SmallVector<Running> running = unpack(before);
      addSlots(first, slots, queries, running);
      return pack(running);
    });
    SmallVector<Running> running = unpack(all);
    for (int64_t h = 0; h < shape.heads; h += together)
      joinSubgroups(h, ArrayRef(running).slice(h, std::min(together, shape.heads - h)), shared);
  });
  return shape.splits * shape.groups * shape.parts;
}

WrittenKernel gpu_lowering::writeAttentionParts(gpu::GPUModuleOp module, StringRef name,
                                                const AttentionShape &shape,
                                                const GpuTarget &target) {
  KernelWriter w(module, name, shape.row.op->getLoc(),
                 AttentionShape::subgroupsOfBlock * shape.lanes, target);
  int64_t blocks = PartsWriter(w, shape).write(target.sharedBytes());
  w.finish(blocks);
  return {w.function, w.roots, blocks, w.threads};
}
