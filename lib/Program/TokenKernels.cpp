#include "ctxc/Program/TokenKernels.h"
#include "ctxc/Program/StepChecks.h"
#include "dialects/Patch/Patch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

using namespace ctxc;

llvm::SmallVector<TokenKernel> ctxc::forwardKernels(const Program &program, bool isPatched,
                                                    bool withHead) {
  llvm::SmallVector<TokenKernel> kernels;
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    if (!withHead && program.head() == i)
      break;
    kernels.push_back({i, isPatched && step.applied ? step.applied : step.block, 0});
  }
  return kernels;
}

llvm::SmallVector<TokenKernel> ctxc::patchKernels(const Program &program, int64_t startLayer) {
  llvm::SmallVector<TokenKernel> kernels;
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    // A dual head has no index; it is used whatever the start layer.
    if (step.dual && step.index.value_or(startLayer) >= startLayer) {
      kernels.push_back({i, step.dual, 0});
      continue;
    }
    for (int64_t run : {0, 1})
      kernels.push_back({i, step.block, run});
  }
  return kernels;
}

bool ctxc::readsPrompts(const Program &program, xf::BlockOp block) {
  return llvm::any_of(program.steps, [&](const ProgramStep &step) {
    return step.block == block && (step.index || readsContext(block));
  });
}

/// Clones each op for either run; parameters and products with matrices are shared by both.
static xf::BlockOp buildBothRuns(xf::BlockOp block, llvm::StringRef name) {
  mlir::OpBuilder b(block->getContext());
  b.setInsertionPointAfter(block);
  auto both = llvm::cast<xf::BlockOp>(b.cloneWithoutRegions(*block));
  both.setSymName(name);
  mlir::Block &body = both.getBody().emplaceBlock();
  mlir::IRMapping runs[2];
  for (mlir::IRMapping &run : runs)
    for (mlir::BlockArgument argument : block.getBody().getArguments())
      run.map(argument, body.addArgument(argument.getType(), argument.getLoc()));
  b.setInsertionPointToStart(&body);
  llvm::SmallVector<mlir::Value> results;
  for (mlir::Operation &op : block.getBody().front()) {
    if (auto linear = llvm::dyn_cast<xf::LinearOp>(op)) {
      auto product = patch::LinearsOp::create(
          b, op.getLoc(), mlir::TypeRange{linear.getType(), linear.getType()},
          runs[0].lookup(linear.getWeight()),
          mlir::ValueRange{runs[0].lookup(linear.getData()), runs[1].lookup(linear.getData())},
          linear.getTransposed());
      for (int run : {0, 1})
        runs[run].map(linear.getResult(), product.getResult(run));
    } else if (llvm::isa<xf::ParamOp>(op)) {
      runs[1].map(op.getResult(0), b.clone(op, runs[0])->getResult(0));
    } else if (llvm::isa<xf::YieldOp>(op)) {
      for (mlir::IRMapping &run : runs)
        for (mlir::Value result : op.getOperands())
          results.push_back(run.lookup(result));
      xf::YieldOp::create(b, op.getLoc(), results);
    } else {
      for (mlir::IRMapping &run : runs)
        b.clone(op, run);
    }
  }
  both.setFunctionType(
      b.getFunctionType(body.getArgumentTypes(), mlir::ValueRange(results).getTypes()));
  return both;
}

void ctxc::addDualHead(Program &program) {
  std::optional<size_t> head = program.head();
  if (!head || program.steps[*head].dual)
    return;
  ProgramStep &step = program.steps[*head];
  std::string name = (step.block.getSymName() + "_dual").str();
  if (mlir::Operation *known = mlir::SymbolTable::lookupSymbolIn(program.module, name))
    step.dual = llvm::dyn_cast<xf::BlockOp>(known);
  else
    step.dual = buildBothRuns(step.block, name);
}
