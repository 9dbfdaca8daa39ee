// The dual block: the full and the reduced run of one token, and the patch
// that makes the second follow the first (Algorithm 1, one layer of it).
//
// Both runs are emitted op by op next to each other. At a site of F the reduced
// op is patched to its full-run output there and then. What depends on an
// output site G is held back until the full run is complete; then G's target is
// solved for through its chain, G is patched, and the rest follows.
#include "Names.h"
#include "PlanSites.h"
#include "ctxc/Transforms/BuildPatch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace ctxc {
namespace {

patch::Rank1Op createRank1(OpBuilder &b, Location loc, Value target, Value current, Value data) {
  return patch::Rank1Op::create(b, loc, target.getType(), data.getType(), target, current, data);
}

/// How many links of the chain divide by what they know.
unsigned countDivisions(const OutputPatch &output) {
  return llvm::count_if(output.links, [](ChainLink link) {
    std::string reason;
    return cast<xf::SolvableOpInterface>(link.op).getSolvability(link.operand, reason) ==
           xf::Solvability::Conditional;
  });
}

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
  void patchOutput(unsigned output);
  Value solveTarget(unsigned output);
  void oblige(xf::DivOp div, unsigned index);
  void assign(Operation *site, Value target);
  void assignLinear(xf::LinearOp op, Value target);
  void assignBias(xf::BiasOp op, Value target);
  void assignScale(xf::ScaleOp op, Value target, patch::UpdateKind by);
  void assignThroughNorm(const OutputPatch &output, Value target);
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
  SmallVector<SmallVector<Value, 2>> parts; ///< the patch of each site
  IRMapping full, reduced;
  xf::BlockOp dual;
};

xf::BlockOp DualBuilder::build(StringRef name) {
  createBlock(name);
  for (Operation &op : source.getBody().front().without_terminator())
    clonePair(op);
  SmallVector<unsigned> order = *plan.solvingOrder(); // checkBuildable saw that there is one
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
  if (isa<xf::ContextualOpInterface>(op))
    clone->setAttr("stream", b.getStringAttr("full"));
}

Operation *DualBuilder::cloneReduced(Operation &op) {
  Operation *clone = b.clone(op, reduced);
  if (isa<xf::ContextualOpInterface>(op))
    clone->setAttr("stream", b.getStringAttr("reduced"));
  return clone;
}

/// Parameters, settings, the token, and what is computed from them alone: the
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
  if (firsts.contains(&op) && isa<xf::ScaleOp>(op))
    return;
  Operation *clone = cloneReduced(op);
  // The naive update leaves the matrix before the norm as it is; its patch, which
  // every applied block of this plan loads, is zero: u = d − d.
  const OutputPatch *output = plan.outputOf(&op);
  if (output && output->normMatrix == &op && !firsts.contains(&op)) {
    auto linear = cast<xf::LinearOp>(clone);
    auto none = createRank1(b, op.getLoc(), linear, linear, linear.getData());
    parts[indexOf(&op)] = {none.getU(), none.getV()};
  }
}

/// The reduced run's value, emitted now where it was held back.
Value DualBuilder::need(Value value) {
  if (Value known = reduced.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  // A block's contextual ops keep their order.
  if (isa<xf::ContextualOpInterface>(op))
    for (Operation &earlier : *op->getBlock()) {
      if (&earlier == op)
        break;
      if (isa<xf::ContextualOpInterface>(earlier))
        need(earlier.getResult(0));
    }
  for (Value operand : op->getOperands())
    need(operand);
  return cloneReduced(*op)->getResult(0);
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
  // The obligations of the divisions come after the sites', output by output.
  unsigned division = sites.size();
  for (const OutputPatch &earlier : ArrayRef(plan.outputs).take_front(number))
    division += countDivisions(earlier);
  Value target = full.lookup(output.goal);
  // Solved from the goal inwards, counted from the site outwards.
  division += countDivisions(output);
  for (const ChainLink &link : llvm::reverse(output.links)) {
    SmallVector<Value> operands;
    for (OpOperand &operand : link.op->getOpOperands())
      operands.push_back(operand.getOperandNumber() == link.operand ? Value()
                                                                    : need(operand.get()));
    // The full run's clone stands in the dual block, and so do its parameters.
    Operation *clone = full.lookup(link.op->getResult(0)).getDefiningOp();
    Operation *before = &b.getBlock()->back();
    target = cast<xf::SolvableOpInterface>(clone).buildSolve(b, link.operand, target, operands);
    for (Operation *op = before->getNextNode(); op; op = op->getNextNode()) {
      op->setLoc(renamed(link.op->getOperand(link.operand).getLoc(), "_T"));
      if (auto div = dyn_cast<xf::DivOp>(op))
        oblige(div, --division);
    }
  }
  return target;
}

/// A known factor of the chain has an obligation of its own.
void DualBuilder::oblige(xf::DivOp div, unsigned index) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(div);
  patch::ObligationOp::create(b, div.getLoc(), patch::Condition::nonzero_elements, div.getRhs(),
                              index, "a known factor of the output chain");
}

void DualBuilder::assign(Operation *site, Value target) {
  if (auto linear = dyn_cast<xf::LinearOp>(site))
    assignLinear(linear, target);
  else if (auto bias = dyn_cast<xf::BiasOp>(site))
    assignBias(bias, target);
  else
    assignScale(cast<xf::ScaleOp>(site), target, patch::UpdateKind::naive);
}

void DualBuilder::assignLinear(xf::LinearOp op, Value target) {
  Value current = reduced.lookupOrNull(op.getResult());
  if (!current)
    current = cloneReduced(*op)->getResult(0);
  Value data = reduced.lookup(op.getData());
  Location loc = op.getLoc();
  unsigned index = indexOf(op);
  patch::ObligationOp::create(b, loc, patch::Condition::nonzero_vector, data, index, lemmaOf(op));
  auto rank1 = createRank1(b, renamed(loc, "_uv"), target, current, data);
  parts[index] = {rank1.getU(), rank1.getV()};
  current.setLoc(renamed(loc, "_0"));
  Value patched = patch::ApplyRank1Op::create(b, loc, current.getType(), current, rank1.getU(),
                                              rank1.getV(), data);
  reduced.map(op.getResult(), patched);
}

void DualBuilder::assignBias(xf::BiasOp op, Value target) {
  Value current = reduced.lookupOrNull(op.getResult());
  if (!current)
    current = cloneReduced(*op)->getResult(0);
  Location loc = op.getLoc();
  Value delta = xf::SubOp::create(b, renamed(loc, "_delta"), target, current);
  parts[indexOf(op)] = {delta};
  current.setLoc(renamed(loc, "_0"));
  Value patched = applyDelta(b, full.lookup(op.getBias()), delta);
  reduced.map(op.getResult(),
              xf::BiasOp::create(b, loc, reduced.lookup(op.getData()), patched).getResult());
}

void DualBuilder::assignScale(xf::ScaleOp op, Value target, patch::UpdateKind by) {
  Location loc = op.getLoc();
  Value scale = full.lookup(op.getScale()), data = reduced.lookup(op.getData());
  auto type = cast<RankedTensorType>(target.getType());
  unsigned index = indexOf(op);
  Value delta = patch::SolveScaleOp::create(b, renamed(loc, "_delta"), type, by, target, scale,
                                            data, op.getOffset(), index);
  parts[index] = {delta};
  Value patched = applyDelta(b, scale, delta);
  reduced.map(op.getResult(),
              xf::ScaleOp::create(b, loc, data, patched, op.getOffset()).getResult());
}

/// Post-norm: choose what the matrix is to output before the norm, patch the
/// matrix to it, then the scale at the norm that results (docs/updates.md).
void DualBuilder::assignThroughNorm(const OutputPatch &output, Value target) {
  auto scale = cast<xf::ScaleOp>(output.site);
  auto norm = scale.getData().getDefiningOp<xf::NormalizeOp>();
  auto matrix = cast<xf::LinearOp>(output.normMatrix);
  Value before = patch::InvertRmsNormOp::create(
      b, renamed(matrix.getLoc(), "_T"), target.getType(), update, target,
      full.lookup(scale.getScale()), need(matrix.getResult()), norm.getEps(), scale.getOffset());
  assignLinear(matrix, before);
  cloneReduced(*norm);
  assignScale(scale, target, update);
}

void DualBuilder::finish() {
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
