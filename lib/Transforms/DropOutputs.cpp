#include "ctxc/Transforms/DropOutputs.h"
#include "FreeName.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include <map>

using namespace mlir;

namespace ctxc {
namespace {

/// Which outputs are read, by number.
using Mask = std::vector<bool>;

/// The values of a model's body that the logits are made of.
llvm::DenseSet<Value> valuesRead(xf::ModelOp model) {
  llvm::DenseSet<Value> read;
  for (Operation &op : llvm::reverse(model.getBody().front()))
    if (op.hasTrait<OpTrait::IsTerminator>() ||
        llvm::any_of(op.getResults(), [&](Value v) { return read.contains(v); }))
      op.walk([&](Operation *inner) { read.insert(inner->operand_begin(), inner->operand_end()); });
  return read;
}

/// Those of `all` at which `mask` is set.
template <typename Range> auto kept(Range all, const Mask &mask) {
  SmallVector<std::decay_t<decltype(*all.begin())>> result;
  for (auto [each, isKept] : llvm::zip_equal(all, mask))
    if (isKept)
      result.push_back(each);
  return result;
}

void keepOutputs(xf::BlockOp block, const Mask &mask) {
  Operation *yield = block.getBody().front().getTerminator();
  yield->setOperands(kept(yield->getOperands(), mask));
  block.setFunctionType(FunctionType::get(block.getContext(), block.getArgumentTypes(),
                                          kept(block.getResultTypes(), mask)));
}

void keepResults(xf::LayerOp layer, xf::BlockOp block, const Mask &mask) {
  OpBuilder builder(layer);
  OperationState state(layer.getLoc(), layer->getName());
  state.addOperands(layer->getOperands());
  state.addTypes(kept(layer->getResultTypes(), mask));
  state.addAttributes(layer->getAttrDictionary().getValue());
  auto shorter = cast<xf::LayerOp>(builder.create(state));
  shorter.setBlockAttr(FlatSymbolRefAttr::get(block.getSymNameAttr()));
  for (auto [from, to] : llvm::zip_equal(kept(layer->getResults(), mask), shorter->getResults()))
    from.replaceAllUsesWith(to);
  layer.erase();
}

} // namespace

unsigned dropUnreadOutputs(ModuleOp module) {
  unsigned dropped = 0;
  SymbolTable symbols(module);
  for (xf::ModelOp model : module.getOps<xf::ModelOp>()) {
    llvm::DenseSet<Value> read = valuesRead(model);
    // Ops that nothing reads, the last first: then what they read is read by no other.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(model.getBody().front())))
      if (!op.hasTrait<OpTrait::IsTerminator>() && !isa<xf::LayerOp>(op) && op.getNumResults() &&
          op.use_empty() &&
          llvm::none_of(op.getResults(), [&](Value v) { return read.contains(v); }))
        op.erase();
    llvm::MapVector<Operation *, std::map<Mask, SmallVector<xf::LayerOp>>> uses;
    for (auto layer : model.getBody().getOps<xf::LayerOp>()) {
      Mask mask;
      for (Value result : layer->getResults())
        mask.push_back(read.contains(result) || !result.use_empty());
      if (llvm::none_of(mask, [](bool isRead) { return isRead; }))
        mask.assign(mask.size(), true);
      uses[symbols.lookup(layer.getBlock())][mask].push_back(layer);
    }
    for (auto &[op, byMask] : uses)
      for (auto &[mask, layers] : byMask) {
        if (!llvm::is_contained(mask, false))
          continue;
        auto block = cast<xf::BlockOp>(op);
        if (byMask.size() > 1) {
          std::string name = freeName(module, block, "_read");
          OpBuilder builder(block);
          builder.setInsertionPointAfter(block);
          block = cast<xf::BlockOp>(builder.clone(*block));
          block.setSymName(name);
        }
        keepOutputs(block, mask);
        for (xf::LayerOp layer : layers) {
          keepResults(layer, block, mask);
          dropped += llvm::count(mask, false);
        }
      }
  }
  return dropped;
}

} // namespace ctxc
