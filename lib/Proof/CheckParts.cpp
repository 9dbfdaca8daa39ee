// Claims whose chains bring parts of a value to their targets: of what is put together, every part.
#include "Claims.h"
#include "dialects/XF/Sizes.h"
#include <set>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::proof;

/// The chain's way from a part on: the goal, and its links down to that part.
using Way = std::vector<const void *>;

static Way wayFrom(const ResolvedOutput &output, size_t link, unsigned operand) {
  Way way{output.goal.getAsOpaquePointer()};
  for (size_t i = output.links.size(); i-- > link;) {
    way.push_back(output.links[i].op);
    way.push_back(
        reinterpret_cast<const void *>(uintptr_t(i == link ? operand : output.links[i].operand)));
  }
  return way;
}

void proof::checkParts(Subject &s, const ResolvedPlan &plan) {
  std::set<Way> brought;
  for (const ResolvedOutput &output : plan.outputs)
    for (size_t i = 0; i < output.links.size(); ++i)
      brought.insert(wayFrom(output, i, output.links[i].operand));
  for (const ResolvedOutput &output : plan.outputs) {
    bool isPart = false;
    for (auto [i, link] : llvm::enumerate(output.links)) {
      std::string name = s.text.name(link.op->getResult(0)).str();
      auto solvable = dyn_cast<xf::SolvableOpInterface>(link.op);
      if (isPart && (xf::isPartOfOperand(link.op, link.operand) || xf::isTap(link.op) ||
                     (solvable && solvable.isUnderdetermined(link.operand))))
        s.wrong("chain: " + name + " leaves a choice between values that wait for other patches");
      if (!xf::isPartOfResult(link.op, link.operand))
        continue;
      isPart = true;
      for (OpOperand &part : link.op->getOpOperands())
        if (!brought.count(wayFrom(output, i, part.getOperandNumber())))
          s.wrong("chain: " + name + " has another part, " + s.text.name(part.get()) +
                  ", that no chain to " + s.text.name(output.goal) + " brings to its target");
    }
  }
}
