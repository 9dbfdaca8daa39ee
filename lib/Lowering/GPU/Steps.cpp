#include "lib/Lowering/GPU/Steps.h"
#include "lib/Lowering/GPU/ReadOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

//===----------------------------------------------------------------------===//
// Contractions, and what only prepares their results
//===----------------------------------------------------------------------===//

bool gpu_lowering::isContraction(const RowOp &row) {
  if (row.selected)
    return true;
  auto op = dyn_cast<linalg::GenericOp>(row.op);
  if (!op || op.getNumLoops() != 3 || op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1)
    return false;
  MLIRContext *context = op.getContext();
  AffineExpr s, m, k;
  bindDims(context, s, m, k);
  auto maps = op.getIndexingMapsArray();
  if (maps[0] != AffineMap::get(3, 0, {m, k}, context) ||
      maps[1] != AffineMap::get(3, 0, {s, k}, context) ||
      maps[2] != AffineMap::get(3, 0, {s, m}, context) || row.isReduction[0] ||
      row.isReduction[1] || !row.isReduction[2])
    return false;
  Type element = cast<MemRefType>(op.getDpsInputs()[0].getType()).getElementType();
  bool fixed = llvm::all_of(row.loops, [](const Extent &e) { return e.isFixed(); });
  return fixed && isa<BlockArgument>(op.getDpsInputs()[0]) &&
         (element.isF32() || element.isBF16() || element.isF16()) && row.loops[0].fixed <= 4;
}

/// Whether the op sets all of `root`.
static bool setsAll(const RowOp &row, Value root) {
  if (row.support || row.hasReduction() || row.accesses.empty())
    return false;
  const std::optional<Access> &target = row.accesses.back();
  std::optional<Extent> all = fixedExtent(1);
  for (const Extent &size : row.loops)
    all = all ? product(*all, size) : all;
  auto elements = gpu_lowering::elementsOf(root);
  return target && target->view.root == root && all && elements && *all == *elements &&
         int64_t(row.accesses.size()) == row.inputs + 1;
}

static bool isZeroFill(const RowOp &row) {
  auto fill = dyn_cast<linalg::FillOp>(row.op);
  return fill && matchPattern(fill.getInputs()[0], m_AnyZeroFloat());
}

/// The last op before `end` that touches `root`.
static std::optional<size_t> lastUse(ArrayRef<RowOp> ops, size_t end, Value root) {
  while (end-- > 0)
    if (ops[end].reads(root) || ops[end].writes(root))
      return end;
  return std::nullopt;
}

/// The op that only fills a contraction's result with zeros; none where there is no such.
static std::optional<size_t> zerosOf(ArrayRef<RowOp> ops, size_t contraction) {
  Value root = ops[contraction].accesses[2]->view.root;
  auto last = lastUse(ops, contraction, root);
  if (!last || !setsAll(ops[*last], root))
    return std::nullopt;
  bool zeros = isZeroFill(ops[*last]);
  if (isa<memref::CopyOp>(ops[*last].op)) {
    Value source = ops[*last].accesses[0]->view.root;
    auto made = lastUse(ops, *last, source);
    zeros = made && isZeroFill(ops[*made]) && setsAll(ops[*made], source);
  }
  return zeros ? last : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

/// From how many points on an elementwise op is spread over the device: where it stands alone, and
/// where that takes a launch more than it would in a block with its neighbours.
static constexpr int64_t longAlone = 4096, longPoints = 10240;
/// The same where each point is a sum along columns of a matrix.
static constexpr int64_t longSums = 256;

static bool isLong(const RowOp &row) {
  int64_t points = 1;
  if (row.support)
    return false;
  for (auto [size, reduction] : llvm::zip(row.loops, row.isReduction)) {
    if (!size.isFixed())
      return false;
    points *= reduction ? 1 : size.fixed;
  }
  if (!row.hasReduction())
    return points >= longPoints;
  return points >= longSums && !row.isReduction.back();
}

/// The sizes of the leading loops that a block each may have.
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
  if (row.support)
    return false;
  SmallVector<int64_t> own = leading(row);
  return own.size() >= outer.size() && ArrayRef(own).take_front(outer.size()) == outer;
}

/// Whether one index of the outer loops touches, of what the ops write, nothing that another does.
static bool keepApart(ArrayRef<RowOp> ops, ArrayRef<int64_t> outer) {
  SmallVector<size_t> wide; // outer loops of more than one step
  for (auto [d, size] : llvm::enumerate(outer))
    if (size > 1)
      wide.push_back(d);
  if (wide.empty())
    return true;
  SmallVector<Value> written;
  for (const RowOp &row : ops) {
    if (row.support)
      return false;
    for (size_t i = row.inputs; i < row.accesses.size(); ++i)
      written.push_back(row.accesses[i]->view.root);
  }
  for (Value root : written) {
    std::optional<SmallVector<Extent>> common;
    for (const RowOp &row : ops) {
      if (llvm::any_of(row.gathered, [&](const View &v) { return v.root == root; }))
        return false;
      for (const std::optional<Access> &access : row.accesses) {
        if (!access || access->view.root != root)
          continue;
        SmallVector<Extent> steps;
        for (size_t d : wide)
          steps.push_back(access->steps[d]);
        if (common && *common != steps)
          return false;
        common = steps;
        Extent end = access->offset;
        for (size_t d = outer.size(); d < row.loops.size(); ++d) {
          auto length = product(access->steps[d], row.loops[d] + fixedExtent(-1));
          if (!length)
            return false;
          end = end + *length;
        }
        if (!isLess(end, steps.back()))
          return false;
        for (size_t d = 0; d + 1 < wide.size(); ++d)
          if (!isAtMost(steps[d + 1] * outer[wide[d + 1]], steps[d]))
            return false;
      }
    }
  }
  return true;
}

static SmallVector<int64_t> fixedSizes(const RowOp &row) {
  return llvm::map_to_vector(row.loops, [](const Extent &size) { return size.fixed; });
}

/// The buffers of a kernel, beside the numbers of visible tokens. Vulkan's devices need have room
/// for four; all that compute well have it for 32 or more.
static constexpr size_t mostBuffers = 31;

/// Whether `row` can be one more op of `step`.
static bool joins(const Step &step, const RowOp &row) {
  if (step.kind == Step::Contraction || isContraction(row))
    return false;
  std::vector<RowOp> all(step.ops);
  all.push_back(row);
  llvm::DenseSet<Value> buffers;
  for (const RowOp &each : all)
    buffers.insert_range(each.roots());
  if (buffers.size() > mostBuffers)
    return false;
  if (step.kind == Step::Points)
    return isLong(row) && !row.hasReduction() && !step.ops.front().hasReduction() &&
           row.loops == step.ops.front().loops && keepApart(all, fixedSizes(row));
  if (!step.outer.empty())
    return hasOuter(row, step.outer) && keepApart(all, step.outer);
  return !isLong(row) && !(grows(row) && !leading(row).empty());
}

static Step startOf(RowOp row) {
  Step step{Step::Rows, {}, {}, false};
  bool alone = isLong(row);
  if (isContraction(row)) {
    step.kind = Step::Contraction;
  } else if (alone && (row.hasReduction() || keepApart(row, fixedSizes(row)))) {
    step.kind = Step::Points;
  } else if (grows(row)) {
    step.outer = leading(row);
    if (!keepApart(row, step.outer))
      step.outer.clear();
  }
  step.ops.push_back(std::move(row));
  return step;
}

/// Whether a group of one block is elementwise ops that any block may take a part of.
static bool isSpreadable(const Step &step) {
  if (step.kind != Step::Rows || !step.outer.empty())
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

FailureOr<std::vector<Step>> gpu_lowering::stepsOf(func::FuncOp kernel, const GpuTarget &target,
                                                   std::string &reason) {
  std::vector<RowOp> ops;
  for (Operation &op : kernel.getBody().front()) {
    // Addresses, sizes and views are followed from where they are used.
    if (isMemoryEffectFree(&op) || isa<memref::AllocOp, func::ReturnOp>(op))
      continue;
    auto row = readOp(&op, target, reason);
    if (failed(row)) {
      op.emitWarning() << "kernel '" << kernel.getName() << "' is not carried to " << target.name()
                       << ": " << reason;
      return failure();
    }
    ops.push_back(std::move(*row));
  }
  std::vector<bool> sets(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    sets[i] = ops[i].selected.has_value();
    auto zeros = isContraction(ops[i]) && !sets[i] ? zerosOf(ops, i) : std::nullopt;
    if (!zeros)
      continue;
    sets[i] = true;
    sets.erase(sets.begin() + *zeros);
    ops.erase(ops.begin() + *zeros);
    --i;
  }

  std::vector<Step> steps;
  for (auto [i, row] : llvm::enumerate(ops)) {
    if (!steps.empty() && joins(steps.back(), row)) {
      steps.back().ops.push_back(std::move(row));
      continue;
    }
    steps.push_back(startOf(std::move(row)));
    steps.back().accumulates = !sets[i];
  }
  for (Step &step : steps)
    if (isSpreadable(step))
      step.kind = Step::Points;
  return steps;
}
