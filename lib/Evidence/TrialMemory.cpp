// Remembers what trials said of plans: a verdict, its warnings and its list of plans ask the same.
#include "ctxc/Evidence/Trial.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <memory>

using namespace mlir;
using namespace ctxc;

/// All that a trial of the plan depends on. Blocks are compared by their text, since a module is
/// copied before it is changed, and another block may later have the address of an erased one.
static std::string keyOf(xf::BlockOp block, const PlanOptions &options, const BlockPlan &plan) {
  std::string key;
  llvm::raw_string_ostream os(key);
  block->print(os, OpPrintingFlags().useLocalScope().assumeVerified());
  if (xf::LayerOp layer = options.layer)
    os << layer.getPrefix() << layer.getSettingsAttr() << layer.getBindAttr();
  for (unsigned i = 0; i < block.getNumArguments(); ++i)
    os << options.inputsAreSources.contains(i);
  os << " " << int(options.update) << int(plan.split);
  llvm::DenseMap<Operation *, unsigned> numbers;
  for (Operation &op : block.getBody().front())
    numbers.try_emplace(&op, numbers.size());
  auto number = [&](Operation *op) { os << " " << (op ? int64_t(numbers.lookup(op)) : -1); };
  for (Operation *op : plan.inputSites)
    number(op);
  for (const OutputPatch &output : plan.outputs) {
    os << ";";
    number(output.site);
    number(output.normMatrix);
    for (ChainLink link : output.links) {
      number(link.op);
      os << ":" << link.operand;
    }
    number(output.goal.getDefiningOp());
    os << ":" << cast<OpResult>(output.goal).getResultNumber();
  }
  for (const PlanObligation &o : plan.obligations) {
    os << ";" << int(o.kind) << int(o.likelihood);
    number(o.site);
  }
  return key;
}

Confirmation ctxc::remembered(Confirmation confirm) {
  auto known = std::make_shared<std::map<std::string, std::string>>();
  return [known, confirm = std::move(confirm)](xf::BlockOp block, const PlanOptions &options,
                                               const PlanCandidate &candidate) {
    auto [entry, isNew] = known->try_emplace(keyOf(block, options, candidate.plan));
    if (isNew)
      entry->second = confirm(block, options, candidate);
    return entry->second;
  };
}
