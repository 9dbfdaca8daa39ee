#include "lib/Lowering/GPU/Steps.h"
#include "lib/Lowering/CPU/Remarks.h"
#include "lib/Lowering/GPU/KeepApart.h"
#include "lib/Lowering/GPU/OwnKernels.h"
#include "lib/Lowering/GPU/ReadOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

namespace {

/// Groups the ops of a kernel of `rows` rows into steps.
class Grouper {
public:
  explicit Grouper(int64_t rows) : rows(rows) {}

  std::vector<Step> stepsOf(std::vector<RowOp> ops) const;

private:
  bool isLong(const RowOp &row) const;
  bool hasRows(const RowOp &row) const;
  bool joins(const Step &step, const RowOp &row) const;
  bool joinsRows(const Step &step, const RowOp &row) const;
  bool isCommon(const Step &step) const;
  void add(std::vector<Step> &steps, RowOp row, bool sets) const;
  void sink(std::vector<Step> &steps) const;
  Step startOf(RowOp row) const;
  Step startOfRows(RowOp row) const;
  bool isSpreadable(const Step &step) const;

  int64_t rows;
};

} // namespace

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

/// From this many points on, an elementwise op is spread over the whole device: `longAlone` where
/// it is a launch anyway, `longPoints` where spreading it costs an additional launch, since it
/// could have run in a block with its neighbours.
static constexpr int64_t longAlone = 4096, longPoints = 10240;
/// The same threshold where each point is a sum along columns of a matrix, or a short sum. In a
/// kernel of many rows, the sums must also be as long as `longColumns`.
static constexpr int64_t longSums = 256, longColumns = 32;

bool Grouper::isLong(const RowOp &row) const {
  int64_t points = 1, sum = 1;
  if (row.support)
    return false;
  for (auto [size, reduction] : llvm::zip(row.loops, row.isReduction)) {
    if (!size.isFixed())
      return false;
    (reduction ? sum : points) *= size.fixed;
  }
  if (!row.hasReduction())
    return rows == 1 && points >= longPoints;
  return points >= longSums && (!row.isReduction.back() || row.isShortSum()) &&
         (rows == 1 || sum >= longColumns);
}

/// The sizes of the leading loops over which the op could be divided into blocks.
static SmallVector<int64_t> leading(const RowOp &row) {
  SmallVector<int64_t> sizes;
  for (auto [size, reduction] : llvm::zip(row.loops, row.isReduction)) {
    if (!size.isFixed() || reduction)
      break;
    sizes.push_back(size.fixed);
  }
  return sizes;
}

static bool grows(const RowOp &row) {
  return llvm::any_of(row.loops, [](const Extent &size) { return !size.isFixed(); });
}

static bool hasOuter(const RowOp &row, ArrayRef<int64_t> outer) {
  SmallVector<int64_t> own = leading(row);
  return own.size() >= outer.size() && ArrayRef(own).take_front(outer.size()) == outer;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

static SmallVector<int64_t> fixedSizes(const RowOp &row) {
  return llvm::map_to_vector(row.loops, [](const Extent &size) { return size.fixed; });
}

/// The most results of contractions that are one launch.
static constexpr int64_t mostJoined = 1 << 16;

/// The most buffers that a kernel uses, besides the numbers of visible tokens. Vulkan guarantees
/// only four, but every device that is fast enough for this work has 32 or more.
static constexpr size_t mostBuffers = 31;

static bool hasRoom(ArrayRef<RowOp> ops) {
  llvm::DenseSet<Value> buffers;
  for (const RowOp &each : ops)
    buffers.insert_range(each.roots());
  return buffers.size() <= mostBuffers;
}

/// Whether the order of the op and the step must be kept.
static bool conflict(const Step &step, const RowOp &row) {
  return llvm::any_of(step.ops, [&](const RowOp &other) {
    auto needs = [](const RowOp &a, const RowOp &b) {
      return llvm::any_of(b.roots(), [&](Value root) { return a.writes(root); });
    };
    return needs(other, row) || needs(row, other);
  });
}

/// Whether `row` is a contraction of the vectors of a step of contractions.
static bool sharesVectors(const Step &step, const RowOp &row) {
  const RowOp &first = step.ops.front();
  if (step.kind != Step::Contraction || first.selected || row.selected)
    return false;
  const Access &a = *first.accesses[1], &b = *row.accesses[1];
  int64_t results = row.loops[1].fixed;
  for (const RowOp &other : step.ops)
    results += other.loops[1].fixed;
  return a.view.root == b.view.root && a.offset == b.offset && a.steps == b.steps &&
         first.loops[0] == row.loops[0] && first.loops[2] == row.loops[2] && results <= mostJoined;
}

/// Whether `row` can become another op of `step`.
bool Grouper::joins(const Step &step, const RowOp &row) const {
  std::vector<RowOp> all(step.ops);
  all.push_back(row);
  if (!hasRoom(all))
    return false;
  if (ownKindOf(row, rows) == Step::Contraction)
    return sharesVectors(step, row) && !conflict(step, row);
  if ((step.kind != Step::Rows && step.kind != Step::Points) || ownKindOf(row, rows))
    return false;
  if (step.kind == Step::Points)
    return (rows > 1 || isLong(row)) && !row.hasReduction() && !step.ops.front().hasReduction() &&
           row.loops == step.ops.front().loops && keepApart(all, fixedSizes(row));
  if (rows > 1)
    return joinsRows(step, row) && keepApart(all, step.outer);
  if (!step.outer.empty())
    return hasOuter(row, step.outer) && keepApart(all, step.outer);
  return !isLong(row) && !(grows(row) && !leading(row).empty());
}

/// Whether `row` can join in a kernel of many rows. A group that runs as a single block holds only
/// ops that do not depend on the row. An op whose inner loops grow with the visible tokens is
/// divided into more blocks than one for each row.
bool Grouper::joinsRows(const Step &step, const RowOp &row) const {
  if (step.outer.empty())
    return isCommon(step) && isCommon(startOf(row));
  return !isLong(row) && hasOuter(row, step.outer) &&
         !(grows(row) && leading(row).size() > step.outer.size());
}

/// Whether a step of a kernel of many rows does not depend on the row.
bool Grouper::isCommon(const Step &step) const {
  return rows > 1 && step.kind == Step::Rows && step.outer.empty() &&
         llvm::none_of(step.ops, [&](const RowOp &row) { return row.support || hasRows(row); });
}

/// Adds an op to the last group that it can join. This group may stand before steps that are
/// independent of the op, but with a single row not if it is one block, which would take longer. A
/// group of many rows' kernel that does not depend on the row starts as early as possible.
void Grouper::add(std::vector<Step> &steps, RowOp row, bool sets) const {
  size_t place = steps.size();
  for (size_t i = steps.size(); i-- > 0;) {
    bool isBlock = rows == 1 && steps[i].kind == Step::Rows && i + 1 < steps.size();
    if (!isBlock && joins(steps[i], row) &&
        (steps[i].kind != Step::Contraction || steps[i].accumulates == !sets)) {
      steps[i].ops.push_back(std::move(row));
      return;
    }
    if (conflict(steps[i], row))
      break;
    place = i;
  }
  Step step = startOf(std::move(row));
  step.accumulates = !sets;
  steps.insert(isCommon(step) ? steps.begin() + place : steps.end(), std::move(step));
}

/// Merges groups into a later one where no step between them depends on their order.
void Grouper::sink(std::vector<Step> &steps) const {
  for (size_t i = steps.size(); i-- > 0;) {
    if (steps[i].kind != Step::Rows || steps[i].outer.empty())
      continue;
    for (size_t j = i + 1; j < steps.size(); ++j) {
      std::vector<RowOp> all(steps[i].ops);
      llvm::append_range(all, steps[j].ops);
      if (steps[j].kind == Step::Rows && steps[j].outer == steps[i].outer && hasRoom(all) &&
          keepApart(all, steps[i].outer)) {
        steps[j].ops = std::move(all);
        steps.erase(steps.begin() + i);
        break;
      }
      if (llvm::any_of(steps[i].ops, [&](const RowOp &row) { return conflict(steps[j], row); }))
        break;
    }
  }
}

Step Grouper::startOf(RowOp row) const {
  Step step{Step::Rows, {}, {}, false};
  bool alone = isLong(row);
  if (auto kind = ownKindOf(row, rows)) {
    step.kind = *kind;
  } else if (alone && (row.hasReduction() || keepApart(row, fixedSizes(row)))) {
    step.kind = Step::Points;
  } else if (rows > 1) {
    return startOfRows(std::move(row));
  } else if (grows(row)) {
    step.outer = leading(row);
    if (!keepApart(row, step.outer))
      step.outer.clear();
  }
  step.ops.push_back(std::move(row));
  return step;
}

/// Whether the first loop goes over the rows, or over the rows of both runs.
bool Grouper::hasRows(const RowOp &row) const {
  SmallVector<int64_t> sizes = leading(row);
  return !sizes.empty() && sizes[0] % rows == 0 && (sizes[0] == rows || row.loops.size() > 1);
}

Step Grouper::startOfRows(RowOp row) const {
  Step step{Step::Rows, {}, leading(row), false};
  if (hasRows(row)) {
    if (!grows(row))
      step.outer.truncate(1);
    while (!step.outer.empty() && !keepApart(row, step.outer))
      step.outer.pop_back();
  } else { // the same for all rows
    step.outer.clear();
  }
  step.ops.push_back(std::move(row));
  return step;
}

/// Whether a group of one block, or of one block for each row, consists only of elementwise ops, so
/// that any block can take a part of it.
bool Grouper::isSpreadable(const Step &step) const {
  if (step.kind != Step::Rows || step.outer.size() > (rows > 1))
    return false;
  const RowOp &first = step.ops.front();
  int64_t points = 1;
  for (const Extent &size : first.loops)
    points *= size.isFixed() ? size.fixed : 0;
  return points >= longAlone &&
         llvm::all_of(step.ops,
                      [&](const RowOp &row) {
                        return !row.support && !row.hasReduction() && row.loops == first.loops;
                      }) &&
         keepApart(step.ops, fixedSizes(first));
}

std::vector<Step> Grouper::stepsOf(std::vector<RowOp> ops) const {
  std::vector<bool> sets(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    sets[i] = ops[i].selected || isa<kernel::AttentionOp>(ops[i].op);
    auto zeros = ownKindOf(ops[i], rows) && !sets[i] ? zerosOf(ops, i) : std::nullopt;
    if (!zeros)
      continue;
    sets[i] = true;
    sets.erase(sets.begin() + *zeros);
    ops.erase(ops.begin() + *zeros);
    --i;
  }

  std::vector<Step> steps;
  for (auto [i, row] : llvm::enumerate(ops))
    add(steps, std::move(row), sets[i]);
  if (rows > 1)
    sink(steps);
  for (Step &step : steps)
    if (isSpreadable(step))
      step.kind = Step::Points;
  return steps;
}

FailureOr<std::vector<Step>> gpu_lowering::stepsOf(func::FuncOp kernel, const GpuTarget &target,
                                                   int64_t rows, std::string &reason) {
  std::vector<RowOp> ops;
  Grouper grouper(rows);
  for (Operation &op : llvm::make_early_inc_range(kernel.getBody().front())) {
    // Addresses, sizes and views are read at their uses.
    if (isMemoryEffectFree(&op) || isa<memref::AllocOp, func::ReturnOp>(op))
      continue;
    auto row = readOp(&op, target, reason);
    if (failed(row)) {
      op.emitWarning() << "kernel '" << kernel.getName() << "' is not carried to " << target.name()
                       << ": " << reason;
      return failure();
    }
    // A contraction without a kernel of its own is treated as a linalg op.
    auto contract = dyn_cast<kernel::ContractOp>(op);
    if (contract && !ownKindOf(*row, rows)) {
      missed(contract, "contraction", whyNone(contract, *row));
      row = readOp(contract.generalize(), target, reason);
    }
    ops.push_back(std::move(*row));
  }
  return grouper.stepsOf(std::move(ops));
}
