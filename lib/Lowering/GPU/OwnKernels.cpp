#include "lib/Lowering/GPU/OwnKernels.h"
#include "lib/Lowering/GPU/TileContraction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

/// The largest number of vectors that the kernel for few vectors takes.
static constexpr int64_t fewVectors = 4;

/// Whether a contraction's matrix, which is the input `matrix`, is stored and all sizes are fixed.
static bool isOfStored(const RowOp &row, size_t matrix) {
  Value W = row.accesses[matrix]->view.root;
  Type element = cast<MemRefType>(W.getType()).getElementType();
  return (isa<BlockArgument>(W) || quantizedOf(W)) &&
         (element.isF32() || element.isBF16() || element.isF16()) &&
         llvm::all_of(row.loops, [](const Extent &e) { return e.isFixed(); });
}

/// Whether a product of many rows is one with a stored matrix, or with the keys or values of a
/// context, whose size grows.
static bool isForTiles(const RowOp &row, const TileLoops &loops) {
  Type of = cast<MemRefType>(row.accesses[loops.columnSide]->view.root.getType()).getElementType();
  bool grows = !row.loops[loops.column].isFixed() || !row.loops[loops.k].isFixed();
  return grows ? of.isF32() : isOfStored(row, loops.columnSide);
}

std::optional<Step::Kind> gpu_lowering::ownKindOf(const RowOp &row, int64_t rows) {
  if (row.selected)
    return Step::Contraction;
  if (isa<kernel::AttentionOp>(row.op))
    return Step::Attention;
  auto contract = dyn_cast<kernel::ContractOp>(row.op);
  if (rows > 1) {
    auto loops = contract || kernel::productOf(row.op) ? tileLoopsOf(row) : std::nullopt;
    return loops && isForTiles(row, *loops) ? std::optional(Step::Tiles) : std::nullopt;
  }
  return contract && !contract.getTransposed() && isOfStored(row, 0) &&
                 row.loops[0].fixed <= fewVectors
             ? std::optional(Step::Contraction)
             : std::nullopt;
}

/// Whether the op's loops run over all elements of `root`.
static bool isWhole(const RowOp &row, Value root) {
  std::optional<Extent> all = fixedExtent(1);
  for (auto [size, reduction] : llvm::zip(row.loops, row.isReduction))
    all = all && !reduction ? product(*all, size) : all;
  auto elements = gpu_lowering::elementsOf(root);
  return all && elements && *all == *elements;
}

/// Whether the op overwrites all of `root`.
static bool setsAll(const RowOp &row, Value root) {
  if (row.support || row.hasReduction() || row.accesses.empty())
    return false;
  const std::optional<Access> &target = row.accesses.back();
  return target && target->view.root == root && isWhole(row, root) &&
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

std::optional<size_t> gpu_lowering::zerosOf(ArrayRef<RowOp> ops, size_t contraction) {
  Value root = ops[contraction].accesses[2]->view.root;
  auto last = lastUse(ops, contraction, root);
  if (!last || !setsAll(ops[*last], root) || !isWhole(ops[contraction], root))
    return std::nullopt;
  bool zeros = isZeroFill(ops[*last]);
  if (isa<memref::CopyOp>(ops[*last].op)) {
    Value source = ops[*last].accesses[0]->view.root;
    auto made = lastUse(ops, *last, source);
    zeros = made && isZeroFill(ops[*made]) && setsAll(ops[*made], source);
  }
  return zeros ? last : std::nullopt;
}

StringRef gpu_lowering::whyNone(kernel::ContractOp op, const RowOp &row) {
  if (!isOfStored(row, 0))
    return "its sizes depend on the visible tokens";
  if (op.getTransposed())
    return "the matrix is stored as (in, out)";
  return "there are more vectors than four, or its loops are not those of one product";
}
