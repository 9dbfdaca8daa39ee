// Kernels of groups of ops other than contractions (Steps.h).
#include "lib/Lowering/GPU/Kernels.h"
#include "lib/Lowering/GPU/RowPasses.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

static constexpr int64_t blockOfRow = 512, blockOfHead = 256, blockOfPoints = 256;

namespace {

/// How two partial results of a reduction are combined; null where the reduction must run in order.
struct Combiner {
  Operation *op = nullptr;
  TypedAttr neutral;

  static Combiner of(linalg::LinalgOp op) {
    SmallVector<Operation *> found;
    if (op.getNumDpsInits() != 1 || !matchReduction(op.getRegionOutputArgs(), 0, found) ||
        found.size() != 1)
      return {};
    auto neutral = arith::getNeutralElement(found[0]);
    return neutral ? Combiner{found[0], *neutral} : Combiner{};
  }
  Value operator()(KernelWriter &w, Value x, Value y) const {
    Operation *copy = w.b.clone(*op);
    copy->setOperands({x, y});
    return copy->getResult(0);
  }
};

using Values = SmallVector<Value>;

/// Writes one op of a group, at given indices of the outer loops.
class OpWriter {
public:
  OpWriter(KernelWriter &w, const RowOp &row, ArrayRef<Value> outer) : w(w), row(row) {
    indices.append(outer.begin(), outer.end());
    indices.resize(row.loops.size());
    for (size_t d = outer.size(); d < row.loops.size(); ++d)
      (row.isReduction[d] ? reduced : parallel).push_back(d);
  }

  /// The threads of a block divide the loops among them.
  void shared() {
    if (row.support)
      return support();
    if (reduced.empty())
      return elementwise();
    Value count = size(parallel);
    Combiner combiner = Combiner::of(cast<linalg::LinalgOp>(row.op));
    bool isOfFew = row.isShortSum() && !isOne(parallel);
    if (!combiner.op || reduced.front() < parallelBack() || isOfFew)
      return w.loop(w.thread, count, w.index(w.threads), [&](Value p) {
        enter(parallel, p);
        inOrder();
      });
    auto combine = [&](Value x, Value y) { return combiner(w, x, y); };
    if (isOne(parallel)) {
      enter(parallel, w.index(0));
      Value sum = w.combineBlock(partial(combiner, w.thread, w.threads), combine);
      w.when(isFirst(w.thread), [&] { addTo(combiner, sum); });
      return;
    }
    w.loop(w.subgroup, count, w.index(w.threads / w.lanes), [&](Value p) {
      enter(parallel, p);
      Value sum = w.combineLanes(partial(combiner, w.lane, w.lanes), combine);
      w.when(isFirst(w.lane), [&] { addTo(combiner, sum); });
    });
  }

  /// The op reduces what `map` computes, from the value of `fill` on. Returns false, and writes
  /// nothing, where the reduction must run in order.
  bool sharedWith(OpWriter &map, const RowOp &fill) {
    Combiner combiner = Combiner::of(cast<linalg::LinalgOp>(row.op));
    if (!combiner.op || w.threads == w.lanes)
      return false;
    before = &map;
    Value sum = w.combineBlock(partial(combiner, w.thread, w.threads),
                               [&](Value x, Value y) { return combiner(w, x, y); });
    w.when(isFirst(w.thread), [&] {
      indices.back() = w.index(0);
      IRMapping outside;
      Value first = w.inside(cast<linalg::FillOp>(fill.op).getInputs().front(), outside);
      write(row.inputs, combiner(w, first, sum));
    });
    return true;
  }

  /// One thread runs the op; all parallel loops are outer ones.
  void alone() {
    if (reduced.empty())
      return atPoint();
    inOrder();
  }
  /// Sets the indices of all parallel loops.
  void enterAll(Value p) { enter(parallel, p); }

private:
  /// How many points, or terms of a sum, a thread computes together, so that their loads are in
  /// flight at the same time.
  int64_t ahead() const {
    constexpr int64_t most = 8, mostOps = 48;
    auto op = dyn_cast<linalg::LinalgOp>(row.op);
    int64_t ops = op ? llvm::range_size(*op.getBlock()) : 1;
    return std::clamp<int64_t>(mostOps / ops, 1, most);
  }
  /// Calls `body` with the numbers of points that belong to number `from` of `step`, some at a
  /// time, and with the values that the call before has returned.
  template <typename Body>
  Values inBatches(const Extent &count, Value from, int64_t step, Values values, Body body) {
    int64_t whole = count.isFixed() ? count.fixed / step : 0, batch = std::min(ahead(), whole);
    auto points = [&](Value first, int64_t n) {
      Values points;
      for (int64_t i = 0; i < n; ++i)
        points.push_back(i ? w.add(first, w.index(i * step)) : first);
      return points;
    };
    if (whole && whole / batch == 1)
      values = body(points(from, batch), values);
    else if (whole)
      values = w.loop(w.index(0), w.index(whole / batch), w.index(1), values,
                      [&](Value i, ValueRange before) {
                        Value first = w.add(from, w.times(i, fixedExtent(batch * step)));
                        return body(points(first, batch), Values(before));
                      });
    if (!count.isFixed()) {
      // As many batches as every thread can fill; fewer points than two batches remain.
      batch = std::min<int64_t>(ahead(), 4);
      Value all = arith::DivUIOp::create(w.b, w.loc, w.number(count), w.index(batch * step));
      values = w.loop(w.index(0), all, w.index(1), values, [&](Value i, ValueRange before) {
        Value first = w.add(from, w.times(i, fixedExtent(batch * step)));
        return body(points(first, batch), Values(before));
      });
      from = w.add(from, w.times(all, fixedExtent(batch * step)));
    }
    int64_t rest = whole ? whole % batch : 0, done = (whole - rest) * step;
    if (rest)
      values = body(points(w.add(from, w.index(done)), rest), values);
    if (count == fixedExtent(whole * step))
      return values;
    return w.loop(w.add(from, w.index(whole * step)), w.number(count), w.index(step), values,
                  [&](Value p, ValueRange before) { return body({p}, Values(before)); });
  }
  void elementwise() {
    auto all = wholeSize(parallel);
    auto batch = [&](ArrayRef<Value> points, const Values &) {
      computeAll(points);
      return Values();
    };
    if (all)
      inBatches(*all, w.thread, w.threads, {}, batch);
    else
      w.loop(w.thread, size(parallel), w.index(w.threads), [&](Value p) { batch({p}, {}); });
  }

  /// Computes and writes some points, and returns the results. All loads come first.
  SmallVector<Values> computeAll(ArrayRef<Value> points) {
    SmallVector<Values> results, places;
    for (Value p : points) {
      enter(parallel, p);
      places.push_back(indices);
      results.push_back(isa<memref::CopyOp>(row.op) ? Values{read(0)} : body(accumulators()));
    }
    for (auto [result, place] : llvm::zip(results, places)) {
      indices = place;
      writeAll(result);
    }
    return results;
  }

  void support() {
    if (row.loops.empty())
      return writeSupport(w, *row.support, Value());
    if (parallel.empty())
      return writeSupport(w, *row.support, indices[0]);
    w.loop(w.index(0), size(parallel), w.index(1),
           [&](Value r) { writeSupport(w, *row.support, r); });
  }
  size_t parallelBack() const { return parallel.empty() ? 0 : parallel.back(); }

  SmallVector<Extent> sizes(ArrayRef<size_t> loops) {
    return llvm::map_to_vector(loops, [&](size_t d) { return row.loops[d]; });
  }
  bool isOne(ArrayRef<size_t> loops) {
    return llvm::all_of(sizes(loops), [](const Extent &e) { return e == fixedExtent(1); });
  }
  /// None with the visible tokens of both runs, where the kernel multiplies.
  std::optional<Extent> wholeSize(ArrayRef<size_t> loops) {
    std::optional<Extent> all = fixedExtent(1);
    for (const Extent &size : sizes(loops))
      all = all ? product(*all, size) : all;
    return all;
  }
  Value size(ArrayRef<size_t> loops) {
    if (auto all = wholeSize(loops))
      return w.number(*all);
    Value count = w.index(1);
    for (const Extent &each : sizes(loops))
      count = w.times(count, each);
    return count;
  }
  void enter(ArrayRef<size_t> loops, Value flat) {
    for (auto [d, index] : llvm::zip(loops, w.split(flat, sizes(loops))))
      indices[d] = index;
  }
  Value isFirst(Value i) {
    return arith::CmpIOp::create(w.b, w.loc, arith::CmpIPredicate::eq, i, w.index(0));
  }

  Value read(size_t operand) {
    if (known && operand == 0)
      return known;
    const Access &access = *row.accesses[operand];
    return w.load(access.view.root, w.at(access, indices));
  }
  void write(size_t operand, Value value) {
    const Access &access = *row.accesses[operand];
    w.store(value, access.view.root, w.at(access, indices));
  }

  /// Clones the op's region at the current indices, with the given accumulators.
  SmallVector<Value> body(ValueRange accumulators) {
    auto op = cast<linalg::LinalgOp>(row.op);
    Block *region = op.getBlock();
    IRMapping map;
    for (int64_t i = 0; i < row.inputs; ++i)
      if (!region->getArgument(i).use_empty())
        map.map(region->getArgument(i),
                row.accesses[i] ? read(i) : w.inside(op->getOperand(i), map));
    for (auto [i, accumulator] : llvm::enumerate(accumulators))
      map.map(region->getArgument(row.inputs + i), accumulator);
    SmallVector<Value> results;
    for (Operation &nested : *region)
      if (auto index = dyn_cast<linalg::IndexOp>(nested))
        map.map(index.getResult(), indices[index.getDim()]);
      else if (isa<linalg::YieldOp>(nested))
        results = llvm::map_to_vector(nested.getOperands(),
                                      [&](Value value) { return w.inside(value, map); });
      else
        w.copy(nested, map);
    return results;
  }

  SmallVector<Value> accumulators() {
    SmallVector<Value> values;
    Block *region = cast<linalg::LinalgOp>(row.op).getBlock();
    for (size_t i = row.inputs; i < row.accesses.size(); ++i)
      values.push_back(region->getArgument(i).use_empty() && reduced.empty() ? Value() : read(i));
    return values;
  }
  void writeAll(ValueRange values) {
    for (auto [i, value] : llvm::enumerate(values))
      write(row.inputs + i, value);
  }

  void atPoint() {
    if (isa<memref::CopyOp>(row.op))
      return write(1, read(0));
    writeAll(body(accumulators()));
  }

  /// Computes the reduction of one point in order.
  void inOrder() {
    writeAll(w.loop(w.index(0), size(reduced), w.index(1), accumulators(),
                    [&](Value r, ValueRange sums) {
                      enter(reduced, r);
                      return body(sums);
                    }));
  }
  /// The partial result of steps from, from + step, … of the reduction.
  Value partial(const Combiner &combiner, Value from, int64_t step) {
    Values none{arith::ConstantOp::create(w.b, w.loc, combiner.neutral)};
    auto add = [&](ArrayRef<Value> terms, Values sums) {
      SmallVector<Values> computed;
      if (before)
        computed = before->computeAll(terms);
      for (auto [i, r] : llvm::enumerate(terms)) {
        enter(reduced, r);
        known = before ? computed[i][0] : Value();
        sums = body(sums);
      }
      return sums;
    };
    if (auto all = wholeSize(reduced))
      return inBatches(*all, from, step, none, add)[0];
    return w.loop(from, size(reduced), w.index(step), none,
                  [&](Value r, ValueRange sums) { return add({r}, Values(sums)); })[0];
  }
  void addTo(const Combiner &combiner, Value sum) {
    for (size_t d : reduced)
      indices[d] = w.index(0); // the result does not depend on this index
    write(row.inputs, combiner(w, read(row.inputs), sum));
  }

  KernelWriter &w;
  const RowOp &row;
  OpWriter *before = nullptr; ///< the op that computes what this one reduces
  Value known;                ///< which its first operand is, instead of the number in memory
  Values indices;
  SmallVector<size_t> parallel, reduced;
};

} // namespace

static WrittenKernel writePoints(gpu::GPUModuleOp module, StringRef name, const Step &step,
                                 const GpuTarget &target) {
  const RowOp &first = step.ops.front();
  int64_t count = 1;
  for (auto [size, reduction] : llvm::zip(first.loops, first.isReduction))
    count *= reduction ? 1 : size.fixed;
  KernelWriter w(module, name, first.op->getLoc(), blockOfPoints, target);
  Value point = w.add(arith::MulIOp::create(w.b, w.loc, w.block, w.index(w.threads)), w.thread);
  w.when(w.isBelow(point, w.index(count)), [&] {
    for (const RowOp &row : step.ops) {
      OpWriter writer(w, row, {});
      writer.enterAll(point);
      writer.alone();
    }
  });
  int64_t blocks = (count + w.threads - 1) / w.threads;
  w.finish(blocks);
  return {w.function, w.roots, blocks, w.threads};
}

WrittenKernel gpu_lowering::writeRows(gpu::GPUModuleOp module, StringRef name, const Step &step,
                                      const GpuTarget &target) {
  if (step.kind == Step::Points)
    return writePoints(module, name, step, target);
  int64_t blocks = 1;
  SmallVector<Extent> outer;
  for (int64_t size : step.outer) {
    blocks *= size;
    outer.push_back(fixedExtent(size));
  }
  KernelWriter w(module, name, step.ops.front().op->getLoc(),
                 blocks == 1 ? blockOfRow : blockOfHead, target);
  SmallVector<Value> at = w.split(w.block, outer);
  Hazards hazards;
  for (size_t i = 0; i < step.ops.size(); ++i) {
    const RowOp &row = step.ops[i];
    if (hazards.meets(row))
      w.barrier();
    OpWriter writer(w, row, at);
    auto pass = passOf(ArrayRef(step.ops).drop_front(i), outer.size());
    if (pass && OpWriter(w, *pass->reduction, at).sharedWith(writer, *pass->fill)) {
      hazards.passed(*pass->reduction);
      i += 2;
    } else {
      writer.shared();
    }
  }
  w.finish(blocks);
  return {w.function, w.roots, blocks, w.threads};
}
