#include "lib/Lowering/GPU/Products.h"
#include "ctxc/Lowering/Kernel.h"
#include "lib/Lowering/CPU/Remarks.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

bool gpu_lowering::isProduct(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1)
    return false;
  SmallVector<Operation *> reduction;
  Value sum = matchReduction(op.getRegionOutputArgs(), 0, reduction);
  auto product = sum ? sum.getDefiningOp<arith::MulFOp>() : arith::MulFOp();
  if (!product || reduction.size() != 1 || !isa<arith::AddFOp>(reduction[0]))
    return false;
  auto isInput = [&](Value factor) {
    if (auto wide = factor.getDefiningOp<arith::ExtFOp>())
      factor = wide.getIn();
    auto argument = dyn_cast<BlockArgument>(factor);
    return argument && argument.getOwner() == op.getBody() && argument.getArgNumber() < 2;
  };
  return isInput(product.getLhs()) && isInput(product.getRhs()) &&
         product.getLhs() != product.getRhs();
}

bool gpu_lowering::isOfStored(const RowOp &row, size_t matrix) {
  Value W = row.accesses[matrix]->view.root;
  Type element = cast<MemRefType>(W.getType()).getElementType();
  return isa<BlockArgument>(W) && (element.isF32() || element.isBF16() || element.isF16()) &&
         llvm::all_of(row.loops, [](const Extent &e) { return e.isFixed(); });
}

/// The input that is a parameter of a product with its sum; none where the op is no such.
static std::optional<size_t> storedFactor(const RowOp &row, ArrayRef<KernelArg> args) {
  auto op = dyn_cast<linalg::GenericOp>(row.op);
  if (!op || !isProduct(op))
    return std::nullopt;
  for (size_t i : {0, 1})
    if (row.accesses[i])
      if (auto root = dyn_cast<BlockArgument>(row.accesses[i]->view.root))
        if (args[root.getArgNumber()].kind == KernelArgKind::Param)
          return i;
  return std::nullopt;
}

void gpu_lowering::remarkProducts(ArrayRef<Step> steps, func::FuncOp kernel) {
  SmallVector<KernelArg> args = kernelArguments(kernel);
  for (const Step &step : steps)
    for (const RowOp &row : step.ops) {
      auto matrix = storedFactor(row, args);
      if (!matrix || !row.hasReduction() || step.kind == Step::Contraction ||
          step.kind == Step::Tiles)
        continue;
      size_t k = std::distance(row.isReduction.begin(), llvm::find(row.isReduction, true));
      missed(row.op, "contraction",
             !isOfStored(row, *matrix) ? "its sizes depend on the visible tokens"
             : !(row.accesses[*matrix]->steps[k] == fixedExtent(1))
                 ? "the matrix is stored as (in, out)"
                 : "there are more vectors than four, or its loops are not those of one product");
    }
}
