#include "ctxc/Analysis/PatchReach.h"
#include "lib/Analysis/Entries.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;

static std::string text(double x) {
  std::string result;
  llvm::raw_string_ostream(result) << llvm::format("%g", x);
  return result;
}

/// "2·√640", or "2·30·√640" for entries of at most 30.
static std::string diameterText(double perEntry, int64_t n) {
  std::string factor = perEntry == 1 ? "" : text(perEntry) + "·";
  return "2·" + factor + "√" + std::to_string(n);
}

/// The image of `op`, which no patch can leave, if it is bounded.
Reach PatchReach::image(Operation *op) const {
  const xf::Facts &facts = zeros.facts(op->getResult(0));
  int64_t n = entries(op->getResult(0));
  if (facts.length) {
    int64_t square = std::llround(*facts.length * *facts.length);
    return Reach::bounded(op, 2 * *facts.length, diameterText(1, square));
  }
  if (facts.bound)
    return Reach::bounded(op, 2 * *facts.bound * std::sqrt(double(n)),
                          diameterText(*facts.bound, n));
  if (facts.total)
    return Reach::thin(op, n - 1);
  Reach reach = Reach::free();
  reach.origins = {op};
  return facts.floor     ? Reach::oneSided(reach, 1)
         : facts.ceiling ? Reach::oneSided(reach, -1)
                         : reach;
}

Reach PatchReach::transfer(Operation *op) const {
  if (auto param = dyn_cast<xf::ParamOp>(op))
    return sites.isFrozen(param) ? Reach::fixed() : Reach::free();
  // Patches do not change the contextual part's own parameters.
  SmallVector<Reach> operands;
  SmallVector<xf::Facts> facts;
  for (Value operand : op->getOperands()) {
    bool own =
        operand.getDefiningOp<xf::ParamOp>() && sites.isOutOfScope(op) && !sites.followsContext(op);
    operands.push_back(own ? Reach::fixed() : reach(operand));
    facts.push_back(zeros.facts(operand));
  }
  if (llvm::all_of(operands, [](const Reach &r) { return r.kind == Reach::Fixed; }))
    return Reach::fixed();
  if (sites.isOutOfScope(op))
    return Reach::free();

  Reach bound = image(op);
  auto speaker = dyn_cast<xf::ReachOpInterface>(op);
  Reach result = speaker ? speaker.inferReach(operands, facts) : Reach::free();
  if (result.kind == Reach::Bounded && bound.kind == Reach::Bounded && result.factors.empty() &&
      result.distance)
    return *result.distance <= *bound.distance ? result : bound;
  bool boundIsBetter = bound.kind == Reach::Fixed || bound.kind == Reach::Bounded;
  return boundIsBetter || result.kind == Reach::Free ? bound : result;
}

PatchReach::PatchReach(const BlockGraph &graph, const Sites &sites, const ZeroRange &zeros)
    : sites(sites), zeros(zeros) {
  Block &body = graph.getBlock().getBody().front();
  for (Value arg : body.getArguments())
    table[arg] = Reach::fixed();
  for (Operation &op : body)
    for (Value result : op.getResults())
      table[result] = transfer(&op);
}
