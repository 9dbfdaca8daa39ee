// Keeps sums that a loop holds in memory in a register instead.
//
//   for k { y[i] = y[i] + a[k] * b[k] }
// becomes
//   s = y[i]; for k { s = s + a[k] * b[k] }; y[i] = s
//
// Loops made from linalg have the first form. LLVM must assume that a or b may alias y, and then
// neither vectorises the loop nor keeps the sum in a register. Bufferisation has made sure that
// memory which an op reads at other indices than it writes does not overlap the memory that it
// writes.
#include "ctxc/Lowering/Passes.h"
#include "lib/Lowering/CPU/LinalgToLoops.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace ctxc;

namespace ctxc {
#define GEN_PASS_DEF_KEEPSUMSINREGISTERS
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

namespace {

/// A load and the store that follows it, both at an address that the loop does not change.
struct Sum {
  memref::LoadOp load;
  memref::StoreOp store;
};

std::optional<Sum> findSum(scf::ForOp loop) {
  if (!isOfLinalg(loop))
    return std::nullopt;
  Sum sum;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto store = dyn_cast<memref::StoreOp>(op)) {
      if (sum.store)
        return std::nullopt;
      sum.store = store;
    } else if (!isa<memref::LoadOp>(op) && !isMemoryEffectFree(&op)) {
      return std::nullopt;
    }
  }
  if (!sum.store || !loop.isDefinedOutsideOfLoop(sum.store.getMemRef()) ||
      !llvm::all_of(sum.store.getIndices(),
                    [&](Value i) { return loop.isDefinedOutsideOfLoop(i); }))
    return std::nullopt;
  for (auto load : loop.getBody()->getOps<memref::LoadOp>()) {
    if (load.getMemRef() != sum.store.getMemRef())
      continue;
    if (sum.load || load.getIndices() != sum.store.getIndices())
      return std::nullopt;
    sum.load = load;
  }
  if (!sum.load || !sum.load->isBeforeInBlock(sum.store))
    return std::nullopt;
  return sum;
}

void keepInRegister(scf::ForOp loop, Sum sum) {
  IRRewriter rewriter(loop);
  Value begin = memref::LoadOp::create(rewriter, sum.load.getLoc(), sum.load.getMemRef(),
                                       sum.load.getIndices());
  Value memref = sum.store.getMemRef();
  SmallVector<Value> indices(sum.store.getIndices());
  auto replaced = llvm::cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, begin, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &, Location, ArrayRef<BlockArgument> arguments) {
        sum.load.getResult().replaceAllUsesWith(arguments.front());
        return SmallVector<Value>{sum.store.getValueToStore()};
      }));
  rewriter.eraseOp(sum.load);
  rewriter.eraseOp(sum.store);
  rewriter.setInsertionPointAfter(replaced);
  memref::StoreOp::create(rewriter, replaced.getLoc(), replaced.getResults().back(), memref,
                          indices);
}

struct KeepSumsInRegisters : ctxc::impl::KeepSumsInRegistersBase<KeepSumsInRegisters> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops; // inner ones first
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      if (auto sum = findSum(loop))
        keepInRegister(loop, *sum);
  }
};

} // namespace
