#include "Flow.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::proof;
using xf::Solvability;

int64_t proof::sizeOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getNumElements() : 1;
}

xf::ParamOp proof::parameterOf(Operation *op) {
  auto site = dyn_cast<xf::AssignableOpInterface>(op);
  return site ? site.getParameterOperand().get().getDefiningOp<xf::ParamOp>() : xf::ParamOp();
}

Flow::Flow(const Structure &structure, StringRef sites)
    : structure(structure), allSites(sites == "all"), known(structure.block, structure.layer) {
  for (Operation &op : llvm::reverse(body()))
    if (&op == body().getTerminator() ||
        llvm::any_of(op.getUsers(), [&](Operation *user) { return live.contains(user); }))
      live.insert(&op);
  for (Operation &op : body())
    if (isa<xf::ContextualOpInterface>(op) && live.contains(&op))
      starts.insert(op.result_begin(), op.result_end());
  findContextualPart();
  // An op that reads no token but its own, and a value that nothing changes, bring no context.
  for (Operation &op : body()) {
    if (isa<xf::ContextualOpInterface>(op) && !known.readsContext(&op))
      for (Value result : op.getResults())
        starts.erase(result);
    if (op.getNumResults() == 1 && known[op.getResult(0)].getConstant())
      unchanging.insert(op.getResult(0));
  }
  for (BlockArgument input : body().getArguments())
    if (structure.inputsDepend && !structure.equalInputs.count(input.getArgNumber()))
      starts.insert(input);
  dependent = forward(starts, unchanging);
}

Values Flow::forward(const Values &seeds, const Values &walls) const {
  Values reached;
  for (Value seed : seeds)
    if (!walls.contains(seed))
      reached.insert(seed);
  for (Operation &op : body())
    if (llvm::any_of(op.getOperands(), [&](Value v) { return reached.contains(v); }))
      for (Value result : op.getResults())
        if (!walls.contains(result))
          reached.insert(result);
  return reached;
}

//===----------------------------------------------------------------------===//
// What may be patched, what can be solved
//===----------------------------------------------------------------------===//

bool Flow::isFrozen(xf::ParamOp param) const {
  return llvm::any_of(body().getOps<xf::ParamOp>(), [&](xf::ParamOp other) {
    return areOne(other, param) &&
           (other.getFrozen() || structure.frozen.count(other.getName().str()));
  });
}

std::string Flow::refusal(Operation *op) const {
  auto site = dyn_cast<xf::AssignableOpInterface>(op);
  if (!site)
    return "is no op with a parameter that can be assigned";
  xf::ParamOp param = parameterOf(op);
  if (!param)
    return "has a parameter that is computed";
  std::string name = "'" + param.getName().str() + "'";
  if (isFrozen(param))
    return "has the frozen parameter " + name;
  if (isOutOfScope(op))
    return "belongs to the contextual part";
  for (xf::ParamOp other : body().getOps<xf::ParamOp>())
    if (areOne(other, param))
      for (Operation *user : other->getUsers())
        if (user != op && live.contains(user))
          return "shares its parameter " + name + " with another op of the block";
  if (structure.shared.count(param.getName().str()))
    return "shares its parameter " + name + " with another layer";
  if (!site.coversOutput())
    return "has in " + name + " one parameter for several vectors";
  std::string divisor =
      xf::unreliableDivisor(site.getObligation(), facts(site.getDataOperand().get()));
  return divisor.empty() ? "" : "divides by " + divisor;
}

std::string Flow::linkBreak(Operation *op, unsigned index) const {
  auto link = dyn_cast<xf::SolvableOpInterface>(op);
  if (!link)
    return "it does not say how it is solved";
  std::string reason;
  Solvability how = link.getSolvability(index, reason);
  if (how == Solvability::No)
    return reason;
  if (how == Solvability::Conditional)
    for (const xf::LinkCondition &c : link.getConditions(index, xf::Split::Even))
      if (std::string divisor = xf::unreliableDivisor(c.kind, facts(op->getOperand(c.operand)));
          !divisor.empty())
        return "it would be divided by " + divisor;
  return "";
}

bool Flow::mayChange(Operation *op, Value operand) const {
  auto param = operand.getDefiningOp<xf::ParamOp>();
  return param && !isFrozen(param) && !(isOutOfScope(op) && !following.contains(op));
}

Names Flow::changeable() const {
  Names names;
  for (xf::ParamOp param : body().getOps<xf::ParamOp>())
    if (llvm::any_of(param->getUsers(),
                     [&](Operation *user) { return mayChange(user, param.getResult()); }) &&
        !llvm::is_contained(names, param.getName()))
      names.push_back(param.getName().str());
  return names;
}

Values Flow::moved(const Values &walls) const {
  std::set<std::string> walled; // by name: a parameter may be read in several places
  for (Value wall : walls)
    if (auto param = wall.getDefiningOp<xf::ParamOp>())
      walled.insert(param.getName().str());
  Values reached;
  for (Operation &op : body())
    if (llvm::any_of(op.getOperands(), [&](Value v) {
          auto param = v.getDefiningOp<xf::ParamOp>();
          return param ? mayChange(&op, v) && !walled.count(param.getName().str())
                       : reached.contains(v);
        }))
      for (Value result : op.getResults())
        if (!walls.contains(result))
          reached.insert(result);
  return reached;
}
