// Rejected and undecided claims by structure. A rejection names barriers: values that intercept all
// that patches move, each with the image of its op, whatever the op reads.
#include "Claims.h"
#include "dialects/XF/Sizes.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::proof;

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

/// The vector u where `value` is `Wᵀ W u` of a matrix that patches change, and u is not; else null.
static Value normalOf(const Flow &flow, Value value) {
  auto outer = value.getDefiningOp<xf::LinearOp>();
  Value u = xf::findGramVector(outer);
  auto inner = u ? outer.getData().getDefiningOp<xf::LinearOp>() : xf::LinearOp();
  bool changes =
      inner && flow.mayChange(outer, outer.getWeight()) && flow.mayChange(inner, inner.getWeight());
  return changes && !flow.moved({}).contains(u) ? u : Value();
}

/// The image of `value` by its facts, and by what is known of a matrix times itself.
static Barrier imageOf(const Flow &flow, const BlockText &text, Value value) {
  Barrier barrier;
  const xf::Facts &facts = flow.facts(value);
  if (facts.length) {
    barrier.image = "ball";
    barrier.radius = *facts.length;
  } else if (facts.bound || facts.floor || facts.ceiling) {
    barrier.image = "box";
    barrier.high = facts.bound;
    if (facts.bound)
      barrier.low = -*facts.bound;
    if (facts.floor && !(barrier.low && *barrier.low > *facts.floor))
      barrier.low = facts.floor;
    if (facts.ceiling && !(barrier.high && *barrier.high < *facts.ceiling))
      barrier.high = facts.ceiling;
  } else if (facts.total) {
    barrier.image = "plane";
    barrier.total = facts.total;
  } else if (Value normal = normalOf(flow, value)) {
    barrier.image = "half-space";
    barrier.normal = text.name(normal).str();
  } else {
    barrier.image = "anything";
  }
  return barrier;
}

static std::string text(std::optional<double> x) {
  std::string result = "none";
  if (x) {
    result.clear();
    llvm::raw_string_ostream(result) << *x;
  }
  return result;
}

static Values barriersOf(const BlockText &text, const Claim &claim) {
  Values walls;
  for (const Barrier &barrier : claim.behind)
    if (Value value = text.lookup(barrier.value))
      walls.insert(value);
  return walls;
}

std::string proof::ruleOfBarriers(const Structure &structure, const Claim &claim, StringRef sites,
                                  ArrayRef<int64_t> outputs) {
  Flow flow(structure, sites);
  BlockText text(structure.block);
  Values walls = barriersOf(text, claim);
  bool anything = false, oneSided = false, any = false;
  for (const Barrier &barrier : claim.behind) {
    Value value = text.lookup(barrier.value);
    if (!value)
      continue;
    Values own = walls;
    own.erase(value);
    Values reached = flow.forward({value}, own);
    bool reaches = llvm::any_of(outputs, [&](int64_t i) {
      return i < int64_t(flow.outputs().size()) && reached.contains(flow.outputs()[i]);
    });
    any |= reaches;
    anything |= reaches && (barrier.image == "anything" || barrier.image == "plane");
    oneSided |= reaches && (barrier.image == "half-space" ||
                            (barrier.image == "box" && !(barrier.low && barrier.high)));
  }
  if (outputs.size() > 1 && mixedOutputs(flow, outputs))
    return "few-vectors";
  if (outputs.size() > 1 || (anything && oneSided))
    return "counterexample";
  return !any       ? "nothing-reaches-output"
         : oneSided ? "one-sided-output"
         : anything ? "thin-output"
                    : "bounded-output";
}

bool proof::checkRejection(Subject &s) {
  const Flow &flow = s.flow;
  s.expect("patchable", s.claim.patchable, flow.changeable());
  bool good = true;
  if (xf::ParamOp constant = xf::findUnknownConstant(flow.block())) {
    s.wrong("verdict: found rejected, and the numbers of '" + constant.getName() +
            "' are not in the file");
    good = false;
  }
  Values walls;
  SmallVector<Value> order;
  for (const Barrier &barrier : s.claim.behind) {
    Value value = s.value("behind", barrier.value);
    good &= bool(value);
    if (!value)
      continue;
    walls.insert(value);
    order.push_back(value);
    Barrier image = imageOf(flow, s.text, value);
    std::string at = "behind " + barrier.value + ": ";
    if (barrier.image == "anything") // always true
      image = {};
    else
      good &= s.expect(at + "image", barrier.image, image.image);
    s.expect(at + "radius", text(barrier.radius), text(image.radius));
    s.expect(at + "low", text(barrier.low), text(image.low));
    s.expect(at + "high", text(barrier.high), text(image.high));
    s.expect(at + "total", text(barrier.total), text(image.total));
    good &= s.expect(at + "normal", barrier.normal, image.normal);
  }
  s.expectOrder("behind", order);
  Values moved = flow.moved(walls), all = flow.moved({});
  for (auto [i, output] : llvm::enumerate(flow.outputs()))
    if (moved.contains(output)) {
      s.wrong("behind: a patch reaches output " + Twine(i) + ", " + s.text.name(output) +
              ", past all of these");
      good = false;
    }
  for (const Barrier &barrier : s.claim.behind) {
    Value value = s.text.lookup(barrier.value);
    if (!value)
      continue;
    auto param = value.getDefiningOp<xf::ParamOp>();
    if (param ? !llvm::is_contained(s.claim.patchable, param.getName()) : !all.contains(value))
      s.wrong("behind: " + barrier.value + " is moved by no patch");
  }
  if (s.claim.causes.empty())
    s.wrong("causes: found none, expected an output that is out of reach");
  int64_t last = -1; // over all causes, ascending
  for (const Cause &cause : s.claim.causes) {
    bool depends = false;
    for (int64_t output : cause.outputs)
      if (output >= int64_t(flow.outputs().size())) {
        s.wrong("causes: the block has no output " + Twine(output));
        return false;
      } else if (output <= last) {
        s.wrong("causes: output " + Twine(output) + " comes after output " + Twine(last) +
                "; expected each once and in order");
      } else {
        depends |= flow.depends(flow.outputs()[output]);
        last = output;
      }
    if (!depends) {
      s.wrong("causes: a cause names no output that the context reaches");
      good = false;
    }
    s.expect("causes: rule", cause.rule,
             ruleOfBarriers(s.structure, s.claim, s.proof.sites, cause.outputs));
    bool isContext = cause.target.scaled.empty() || cause.target.scaled == "context";
    bool known = llvm::any_of(flow.body().getOps<xf::ParamOp>(), [&](xf::ParamOp param) {
      return param.getName() == cause.target.scaled;
    });
    if (!isContext && !known) {
      s.wrong("causes: scaled: the block has no parameter '" + cause.target.scaled + "'");
      good = false;
    }
  }
  return good;
}

//===----------------------------------------------------------------------===//
// Undecided
//===----------------------------------------------------------------------===//

namespace {
/// The walk back from an output through ops that can be solved, the nearest first.
class WalkBack {
public:
  WalkBack(const Flow &flow, Value output);

  llvm::DenseSet<Operation *> stops; ///< ops that cannot be solved for an operand
  /// Whether a chain leads from an op that may be patched to the output, and its patch changes
  /// no other output.
  bool hasChain = false;

private:
  using Link = std::pair<Operation *, unsigned>;
  bool isChain(Operation *site, ArrayRef<Link> links, Value output) const;

  const Flow &flow;
};
} // namespace

WalkBack::WalkBack(const Flow &flow, Value output) : flow(flow) {
  std::vector<std::pair<Value, SmallVector<Link>>> queue{{output, {}}};
  llvm::DenseSet<Operation *> seen;
  for (size_t next = 0; next < queue.size(); ++next) {
    auto [value, links] = queue[next];
    Operation *op = value.getDefiningOp();
    if (!op || isa<xf::ParamOp>(op) || !seen.insert(op).second)
      continue;
    hasChain |= flow.refusal(op).empty() && isChain(op, links, output);
    if (flow.isOutOfScope(op))
      continue;
    for (OpOperand &operand : llvm::reverse(op->getOpOperands())) {
      unsigned index = operand.getOperandNumber();
      if (operand.get().getDefiningOp<xf::ParamOp>())
        continue;
      if (!flow.linkBreak(op, index).empty()) {
        stops.insert(op);
        continue;
      }
      SmallVector<Link> longer = links;
      longer.push_back({op, index});
      queue.push_back({operand.get(), std::move(longer)});
    }
  }
}

bool WalkBack::isChain(Operation *site, ArrayRef<Link> links, Value output) const {
  Values reached = flow.forward({site->getResult(0)});
  for (auto [op, index] : links)
    if (xf::isSolvedInParts(op))
      return false; // one of several, perhaps
  for (auto [op, index] : links)
    for (OpOperand &other : op->getOpOperands())
      if (other.getOperandNumber() != index && reached.contains(other.get()))
        return false;
  if (links.empty())
    return true;
  Values past = flow.forward({site->getResult(0)}, {output});
  return llvm::none_of(flow.outputs(), [&](Value other) { return past.contains(other); });
}

void proof::checkUndecided(Subject &s) {
  const Flow &flow = s.flow;
  llvm::DenseSet<Operation *> stops;
  unsigned outputs = 0;
  bool hasChain = false;
  for (Value output : flow.outputs()) {
    if (!flow.depends(output))
      continue;
    ++outputs;
    WalkBack walk(flow, output);
    hasChain |= walk.hasChain;
    stops.insert(walk.stops.begin(), walk.stops.end());
  }
  Names expected;
  for (Operation &op : flow.body())
    if (stops.contains(&op))
      expected.push_back(s.text.name(op.getResult(0)).str());
  s.expect("stops", s.claim.stops, expected);
  // A plan that stands by its structure, and that numbers speak against; an impossibility that none
  // show.
  if (s.claim.missing == "unconfirmed-plan" && hasChain)
    return;
  if (s.claim.missing == "unconfirmed-rejection" && outputs && (outputs > 1 || !hasChain))
    return;
  if (outputs < 2 && (hasChain || !outputs))
    s.wrong("verdict: found undecided, and the block's output can be solved for");
  s.expect("missing", s.claim.missing,
           outputs > 1 && hasChain ? "several-outputs" : "no-solvable-chain");
}
