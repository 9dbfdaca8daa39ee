// Attention of one row, bound by the bandwidth of reading keys and values.
//
// Two launches. In the first, the slots of a group of heads are dealt out to the subgroups of
// `splits` blocks: subgroup i of all `n` takes slots i, i + n, … Its lanes read adjacent pieces of
// a key and a value, for several slots at once, and each that is read serves several heads. A
// subgroup goes over its slots once, with the largest score m so far, the sum l of exp(a − m), and
// the sum of the values weighted by exp(a − m), which are multiplied by exp(m − m') when a larger
// m' comes. The subgroups of a block are joined in shared memory. In the second launch, a block for
// each head joins what the blocks have written, the sink and the row's own slot.
//
// Order. A lane adds its components of a product in order, and lanes are added by halves. Which
// slots a subgroup takes depends on the sizes of the heads alone, neither on the device nor on the
// number of slots.
#include "dialects/Kernel/Kernel.h"
#include "lib/Lowering/GPU/Kernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

static constexpr int64_t subgroupsOfBlock = 8;
/// Heads that share what a subgroup reads, at most; and the numbers of mixed values that a lane
/// then has at most.
static constexpr int64_t headsOfBlock = 4, numbersOfLane = 32;
/// Slots that a subgroup reads before it uses the first, and the numbers that a lane then has.
static constexpr int64_t slotsAhead = 4, numbersAhead = 16;
/// The blocks of all groups of heads that fill a large device; and what a group has at least and at
/// most. All are powers of two.
static constexpr int64_t blocksOfDevice = 256, fewestSplits = 8, mostSplits = 128;
static constexpr int64_t threadsOfJoin = 256, splitsAhead = 8;

namespace {

/// The loops of a RowOp of attention.
enum Loop { Row, Group, Head, Slot, In, Out, Loops };

/// Keys or values: how the lanes of a subgroup divide one of them.
struct Pieces {
  const Access *access;
  Loop along;
  int64_t size;
  bool inFours; ///< read 16 bytes at a time
  int64_t perLane;
};

class AttentionWriter {
public:
  AttentionWriter(const RowOp &row, const GpuTarget &target)
      : row(row), op(cast<kernel::AttentionOp>(row.op)), lanes(target.subgroup()),
        groups(row.loops[Group].fixed), repeat(row.loops[Head].fixed), out(row.loops[Out].fixed),
        keys(piecesOf(1, In)), values(piecesOf(2, Out)) {
    if (keys.access->view.root == values.access->view.root && keys.inFours != values.inFours)
      keys = scalars(keys), values = scalars(values);
    int64_t most = std::max<int64_t>(std::min(headsOfBlock, numbersOfLane / values.perLane), 1);
    parts = llvm::divideCeil(repeat, most);
    heads = llvm::divideCeil(repeat, parts);
    ahead =
        std::clamp<int64_t>(numbersAhead / std::max(keys.perLane, values.perLane), 1, slotsAhead);
    int64_t wanted = llvm::PowerOf2Ceil(llvm::divideCeil(blocksOfDevice, groups * parts));
    splits = std::clamp(wanted, fewestSplits, mostSplits);
    OpBuilder b(op);
    partial = memref::AllocOp::create(
        b, op.getLoc(), MemRefType::get({splits * groups * repeat * (out + 2)}, b.getF32Type()));
  }

  int64_t bytesBetween() const { return 4 * cast<MemRefType>(partial.getType()).getNumElements(); }
  WrittenKernel writeParts(gpu::GPUModuleOp module, StringRef name, const GpuTarget &target);
  WrittenKernel writeJoin(gpu::GPUModuleOp module, StringRef name, const GpuTarget &target);

private:
  using Values = SmallVector<Value>;

  // Sizes ---------------------------------------------------------------------
  Pieces scalars(Pieces p) const {
    p.inFours = false;
    p.perLane = llvm::divideCeil(p.size, lanes);
    return p;
  }
  Pieces piecesOf(size_t operand, Loop along) const {
    const Access &access = *row.accesses[operand];
    Pieces made = scalars({&access, along, row.loops[along].fixed, false, 0});
    auto isWhole = [](const Extent &e) { return e.isFixed() && e.fixed % 4 == 0; };
    auto count = elementsOf(access.view.root);
    int64_t users = llvm::count_if(row.accesses, [&](const std::optional<Access> &other) {
      return other && other->view.root == access.view.root;
    });
    bool areBoth = row.accesses[1]->view.root == row.accesses[2]->view.root;
    made.inFours = cast<MemRefType>(access.view.root.getType()).getElementType().isF32() &&
                   made.size % (4 * lanes) == 0 && access.steps[along] == fixedExtent(1) &&
                   isWhole(access.offset) && isWhole(access.steps[Group]) &&
                   isWhole(access.steps[Slot]) && count && (!count->isFixed() || isWhole(*count)) &&
                   users == (areBoth ? 2 : 1);
    return made;
  }
  size_t operand(MutableOperandRange range) const { return range.begin()->getOperandNumber(); }

  // Numbers -------------------------------------------------------------------
  Value real(double x) {
    return arith::ConstantOp::create(w->b, w->loc, w->b.getF32FloatAttr(float(x)));
  }
  Value plus(Value a, Value b) { return arith::AddFOp::create(w->b, w->loc, a, b); }
  Value times(Value a, Value b) { return arith::MulFOp::create(w->b, w->loc, a, b); }
  Value larger(Value a, Value b) { return arith::MaximumFOp::create(w->b, w->loc, a, b); }
  Value multiplyAdd(Value a, Value b, Value sum) {
    auto fast = arith::FastMathFlags::contract;
    return arith::AddFOp::create(w->b, w->loc, arith::MulFOp::create(w->b, w->loc, a, b, fast), sum,
                                 fast);
  }
  /// exp(x − largest), which is 0 for all x where no slot is seen.
  Value weightOf(Value x, Value largest) {
    Value none =
        arith::CmpFOp::create(w->b, w->loc, arith::CmpFPredicate::OEQ, largest, real(-INFINITY));
    Value from = arith::SelectOp::create(w->b, w->loc, none, real(0), largest);
    return math::ExpOp::create(w->b, w->loc, arith::SubFOp::create(w->b, w->loc, x, from));
  }
  Value sumOfLanes(Value x) {
    return w->combineLanes(x, [&](Value a, Value b) { return plus(a, b); });
  }
  Value largestOfLanes(Value x) {
    return w->combineLanes(x, [&](Value a, Value b) { return larger(a, b); });
  }
  Value isZero(Value i) {
    return arith::CmpIOp::create(w->b, w->loc, arith::CmpIPredicate::eq, i, w->index(0));
  }
  Value by(Value i, int64_t factor) { return w->times(i, fixedExtent(factor)); }

  // Memory --------------------------------------------------------------------
  Value read(size_t operand, const Values &indices) {
    const Access &access = *row.accesses[operand];
    return w->load(access.view.root, w->at(access, indices));
  }
  Values indices(Value head, Value slot) {
    Value zero = w->index(0);
    return {zero, group, head, slot, zero, zero};
  }
  /// Which component of a key or a value is number `i` of this lane.
  Value component(const Pieces &p, int64_t i) {
    if (p.inFours)
      return w->add(by(w->add(w->lane, w->index(i / 4 * lanes)), 4), w->index(i % 4));
    return w->add(w->lane, w->index(i * lanes));
  }
  bool isFull(const Pieces &p) const { return p.size % lanes == 0; }
  /// This lane's numbers of the key or value of `slot`. Beyond the last, the last again.
  Values readPieces(const Pieces &p, Value slot) {
    Values numbers, at = indices(w->index(0), slot);
    if (!p.inFours) {
      for (int64_t i = 0; i < p.perLane; ++i) {
        at[p.along] = component(p, i);
        if (!isFull(p))
          at[p.along] = arith::MinUIOp::create(w->b, w->loc, at[p.along], w->index(p.size - 1));
        numbers.push_back(w->load(p.access->view.root, w->at(*p.access, at)));
      }
      return numbers;
    }
    Value buffer = w->buffer(p.access->view.root, VectorType::get({4}, w->b.getF32Type()));
    Value start = w->index(p.access->offset.fixed / 4);
    for (Loop loop : {Group, Slot})
      start = w->add(start, by(at[loop], p.access->steps[loop].fixed / 4));
    start = w->add(start, w->lane);
    for (int64_t j = 0; j < p.perLane / 4; ++j) {
      Value four = memref::LoadOp::create(w->b, w->loc, buffer,
                                          ValueRange{w->add(start, w->index(j * lanes))});
      for (int64_t i = 0; i < 4; ++i)
        numbers.push_back(vector::ExtractOp::create(w->b, w->loc, four, i));
    }
    return numbers;
  }
  /// Where the results of a split for a head lie: its mixed values, the largest score, the sum.
  Value partialAt(Value split, Value head) {
    Value flat = w->add(by(w->add(by(split, groups), group), repeat), head);
    return by(flat, out + 2);
  }

  // The first launch ----------------------------------------------------------
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
    for (int64_t h = 0; h < heads; ++h, values = values.drop_front(2 + this->values.perLane))
      all.push_back({values[0], values[1], Values(values.slice(2, this->values.perLane))});
    return all;
  }
  Value headAt(int64_t h) {
    Value head = w->add(by(part, heads), w->index(h));
    return repeat % heads ? arith::MinUIOp::create(w->b, w->loc, head, w->index(repeat - 1)) : head;
  }
  Value firstSlot(Value slots);
  SmallVector<Values> readQueries();
  Value scoreOf(Value product, Value head, Value slot);
  void addSlots(Value first, Value slots, ArrayRef<Values> queries,
                SmallVectorImpl<Running> &running);
  void joinSubgroups(int64_t h, const Running &one, Value shared);

  const RowOp &row;
  kernel::AttentionOp op;
  const int64_t lanes, groups, repeat, out;
  Pieces keys, values;
  int64_t heads, parts,
      splits;    ///< heads of a block, in how many parts of a group, in how many splits
  int64_t ahead; ///< how many slots a subgroup reads at once
  Value partial; ///< what the blocks of the first launch write

  KernelWriter *w = nullptr;
  Value group, part, split;
};

} // namespace

//===----------------------------------------------------------------------===//
// The first launch
//===----------------------------------------------------------------------===//

/// The first slot that this subgroup reads.
Value AttentionWriter::firstSlot(Value slots) {
  int64_t all = splits * subgroupsOfBlock;
  Value own = w->add(by(split, subgroupsOfBlock), w->subgroup);
  if (!op.getWindow())
    return own;
  Value window = arith::IndexCastOp::create(w->b, w->loc, w->b.getIndexType(),
                                            read(operand(op.getWindowMutable()), {w->index(0)}));
  Value isLimited = arith::AndIOp::create(w->b, w->loc, w->isBelow(w->index(0), window),
                                          w->isBelow(window, slots));
  Value begin = arith::SelectOp::create(
      w->b, w->loc, isLimited, arith::SubIOp::create(w->b, w->loc, slots, window), w->index(0));
  // Its own slots are those whose number modulo all subgroups is its own number.
  Value rest = arith::RemUIOp::create(w->b, w->loc, begin, w->index(all));
  Value ahead = arith::SubIOp::create(w->b, w->loc, w->add(own, w->index(all)), rest);
  return w->add(begin, arith::RemUIOp::create(w->b, w->loc, ahead, w->index(all)));
}

/// This lane's components of the queries; zeros beyond the last component.
SmallVector<SmallVector<Value>> AttentionWriter::readQueries() {
  SmallVector<Values> queries(heads);
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < keys.perLane; ++i) {
      Values at = indices(headAt(h), w->index(0));
      Value k = component(keys, i), last = w->index(keys.size - 1);
      at[In] = isFull(keys) ? k : arith::MinUIOp::create(w->b, w->loc, k, last);
      Value number = read(0, at);
      if (!isFull(keys))
        number = arith::SelectOp::create(w->b, w->loc, w->isBelow(k, w->index(keys.size)), number,
                                         real(0));
      queries[h].push_back(number);
    }
  return queries;
}

/// The region's score of a product.
Value AttentionWriter::scoreOf(Value product, Value head, Value slot) {
  Block &region = op.getScore().front();
  IRMapping inside;
  inside.map(region.getArgument(0), product);
  for (auto [i, argument] : llvm::enumerate(region.getArguments().drop_front()))
    inside.map(argument, read(operand(op.getOthersMutable()) + i, indices(head, slot)));
  auto mapped = [&](Value value) {
    if (!inside.contains(value)) {
      auto extent = extentOf(value);
      inside.map(value,
                 extent ? w->number(*extent) : w->b.clone(*value.getDefiningOp())->getResult(0));
    }
    return inside.lookup(value);
  };
  for (Operation &nested : region.without_terminator()) {
    for (Value operand : nested.getOperands())
      mapped(operand);
    Value only = nested.getNumOperands() ? inside.lookup(nested.getOperand(0)) : Value();
    if (isa<arith::ExtFOp>(nested) && only.getType() == nested.getResult(0).getType())
      inside.map(nested.getResult(0), only); // bfloat16 was widened when it was read
    else
      w->b.clone(nested, inside);
  }
  return mapped(op.yielded());
}

/// Adds `ahead` slots from `first` on, each as far apart as there are subgroups.
void AttentionWriter::addSlots(Value first, Value slots, ArrayRef<Values> queries,
                               SmallVectorImpl<Running> &running) {
  Values at, isThere;
  SmallVector<Values> keysOf, valuesOf;
  Value last = arith::SubIOp::create(w->b, w->loc, slots, w->index(1));
  for (int64_t u = 0; u < ahead; ++u) {
    Value slot = w->add(first, w->index(u * splits * subgroupsOfBlock));
    isThere.push_back(w->isBelow(slot, slots));
    at.push_back(arith::MinUIOp::create(w->b, w->loc, slot, last));
  }
  for (Value slot : at)
    keysOf.push_back(readPieces(keys, slot));
  for (Value slot : at)
    valuesOf.push_back(readPieces(values, slot));
  for (int64_t h = 0; h < heads; ++h) {
    Running &one = running[h];
    Values scores;
    Value largest = one.largest;
    for (int64_t u = 0; u < ahead; ++u) {
      Value sum = real(0);
      for (auto [query, key] : llvm::zip(queries[h], keysOf[u]))
        sum = multiplyAdd(query, key, sum);
      Value score = scoreOf(sumOfLanes(sum), headAt(h), at[u]);
      scores.push_back(arith::SelectOp::create(w->b, w->loc, isThere[u], score, real(-INFINITY)));
      largest = larger(largest, scores.back());
    }
    Value before = weightOf(one.largest, largest);
    one.sum = times(one.sum, before);
    for (Value &number : one.mixed)
      number = times(number, before);
    for (int64_t u = 0; u < ahead; ++u) {
      Value weight = weightOf(scores[u], largest);
      one.sum = plus(one.sum, weight);
      for (auto [number, value] : llvm::zip(one.mixed, valuesOf[u]))
        number = multiplyAdd(weight, value, number);
    }
    one.largest = largest;
  }
}

/// Joins what the subgroups of the block have for head `h`.
void AttentionWriter::joinSubgroups(int64_t h, const Running &one, Value shared) {
  auto place = [&](Value subgroup, Value i) { return w->add(by(subgroup, out + 2), i); };
  auto put = [&](Value number, Value i) {
    memref::StoreOp::create(w->b, w->loc, number, shared, ValueRange{place(w->subgroup, i)});
  };
  auto get = [&](int64_t subgroup, Value i) -> Value {
    return memref::LoadOp::create(w->b, w->loc, shared, ValueRange{place(w->index(subgroup), i)});
  };
  Value largestAt = w->index(out), sumAt = w->index(out + 1);
  for (auto [i, number] : llvm::enumerate(one.mixed)) {
    Value at = component(values, i);
    if (isFull(values))
      put(number, at);
    else
      w->when(w->isBelow(at, largestAt), [&, number = number] { put(number, at); });
  }
  w->when(isZero(w->lane), [&] {
    put(one.largest, largestAt);
    put(one.sum, sumAt);
  });
  w->barrier();
  Values weights;
  Value largest = get(0, largestAt), sum = real(0);
  for (int64_t s = 1; s < subgroupsOfBlock; ++s)
    largest = larger(largest, get(s, largestAt));
  for (int64_t s = 0; s < subgroupsOfBlock; ++s) {
    weights.push_back(weightOf(get(s, largestAt), largest));
    sum = multiplyAdd(weights.back(), get(s, sumAt), sum);
  }
  Value head = w->add(by(part, heads), w->index(h)), start = partialAt(split, head);
  w->when(w->isBelow(head, w->index(repeat)), [&] {
    w->loop(w->thread, w->index(out), w->index(w->threads), [&](Value i) {
      Value mixed = real(0);
      for (auto [s, weight] : llvm::enumerate(weights))
        mixed = multiplyAdd(weight, get(s, i), mixed);
      w->store(mixed, partial, w->add(start, i));
    });
    w->when(isZero(w->thread), [&] {
      w->store(largest, partial, w->add(start, largestAt));
      w->store(sum, partial, w->add(start, sumAt));
    });
  });
  w->barrier();
}

WrittenKernel AttentionWriter::writeParts(gpu::GPUModuleOp module, StringRef name,
                                          const GpuTarget &target) {
  KernelWriter writer(module, name, op.getLoc(), subgroupsOfBlock * lanes, target);
  w = &writer;
  auto space = gpu::AddressSpaceAttr::get(w->b.getContext(), gpu::AddressSpace::Workgroup);
  auto type = MemRefType::get({subgroupsOfBlock * (out + 2)}, w->b.getF32Type(),
                              MemRefLayoutAttrInterface(), space);
  Value shared = w->function.addWorkgroupAttribution(type, w->loc);
  Values at = w->split(w->block, {fixedExtent(splits), fixedExtent(groups), fixedExtent(parts)});
  split = at[0], group = at[1], part = at[2];
  Value slots = w->number(row.loops[Slot]);
  SmallVector<Values> queries = readQueries();
  Running none{real(-INFINITY), real(0), Values(values.perLane, real(0))};
  Values all = pack(SmallVector<Running>(heads, none));
  Value step = w->index(ahead * splits * subgroupsOfBlock);
  all = w->loop(firstSlot(slots), slots, step, all, [&](Value first, ValueRange before) {
    SmallVector<Running> running = unpack(before);
    addSlots(first, slots, queries, running);
    return pack(running);
  });
  for (auto [h, one] : llvm::enumerate(unpack(all)))
    joinSubgroups(h, one, shared);
  int64_t blocks = splits * groups * parts;
  w->finish(blocks);
  return {w->function, w->roots, blocks, w->threads};
}

//===----------------------------------------------------------------------===//
// The second launch
//===----------------------------------------------------------------------===//

WrittenKernel AttentionWriter::writeJoin(gpu::GPUModuleOp module, StringRef name,
                                         const GpuTarget &target) {
  KernelWriter writer(module, name, op.getLoc(), threadsOfJoin, target);
  w = &writer;
  auto space = gpu::AddressSpaceAttr::get(w->b.getContext(), gpu::AddressSpace::Workgroup);
  auto type = MemRefType::get({splits}, w->b.getF32Type(), MemRefLayoutAttrInterface(), space);
  Value shared = w->function.addWorkgroupAttribution(type, w->loc);
  Values at = w->split(w->block, {fixedExtent(groups), fixedExtent(repeat)});
  group = at[0];
  Value head = at[1], none = real(-INFINITY);
  auto get = [&](Value split, Value i) {
    return w->load(partial, w->add(partialAt(split, head), i));
  };
  // Every subgroup computes the same sums over the splits.
  auto overSplits = [&](Value start, llvm::function_ref<Value(Value, Value)> body) {
    return w->loop(w->lane, w->index(splits), w->index(lanes), start,
                   [&](Value s, ValueRange sum) { return Values{body(s, sum[0])}; })[0];
  };
  Value largest = largestOfLanes(
      overSplits(none, [&](Value s, Value sum) { return larger(sum, get(s, w->index(out))); }));
  Values beside;
  if (op.getSinks())
    beside.push_back(read(operand(op.getSinksMutable()), indices(head, w->index(0))));
  if (op.getOwnScores())
    beside.push_back(read(operand(op.getOwnScoresMutable()), indices(head, w->index(0))));
  for (Value score : beside)
    largest = larger(largest, score);
  Value total = sumOfLanes(overSplits(real(0), [&](Value s, Value sum) {
    return multiplyAdd(weightOf(get(s, w->index(out)), largest), get(s, w->index(out + 1)), sum);
  }));
  for (Value score : beside)
    total = plus(total, weightOf(score, largest));
  auto share = [&](Value score) -> Value {
    return arith::DivFOp::create(w->b, w->loc, weightOf(score, largest), total);
  };
  w->loop(w->thread, w->index(splits), w->index(w->threads), [&](Value s) {
    memref::StoreOp::create(w->b, w->loc, share(get(s, w->index(out))), shared, ValueRange{s});
  });
  w->barrier();
  w->loop(w->thread, w->index(out), w->index(w->threads), [&](Value i) {
    Value mixed = w->loop(w->index(0), w->index(splits), w->index(splitsAhead), real(0),
                          [&](Value first, ValueRange sum) {
                            Values numbers;
                            Value mixed = sum[0];
                            for (int64_t s = 0; s < splitsAhead; ++s)
                              numbers.push_back(get(w->add(first, w->index(s)), i));
                            for (auto [s, number] : llvm::enumerate(numbers)) {
                              Value of = w->add(first, w->index(s));
                              Value weight = memref::LoadOp::create(w->b, w->loc, shared, of);
                              mixed = multiplyAdd(weight, number, mixed);
                            }
                            return Values{mixed};
                          })[0];
    Values place = indices(head, w->index(0));
    place[Out] = i;
    if (op.getOwnValues())
      mixed =
          multiplyAdd(share(beside.back()), read(operand(op.getOwnValuesMutable()), place), mixed);
    const Access &target = *row.accesses.back();
    w->store(mixed, target.view.root, w->at(target, place));
  });
  w->finish(groups * repeat);
  return {w->function, w->roots, groups * repeat, w->threads};
}

WrittenAttention gpu_lowering::writeAttention(gpu::GPUModuleOp module, StringRef name,
                                              const Step &step, const GpuTarget &target) {
  AttentionWriter writer(step.ops.front(), target);
  WrittenKernel parts = writer.writeParts(module, name, target);
  return {parts, writer.writeJoin(module, (name + "_join").str(), target), writer.bytesBetween()};
}
