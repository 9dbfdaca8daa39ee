// Rejected and undecided by structure. A rejection names barriers: values that hold all
// that patches move, each with the image that its op gives it whatever it reads.
#include "Claims.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::proof;

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

/// What the facts of `value` say of its image.
static Barrier imageOf(const Flow &flow, Value value) {
  Barrier barrier;
  const xf::Facts &facts = flow.facts(value);
  if (facts.length) {
    barrier.image = "ball";
    barrier.radius = *facts.length;
  } else if (facts.bound || facts.floor) {
    barrier.image = "box";
    barrier.high = facts.bound;
    if (facts.bound)
      barrier.low = -*facts.bound;
    if (facts.floor && !(barrier.low && *barrier.low > *facts.floor))
      barrier.low = facts.floor;
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
    anything |= reaches && barrier.image == "anything";
    oneSided |= reaches && barrier.image == "box" && !(barrier.low && barrier.high);
  }
  if (outputs.size() > 1 || (anything && oneSided))
    return "counterexample";
  return !any ? "nothing-reaches-output" : oneSided ? "one-sided-output" : anything ? "thin-output" : "bounded-output";
}

bool proof::checkRejection(Subject &s) {
  const Flow &flow = s.flow;
  s.expect("patchable", s.claim.patchable, flow.changeable());
  bool good = true;
  Values walls;
  for (const Barrier &barrier : s.claim.behind) {
    Value value = s.value("behind", barrier.value);
    good &= bool(value);
    if (!value)
      continue;
    if (!walls.insert(value).second)
      s.wrong("behind: " + barrier.value + " is named twice");
    Barrier image = imageOf(flow, value);
    std::string at = "behind " + barrier.value + ": ";
    if (barrier.image == "anything") // always true
      image = {};
    else
      s.expect(at + "image", barrier.image, image.image);
    s.expect(at + "radius", text(barrier.radius), text(image.radius));
    s.expect(at + "low", text(barrier.low), text(image.low));
    s.expect(at + "high", text(barrier.high), text(image.high));
  }
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
  std::set<int64_t> seen;
  for (const Cause &cause : s.claim.causes) {
    bool depends = false;
    for (int64_t output : cause.outputs)
      if (output >= int64_t(flow.outputs().size())) {
        s.wrong("causes: the block has no output " + Twine(output));
        return false;
      } else if (!seen.insert(output).second) {
        s.wrong("causes: output " + Twine(output) + " is named twice");
      } else {
        depends |= flow.depends(flow.outputs()[output]);
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
/// The walk back from an output through what can be solved.
struct WalkBack {
  explicit WalkBack(const Flow &flow) : flow(flow) {}

  void from(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || isa<xf::ParamOp>(op) || !seen.insert(op).second)
      return;
    if (flow.refusal(op).empty())
      sites.push_back(op);
    if (flow.isOutOfScope(op))
      return;
    for (OpOperand &operand : op->getOpOperands()) {
      if (operand.get().getDefiningOp<xf::ParamOp>())
        continue;
      if (flow.linkBreak(op, operand.getOperandNumber()).empty())
        from(operand.get());
      else
        stops.insert(op);
    }
  }

  const Flow &flow;
  llvm::DenseSet<Operation *> seen, stops;
  SmallVector<Operation *> sites;
};
} // namespace

void proof::checkUndecided(Subject &s) {
  const Flow &flow = s.flow;
  llvm::DenseSet<Operation *> stops;
  std::set<Value, bool (*)(Value, Value)> outputs(
      [](Value a, Value b) { return a.getAsOpaquePointer() < b.getAsOpaquePointer(); });
  for (Value output : flow.outputs()) {
    if (!flow.depends(output))
      continue;
    outputs.insert(output);
    WalkBack walk(flow);
    walk.from(output);
    stops.insert(walk.stops.begin(), walk.stops.end());
  }
  Names expected;
  for (Operation &op : flow.body())
    if (stops.contains(&op))
      expected.push_back(s.text.name(op.getResult(0)).str());
  s.expect("stops", s.claim.stops, expected);
  if (outputs.empty())
    s.wrong("verdict: found undecided, expected controllable: the context reaches no output");
  if (s.claim.missing != "no-solvable-chain" && s.claim.missing != "several-outputs")
    s.wrong("missing: found '" + s.claim.missing +
            "', expected no-solvable-chain or several-outputs");
  if (s.claim.missing == "several-outputs" && outputs.size() < 2)
    s.wrong("missing: found several-outputs, expected no-solvable-chain for a block of one output");
}
