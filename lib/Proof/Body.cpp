#include "ctxc/Proof/Body.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::proof;

/// Whether the op, or one in it, reads the context.
static bool readsContext(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return isa<xf::ContextualOpInterface>(inner) ? WalkResult::interrupt()
                                                     : WalkResult::advance();
      })
      .wasInterrupted();
}

/// What the block's ops make of `changing`, and of the context where `withContext`.
static llvm::DenseSet<Value> follow(xf::BlockOp block, llvm::DenseSet<Value> changing,
                                    bool withContext) {
  for (Operation &op : block.getBody().front())
    if ((withContext && readsContext(&op)) ||
        llvm::any_of(op.getOperands(), [&](Value v) { return changing.contains(v); }))
      changing.insert(op.result_begin(), op.result_end());
  return changing;
}

Body::Body(ModuleOp module, xf::ModelOp model, int64_t startLayer)
    : symbols(module), block(model.getBody().front()),
      name("model '" + model.getSymName().str() + "'"),
      text(model, OpPrintingFlags().printNameLocAsPrefix()) {
  int64_t layers = 0;
  for (Operation &op : block) {
    auto layer = dyn_cast<xf::LayerOp>(op);
    if (layer && layers++ >= startLayer) {
      patched.insert(layer);
      continue;
    }
    for (OpResult result : op.getResults()) {
      bool enters = readsContext(&op);
      if (layer) {
        xf::BlockOp block = blockOf(layer);
        enters = follow(block, {}, /*withContext=*/true)
                     .contains(block.getBody().front().getTerminator()->getOperand(
                         result.getResultNumber()));
      }
      if (enters)
        entries.insert(result);
      bool carries = false;
      op.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          carries |= depends(operand) && passes(operand, result);
      });
      if (enters || carries)
        dependent.insert(result);
    }
  }
}

bool Body::passes(Value from, OpResult result) const {
  Operation *op = result.getOwner();
  if (patched.contains(op))
    return false;
  auto layer = dyn_cast<xf::LayerOp>(op);
  if (!layer) {
    bool read = false;
    op->walk([&](Operation *inner) { read |= llvm::is_contained(inner->getOperands(), from); });
    return read;
  }
  xf::BlockOp block = blockOf(layer);
  llvm::DenseSet<Value> changing;
  for (auto [operand, argument] :
       llvm::zip_equal(layer.getInputs(), block.getBody().getArguments()))
    if (operand == from)
      changing.insert(argument);
  Value output = block.getBody().front().getTerminator()->getOperand(result.getResultNumber());
  return follow(block, std::move(changing), /*withContext=*/false).contains(output);
}

std::string Body::nameOf(Value value) const {
  std::string name;
  llvm::raw_string_ostream stream(name);
  value.printAsOperand(stream, text);
  return name;
}

std::vector<std::string> proof::checkPast(const Body &body, const Names &past) {
  std::vector<std::string> problems;
  auto wrong = [&](const llvm::Twine &what) {
    problems.push_back((body.title() + ": past: " + what).str());
  };
  if (past.empty()) {
    if (body.depends(body.logits()))
      wrong("found none, expected a path: the context reaches the logits " +
            body.nameOf(body.logits()) + " past the patched layers");
    return problems;
  }
  SmallVector<OpResult> path;
  for (Operation &op : body.ops())
    for (OpResult result : op.getResults())
      if (path.size() < past.size() && body.nameOf(result) == past[path.size()])
        path.push_back(result);
  if (path.size() < past.size()) {
    wrong("the model has no value " + quoted(past[path.size()]) +
          (path.empty() ? "" : " after " + past[path.size() - 1]));
    return problems;
  }
  if (!body.enters(path.front()))
    wrong("found " + past.front() + " first, expected a result into which the context enters");
  for (size_t i = 1; i < path.size(); ++i)
    if (!body.passes(path[i - 1], path[i]))
      wrong("found " + past[i] + " after " + past[i - 1] + ", which does not pass that on");
  if (path.back() != body.logits())
    wrong("found " + past.back() + " last, expected the logits, " + body.nameOf(body.logits()));
  return problems;
}
