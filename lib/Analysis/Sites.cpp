#include "ctxc/Analysis/Sites.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ctxc;

/// Whether the op may have a parameter. One that selects from a computed value, as from a router's
/// scores, has none.
static bool mayHaveParameter(Operation *op) {
  auto site = dyn_cast<xf::AssignableOpInterface>(op);
  return site && (!getElementTypeOrSelf(site.getDataOperand().get()).isInteger() ||
                  site.getParameterOperand().get().getDefiningOp<xf::ParamOp>());
}

Sites::Sites(const BlockGraph &graph, const ZeroRange &zeros, const Bindings &bindings,
             SiteScope scope)
    : graph(graph), bindings(bindings), scope(scope), names(zeros.identities()) {
  findContextualPart();
  // A stored tensor is one parameter, wherever and by whatever name it is said to be frozen.
  for (xf::ParamOp param : graph.getBlock().getBody().getOps<xf::ParamOp>())
    if (param.getFrozen() || bindings.frozen.contains(param.getName()))
      frozen.insert(identity(param));
  for (Operation &op : graph.getBlock().getBody().front())
    if (mayHaveParameter(&op)) {
      indices[&op] = sites.size();
      sites.push_back(classify(&op, zeros));
    }
}

const Site *Sites::lookup(Operation *op) const {
  auto it = indices.find(op);
  return it == indices.end() ? nullptr : &sites[it->second];
}

bool Sites::isAssignable(Operation *op) const {
  const Site *site = lookup(op);
  return site && site->status == SiteStatus::Assignable;
}

bool Sites::isFrozen(xf::ParamOp param) const { return frozen.contains(identity(param)); }

std::string Sites::name(Operation *op) {
  if (auto assignable = dyn_cast<xf::AssignableOpInterface>(op))
    if (auto param = assignable.getParameterOperand().get().getDefiningOp<xf::ParamOp>())
      return param.getName().str();
  return op->getName().getStringRef().str();
}

/// Another op of the block that uses a stored tensor of `param` for an output; null if none.
Operation *Sites::otherUser(xf::ParamOp param, Operation *op) const {
  Operation *other = nullptr;
  xf::BlockOp block = graph.getBlock();
  auto reachesOutput = [&](Operation *user) {
    return graph.reach(graph.vertex(user)).test(graph.vertex(graph.yield()));
  };
  block.walk([&](xf::ParamOp each) {
    if (identity(each) == identity(param))
      for (Operation *user : each->getUsers())
        if (user != op && reachesOutput(user))
          other = user;
  });
  return other;
}

Site Sites::classify(Operation *op, const ZeroRange &zeros) const {
  auto assignable = cast<xf::AssignableOpInterface>(op);
  Value data = assignable.getDataOperand().get();
  auto param = assignable.getParameterOperand().get().getDefiningOp<xf::ParamOp>();
  auto refuse = [&](SiteStatus status, const Twine &why) {
    return Site{op, param, status, why.str()};
  };
  if (isOutOfScope(op))
    return refuse(SiteStatus::ContextualPart,
                  "'" + name(op) + "' belongs to the contextual part of the block");
  if (!param)
    return refuse(SiteStatus::Computed, "its parameter is computed, not a stored one");
  if (isFrozen(param))
    return refuse(SiteStatus::Frozen, "'" + param.getName() + "' is frozen");
  if (Operation *other = otherUser(param, op))
    return refuse(SiteStatus::SharedInBlock, "'" + param.getName() + "' is also used by " +
                                                 other->getName().getStringRef() +
                                                 " in this block, which needs another value of it");
  if (bindings.shared.contains(identity(param)) || bindings.shared.contains(param.getName()))
    return refuse(SiteStatus::SharedByLayers,
                  "'" + param.getName() + "' is shared with another layer");
  if (!assignable.coversOutput())
    return refuse(SiteStatus::Narrow,
                  "'" + param.getName() + "' serves several vectors at once, which need one each");
  // A whole vector that vanishes on an open set (all of a relu's inputs
  // negative) leaves a condition to check at run time; a single entry that does
  // would be divided by for every second token.
  std::string why = xf::unreliableDivisor(assignable.getObligation(), zeros.facts(data));
  if (!why.empty())
    return refuse(SiteStatus::Zero, "'" + param.getName() + "' multiplies " + why);
  return Site{op, param, SiteStatus::Assignable, ""};
}
