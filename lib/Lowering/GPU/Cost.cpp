#include "lib/Lowering/GPU/Cost.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

using CostHelper = kernel::KernelDialect::CostAttrHelper;

namespace {

/// The elements of a buffer that an access touches, in a normal form, so that equal sets compare
/// equal: loops that do not move the access are left out, and loops that continue each other are
/// merged.
struct Footprint {
  Extent offset;
  SmallVector<std::pair<Extent, Extent>> loops; ///< (step, size), the largest step first
  Extent count = fixedExtent(1);

  bool operator==(const Footprint &o) const { return offset == o.offset && loops == o.loops; }

  static std::optional<Footprint> of(const Access &access, ArrayRef<Extent> sizes) {
    Footprint made;
    made.offset = access.offset;
    for (auto [step, size] : llvm::zip(access.steps, sizes)) {
      if (step == Extent() || size == fixedExtent(1))
        continue;
      auto count = product(made.count, size);
      if (!count)
        return std::nullopt;
      made.count = *count;
      made.loops.push_back({step, size});
    }
    llvm::sort(made.loops,
               [](const auto &a, const auto &b) { return a.first.at(1, 1) > b.first.at(1, 1); });
    for (size_t i = made.loops.size(); i-- > 1;) {
      auto &[outer, outerSize] = made.loops[i - 1];
      auto &[inner, innerSize] = made.loops[i];
      auto whole = product(inner, innerSize), size = product(outerSize, innerSize);
      if (!whole || !size || !(*whole == outer))
        continue;
      made.loops[i - 1] = {inner, *size};
      made.loops.erase(made.loops.begin() + i);
    }
    return made;
  }
};

/// What a launch reads and writes of one buffer. The model assumes that a launch's caches hold
/// everything it has touched: nothing is read twice, and what it wrote is not read from memory.
struct Traffic {
  SmallVector<Footprint> reads, writes;
  Extent read, written; ///< in elements

  void addRead(const Footprint &f, const Extent &all) {
    if (llvm::is_contained(reads, f) || llvm::is_contained(writes, f))
      return;
    reads.push_back(f);
    Extent more = f.count;
    if (!writes.empty())
      more = isAtMost(written, more) ? more + written * -1 : Extent();
    read = atMost(read + more, all);
  }
  void addWrite(const Footprint &f, const Extent &all) {
    if (llvm::is_contained(writes, f))
      return;
    writes.push_back(f);
    written = atMost(written + f.count, all);
  }

private:
  static Extent atMost(const Extent &count, const Extent &all) {
    return isAtMost(count, all) ? count : all;
  }
};

/// Counts the traffic of a launch's ops, one after the other.
class Counter {
public:
  bool add(const RowOp &row, bool readsResults) {
    for (auto [i, access] : llvm::enumerate(row.accesses)) {
      if (!access)
        continue;
      auto f = Footprint::of(*access, row.loops);
      if (!f)
        return false;
      bool isWritten = int64_t(i) >= row.inputs;
      if (!isWritten || readsResults)
        buffers[access->view.root].addRead(*f, allOf(access->view.root));
      if (isWritten)
        buffers[access->view.root].addWrite(*f, allOf(access->view.root));
    }
    auto points = pointsOf(row);
    if (!points)
      return false;
    for (const Gather &gather : row.gathered)
      addGather(gather, row, *points);
    if (row.support)
      for (const View &view : row.support->memory) {
        Extent all = allOf(view.root);
        buffers[view.root].addRead({view.offset, {}, all}, all);
        operations = operations + all;
      }
    operations = operations + *points * (row.selected ? 2 : operationsOf(row));
    return true;
  }

  GpuCost cost() const {
    GpuCost cost;
    cost.operations = operations;
    for (const auto &[root, traffic] : buffers) {
      auto matrix = quantizedOf(root);
      Extent &bytes = cost.*memberOf(matrix ? matrix.getMemory() : root);
      if (matrix) { // of which all is read, or a part that is as large for each number
        int64_t all = cast<MemRefType>(matrix.getMemory().getType()).getNumElements();
        bytes = bytes + fixedExtent(llvm::divideCeil(traffic.read.fixed * all, allOf(root).fixed));
        continue;
      }
      Type element = cast<MemRefType>(root.getType()).getElementType();
      int64_t width = (element.getIntOrFloatBitWidth() + 7) / 8;
      bytes = bytes + (traffic.read + traffic.written) * width;
    }
    return cost;
  }

private:
  /// A gather may read anywhere, so one element is counted for each point of the loops.
  void addGather(const Gather &gather, const RowOp &row, const Extent &points) {
    const View &view = gather.access.view;
    if (gather.length == fixedExtent(1))
      if (auto f = Footprint::of(gather.access, row.loops))
        return buffers[view.root].addRead(*f, allOf(view.root));
    buffers[view.root].addRead({view.offset, {{Extent(), points}}, points}, allOf(view.root));
  }

  static Extent allOf(Value root) { return *gpu_lowering::elementsOf(root); }

  static std::optional<Extent> pointsOf(const RowOp &row) {
    std::optional<Extent> points = fixedExtent(1);
    size_t loops = isa<kernel::AttentionOp>(row.op) ? slotLoops : row.loops.size();
    for (const Extent &size : ArrayRef(row.loops).take_front(loops))
      points = points ? product(*points, size) : points;
    return points;
  }

  /// The loops of attention over its slots and what is outside of them.
  static constexpr size_t slotLoops = 4;

  /// Floating-point operations at one point of a linalg op or of attention. Ops that can have
  /// fast-math flags are floating-point arithmetic; one with n operands counts as n − 1 operations,
  /// and at least as one.
  static int64_t operationsOf(const RowOp &row) {
    if (isa<kernel::ContractOp>(row.op))
      return 2;
    int64_t count = 0;
    Block *body = nullptr;
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(row.op))
      body = linalgOp.getBlock();
    if (auto attention = dyn_cast<kernel::AttentionOp>(row.op)) { // the products, the softmax's sum
      body = &attention.getScore().front();
      for (const Extent &size : ArrayRef(row.loops).drop_front(slotLoops))
        count += 2 * size.fixed + 1;
    }
    if (!body)
      return 0;
    for (Operation &nested : *body)
      if (isa<arith::ArithFastMathInterface>(nested) && !isa<CastOpInterface>(nested))
        count += std::max<int64_t>(1, nested.getNumOperands() - 1);
    return count;
  }

  static Extent GpuCost::*memberOf(Value root) {
    static constexpr std::pair<KernelArgKind, Extent GpuCost::*> members[] = {
        {KernelArgKind::Param, &GpuCost::weights}, {KernelArgKind::Bank, &GpuCost::weights},
        {KernelArgKind::State, &GpuCost::cache},   {KernelArgKind::Slots, &GpuCost::cache},
        {KernelArgKind::Store, &GpuCost::patch},   {KernelArgKind::Load, &GpuCost::patch}};
    kernel::ArgAttr role = kernel::roleOf(root);
    for (auto [kind, member] : members)
      if (role && role.getKind() == kind)
        return member;
    return &GpuCost::activations;
  }

  llvm::MapVector<Value, Traffic> buffers;
  Extent operations;
};

} // namespace

std::optional<GpuCost> gpu_lowering::costOf(const Step &step) {
  Counter counter;
  for (const RowOp &row : step.ops) {
    bool isContraction = step.kind == Step::Contraction || step.kind == Step::Tiles;
    bool readsResults = isContraction ? step.accumulates : row.hasReduction();
    if (!counter.add(row, readsResults))
      return std::nullopt;
  }
  return counter.cost();
}

void gpu_lowering::setCost(Operation *launch, const GpuCost &cost) {
  MLIRContext *context = launch->getContext();
  auto numbers = [&](const Extent &e) {
    return e == Extent() ? DenseI64ArrayAttr()
                         : DenseI64ArrayAttr::get(context, {e.fixed, e.visible[0], e.visible[1]});
  };
  CostHelper(context).setAttr(
      launch, kernel::CostAttr::get(context, numbers(cost.weights), numbers(cost.cache),
                                    numbers(cost.patch), numbers(cost.activations),
                                    numbers(cost.operations)));
}

std::optional<GpuCost> gpu_lowering::getCost(Operation *launch) {
  kernel::CostAttr cost = CostHelper(launch->getContext()).getAttr(launch);
  if (!cost)
    return std::nullopt;
  auto extent = [](DenseI64ArrayAttr numbers) {
    return numbers ? Extent{numbers[0], {numbers[1], numbers[2]}} : Extent();
  };
  return GpuCost{extent(cost.getWeights()), extent(cost.getCache()), extent(cost.getPatch()),
                 extent(cost.getActivations()), extent(cost.getOperations())};
}
