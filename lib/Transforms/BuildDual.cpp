// The dual block: the full and the reduced run of one token, and the patch
// that makes the second follow the first (Algorithm 1, one layer of it).
//
// Both runs are emitted op by op next to each other. At a site of F the reduced
// op is patched to its full-run output at once. What depends on an
// output site G is held back until the full run is complete; then G's target is
// solved for through its chain, G is patched, and the rest follows.
#include "PlanSites.h"
#include "ctxc/Transforms/BuildPatch.h"
#include "dialects/Patch/PatchNames.h"
#include "dialects/XF/Sizes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace ctxc {
namespace {

/// The conditions for solving a link, one for each division.
SmallVector<xf::LinkCondition> conditionsOf(ChainLink link, xf::Split split) {
  auto solvable = cast<xf::SolvableOpInterface>(link.op);
  std::string reason;
  if (solvable.getSolvability(link.operand, reason) != xf::Solvability::Conditional)
    return {};
  return solvable.getConditions(link.operand, split);
}

unsigned countDivisions(const OutputPatch &output, xf::Split split) {
  unsigned count = 0;
  for (ChainLink link : output.links)
    count += conditionsOf(link, split).size();
  return count;
}

/// Whether ones are divided, which stand in the block as a setting.
bool isReciprocal(xf::DivOp div) { return bool(div.getLhs().getDefiningOp<xf::SettingOp>()); }

class DualBuilder {
public:
  DualBuilder(xf::BlockOp source, const BlockPlan &plan, patch::UpdateKind update)
      : source(source), plan(plan), update(update), b(source), sites(plan.patchedOps()),
        parts(sites.size()) {
    for (const OutputPatch &output : plan.outputs) {
      firsts.insert(firstPatched(output, update));
      for (Operation *op : waitingFor(firstPatched(output, update)))
        held.insert(op);
    }
  }

  xf::BlockOp build(StringRef name);

private:
  void createBlock(StringRef name);
  void cloneFull(Operation &op);
  Operation *cloneReduced(Operation &op);
  void clonePair(Operation &op);
  bool isShared(Operation &op) const;

  Value need(Value value);
  void needEarlierContext(Operation *op);
  void patchOutput(unsigned output);
  Value solveTarget(unsigned output);
  Value solveLink(const OutputPatch &output, unsigned link, Value target);
  Value unpatched(const OutputPatch &output, unsigned link);
  void runTap(Operation *op, IRMapping &run);
  Value leverageOf(const OutputPatch &output, Value slots);
  void assign(Operation *site, Value target, patch::UpdateKind by = patch::UpdateKind::naive);
  void assignThroughNorm(const OutputPatch &output, Value target);
  void compareSelections();
  void finish();

  unsigned indexOf(Operation *site) const { return llvm::find(sites, site) - sites.begin(); }
  std::string lemmaOf(Operation *site) const;

  xf::BlockOp source;
  const BlockPlan &plan;
  patch::UpdateKind update;
  OpBuilder b;
  OpSet firsts;                   ///< what is patched first for an output
  OpSet held;                     ///< reduced ops that wait for the patch of one of `firsts`
  SmallVector<Operation *> sites; ///< in the order of plannedParameters
  SmallVector<SmallVector<Value, 3>> parts; ///< the patch of each site
  /// Taps of chains, run before the patch: what the reduced run's clone reads, and what it gives.
  llvm::DenseMap<Operation *, std::pair<Value, Value>> taps;
  IRMapping full, reduced;
  xf::BlockOp dual;
};

xf::BlockOp DualBuilder::build(StringRef name) {
  createBlock(name);
  for (Operation &op : source.getBody().front().without_terminator())
    clonePair(op);
  SmallVector<unsigned> order = *plan.solvingOrder(); // checkBuildable has checked that it exists
  for (unsigned output : order)
    patchOutput(output);
  for (Operation &op : source.getBody().front().without_terminator())
    need(op.getResult(0));
  finish();
  return dual;
}

void DualBuilder::createBlock(StringRef name) {
  auto twice = [](TypeRange types) {
    SmallVector<Type> result(types);
    result.append(types.begin(), types.end());
    return result;
  };
  b.setInsertionPointAfter(source);
  dual =
      xf::BlockOp::create(b, source.getLoc(), b.getStringAttr(name),
                          TypeAttr::get(b.getFunctionType(twice(source.getArgumentTypes()),
                                                          twice(source.getResultTypes()))),
                          /*sym_visibility=*/nullptr, /*arg_attrs=*/nullptr, /*res_attrs=*/nullptr);
  Block &body = dual.getBody().emplaceBlock();
  for (BlockArgument arg : source.getBody().getArguments())
    full.map(arg, body.addArgument(arg.getType(), renamed(arg.getLoc(), "_C")));
  for (BlockArgument arg : source.getBody().getArguments())
    reduced.map(arg, body.addArgument(arg.getType(), arg.getLoc()));
  b.setInsertionPointToStart(&body);
}

void DualBuilder::cloneFull(Operation &op) {
  Operation *clone = b.clone(op, full);
  clone->setLoc(renamed(op.getLoc(), "_C"));
  if (auto contextual = dyn_cast<xf::ContextualOpInterface>(clone))
    contextual.setStateRun(xf::Run::full);
}

Operation *DualBuilder::cloneReduced(Operation &op) {
  Operation *clone = b.clone(op, reduced);
  if (auto contextual = dyn_cast<xf::ContextualOpInterface>(clone))
    contextual.setStateRun(xf::Run::reduced);
  return clone;
}

/// Whether an op depends only on parameters, settings and the token: its result is then the
/// same in both runs.
bool DualBuilder::isShared(Operation &op) const {
  return !isa<xf::ContextualOpInterface>(op) && !llvm::is_contained(sites, &op) &&
         llvm::all_of(op.getOperands(),
                      [&](Value v) { return full.lookup(v) == reduced.lookupOrNull(v); });
}

void DualBuilder::clonePair(Operation &op) {
  if (isShared(op)) {
    reduced.map(op.getResults(), b.clone(op, full)->getResults());
    return;
  }
  cloneFull(op);
  if (held.contains(&op))
    return;
  if (llvm::is_contained(plan.inputSites, &op)) {
    assign(&op, full.lookup(op.getResult(0)));
    return;
  }
  // The unpatched output stands next to the full run's, so that both can be one
  // sweep over the weight. A scale is solved for without it.
  auto patchable = dyn_cast<patch::PatchableOpInterface>(op);
  if (firsts.contains(&op) && !patchable.formsFromResult())
    return;
  Operation *clone = cloneReduced(op);
  // The naive update leaves the matrix before the norm as it is; its patch, which
  // every applied block of this plan loads, is zero: u = d − d.
  const OutputPatch *output = plan.outputOf(&op);
  if (output && output->normMatrix == &op && !firsts.contains(&op)) {
    auto linear = cast<xf::LinearOp>(clone);
    auto none = patch::Rank1Op::create(b, op.getLoc(), linear.getType(), linear.getData().getType(),
                                       linear, linear, linear.getData());
    parts[indexOf(&op)] = {none.getU(), none.getV()};
  }
}

/// The reduced run's value; if it was held back, it is emitted now.
Value DualBuilder::need(Value value) {
  if (Value known = reduced.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (isa<xf::ContextualOpInterface>(op) && !taps.contains(op))
    needEarlierContext(op);
  for (Value operand : op->getOperands())
    need(operand);
  auto tap = taps.find(op);
  if (tap == taps.end())
    return cloneReduced(*op)->getResult(0);
  // It has run, on what the chain gave before the patch: the rest is the current tap's.
  auto operands = llvm::map_to_vector(op->getOperands(), [&](Value v) { return need(v); });
  Value moved = operands[cast<xf::TapOpInterface>(op).getTokenOperand()];
  auto [x, y] = tap->second;
  reduced.map(value, xf::buildTapMoved(op, b, moved, x, y, operands));
  return reduced.lookup(value);
}

/// A block's contextual ops must keep their order.
void DualBuilder::needEarlierContext(Operation *op) {
  for (Operation &earlier : *op->getBlock()) {
    if (&earlier == op)
      break;
    if (isa<xf::ContextualOpInterface>(earlier) && !taps.contains(&earlier))
      need(earlier.getResult(0));
  }
}

void DualBuilder::patchOutput(unsigned number) {
  const OutputPatch &output = plan.outputs[number];
  Value target = solveTarget(number);
  Operation *first = firstPatched(output, update);
  for (Value operand : first->getOperands())
    need(operand);
  if (first == output.site)
    assign(output.site, target);
  else
    assignThroughNorm(output, target);
}

/// chain⁻¹ of the goal's full-run value, the other operands being the reduced run's.
Value DualBuilder::solveTarget(unsigned number) {
  const OutputPatch &output = plan.outputs[number];
  // The obligations of the divisions come after the sites', output by output. They are
  // counted from the site outwards, and solved for from the goal inwards.
  unsigned division = sites.size();
  for (const OutputPatch &earlier : ArrayRef(plan.outputs).take_front(number + 1))
    division += countDivisions(earlier, plan.split);
  Value target = full.lookup(output.goal);
  for (unsigned i = output.links.size(); i-- > 0;) {
    const ChainLink &link = output.links[i];
    SmallVector<xf::LinkCondition> conditions = conditionsOf(link, plan.split);
    division -= conditions.size();
    if (xf::isTap(link.op))
      unpatched(output, i + 1);
    Operation *before = &b.getBlock()->back();
    target = solveLink(output, i, target);
    unsigned next = 0;
    for (Operation *op = before->getNextNode(); op; op = op->getNextNode()) {
      op->setLoc(renamed(link.op->getOperand(link.operand).getLoc(), "_T"));
      auto div = dyn_cast<xf::DivOp>(op);
      if (!div || next == conditions.size())
        continue;
      // A quotient is multiplied by its divisor, that is, divided by 1/divisor, which an infinite
      // one makes zero.
      if (conditions[next].kind == xf::Obligation::FiniteElements && isReciprocal(div))
        continue;
      // A known factor of the chain has an obligation of its own.
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(div);
      patch::ObligationOp::create(b, div.getLoc(), patch::Condition::nonzero_elements, div.getRhs(),
                                  Value(), division + next, conditions[next].lemma);
      ++next;
    }
  }
  return target;
}

/// The operand that link number `i` needs to give `target`.
Value DualBuilder::solveLink(const OutputPatch &output, unsigned i, Value target) {
  const ChainLink &link = output.links[i];
  // The full run's clone stands in the dual block, and so do its parameters.
  auto clone = cast<xf::SolvableOpInterface>(full.lookup(link.op->getResult(0)).getDefiningOp());
  bool isChoice = clone.isUnderdetermined(link.operand),
       startsFromPresent = isChoice || xf::isPartOfOperand(link.op, link.operand),
       areOthersRead = !xf::isPartOfResult(link.op, link.operand);
  SmallVector<Value> operands;
  for (OpOperand &operand : link.op->getOpOperands()) {
    bool isWanted = operand.getOperandNumber() == link.operand;
    if (isWanted)
      operands.push_back(startsFromPresent ? unpatched(output, i) : Value());
    else
      operands.push_back(areOthersRead ? need(operand.get()) : Value());
  }
  if (xf::isTap(link.op)) {
    auto [x, y] = taps.lookup(link.op);
    return xf::buildTapSolve(link.op, b, target, x, y, operands);
  }
  if (!isChoice)
    return clone.buildSolve(b, link.operand, target, operands);
  Value leverage;
  if (plan.split == xf::Split::LeastNorm)
    leverage = leverageOf(output, operands[link.operand]);
  return clone.buildSplit(b, link.operand, target, operands, leverage);
}

/// The value of the chain that link number `i` reads while the site is not patched.
Value DualBuilder::unpatched(const OutputPatch &output, unsigned i) {
  Value value = output.site->getResult(0);
  IRMapping run(reduced);
  run.map(value, need(value));
  for (const ChainLink &link : ArrayRef(output.links).take_front(i)) {
    for (OpOperand &operand : link.op->getOpOperands())
      if (operand.getOperandNumber() != link.operand)
        run.map(operand.get(), need(operand.get()));
    value = link.op->getResult(0);
    if (xf::isTap(link.op)) {
      runTap(link.op, run);
      continue;
    }
    Operation *clone = b.clone(*link.op, run);
    clone->setLoc(renamed(link.op->getLoc(), "_0"));
  }
  return run.lookup(value);
}

/// Runs a tap in the reduced run, on its operand in `run`. It runs once, since it keeps a state.
void DualBuilder::runTap(Operation *op, IRMapping &run) {
  if (!taps.contains(op)) {
    needEarlierContext(op);
    Operation *clone = b.clone(*op, run);
    cast<xf::ContextualOpInterface>(clone).setStateRun(xf::Run::reduced);
    clone->setLoc(renamed(op->getLoc(), "_0"));
    Value x = clone->getOperand(cast<xf::TapOpInterface>(op).getTokenOperand());
    taps[op] = {x, clone->getResult(0)};
  }
  run.map(op->getResult(0), taps.lookup(op).second);
}

/// How far a change of norm 1 moves each of the slots (squared): tensor<n>.
Value DualBuilder::leverageOf(const OutputPatch &output, Value slots) {
  auto shape = cast<RankedTensorType>(slots.getType()).getShape();
  auto type = RankedTensorType::get(shape.take_front(), b.getF32Type());
  auto operands = llvm::map_to_vector(output.site->getOperands(), [&](Value v) { return need(v); });
  Value leverage = cast<patch::PatchableOpInterface>(output.site).buildLeverage(b, operands);
  if (leverage && leverage.getType() == type)
    return leverage;
  return xf::createOnes(b, output.site->getLoc(), type.getShape());
}

/// Patches the reduced run's `site` to give `target`.
void DualBuilder::assign(Operation *site, Value target, patch::UpdateKind by) {
  auto patchable = cast<patch::PatchableOpInterface>(site);
  patch::PatchRequest request;
  request.target = target;
  request.update = by;
  request.index = indexOf(site);
  request.lemma = lemmaOf(site);
  for (Value operand : site->getOperands())
    request.operands.push_back(reduced.lookup(operand));
  if (patchable.formsFromResult() || patchable.appliesToResult()) {
    request.result = reduced.lookupOrNull(site->getResult(0));
    if (!request.result)
      request.result = cloneReduced(*site)->getResult(0);
    request.result.setLoc(renamed(site->getLoc(), "_0"));
  }
  SmallVector<Value> formed = patchable.buildParts(b, request);
  parts[indexOf(site)].assign(formed.begin(), formed.end());
  reduced.map(site->getResult(0),
              patchable.buildPatched(b, request.operands, request.result, formed));
}

/// Post-norm: choose the matrix's output before the norm, patch the
/// matrix to it, then the scale at the norm that results (docs/updates.md).
void DualBuilder::assignThroughNorm(const OutputPatch &output, Value target) {
  auto scale = cast<xf::ScaleOp>(output.site);
  auto norm = scale.getData().getDefiningOp<xf::NormalizeOp>();
  auto matrix = cast<xf::LinearOp>(output.normMatrix);
  Value before = patch::InvertRmsNormOp::create(
      b, renamed(matrix.getLoc(), "_T"), target.getType(), update, target,
      full.lookup(scale.getScale()), need(matrix.getResult()), norm.getEps(), scale.getOffset());
  assign(matrix, before);
  cloneReduced(*norm);
  assign(scale, target, update);
}

/// Checks that the two runs select alike where the plan makes them. These obligations
/// come after all others.
void DualBuilder::compareSelections() {
  unsigned index = sites.size();
  for (const OutputPatch &output : plan.outputs)
    index += countDivisions(output, plan.split);
  for (const PlanObligation &obligation : plan.obligations)
    if (obligation.kind == xf::Obligation::SameSelection)
      patch::SameSelectionOp::create(b, obligation.site->getLoc(), full.lookup(obligation.value),
                                     reduced.lookup(obligation.value), index++, obligation.lemma);
}

void DualBuilder::finish() {
  compareSelections();
  for (auto [site, values] : llvm::zip_equal(sites, parts))
    patch::StoreOp::create(b, site->getLoc(), parameterOf(site).getName(), values);
  auto yield = cast<xf::YieldOp>(source.getBody().front().getTerminator());
  SmallVector<Value> results;
  for (IRMapping *run : {&full, &reduced})
    for (Value v : yield.getOperands())
      results.push_back(run->lookup(v));
  xf::YieldOp::create(b, yield.getLoc(), results);
}

std::string DualBuilder::lemmaOf(Operation *site) const {
  for (const PlanObligation &obligation : plan.obligations)
    if (obligation.site == site)
      return obligation.lemma;
  return cast<xf::AssignableOpInterface>(site)
      .getLemma(llvm::is_contained(plan.inputSites, site) ? xf::ControlRole::Input
                                                          : xf::ControlRole::Output)
      .str();
}

} // namespace

xf::BlockOp buildDualBlock(xf::BlockOp block, const BlockPlan &plan, patch::UpdateKind update,
                           StringRef name) {
  if (failed(checkBuildable(block, plan)))
    return nullptr;
  return DualBuilder(block, plan, update).build(name);
}

} // namespace ctxc
