// The facts of contextual ops other than attention: of convolutions and recurrences.
#include "dialects/XF/FactsArith.h"
#include "dialects/XF/Sizes.h"

using namespace mlir;
using namespace ctxc::xf;

namespace {

/// W[c, k − 1] x_c(p) + …: where x_c is not zero, W is no solution of an equation that x does not
/// know (BlockFacts sees to it that x does not read W).
struct ConvFacts : FactsOpInterface::ExternalModel<ConvFacts, ConvOp> {
  Facts inferFacts(Operation *op, ArrayRef<Facts> operands) const {
    const Facts &weight = operands[0], &data = operands[1];
    if (weight.isZero() || data.isZero())
      return Facts::constant(0, weight.isZero() ? weight.why : data.why);
    if (!isGeneric(cast<ConvOp>(op).getWeight())) {
      Facts facts{Zeros::OpenSet, Zeros::OpenSet, std::nullopt, "its weights are computed"};
      facts.piecewise = true;
      return facts;
    }
    Facts facts{worse(Zeros::NullSet, data.elements), worse(Zeros::NullSet, data.vector),
                std::nullopt, data.why};
    facts.bothSigns = anyZero(data) != Zeros::OpenSet;
    return facts;
  }
};

/// a h + b: of two tokens the terms may cancel, but for those that are never negative.
struct ScanFacts : FactsOpInterface::ExternalModel<ScanFacts, ScanOp> {
  Facts inferFacts(Operation *, ArrayRef<Facts> operands) const {
    const Facts &gate = operands[0], &input = operands[1];
    if (input.isZero())
      return Facts::constant(0, input.why);
    if (gate.isZero())
      return input;
    Facts facts{Zeros::OpenSet, Zeros::OpenSet, std::nullopt, "what a recurrence adds may cancel"};
    facts.piecewise = true;
    if (gate.floor.value_or(-1) < 0 || input.floor.value_or(-1) < 0)
      return facts;
    facts.floor = input.floor;
    facts.elements = input.elements;
    facts.vector = input.vector;
    facts.why = input.why;
    return facts;
  }
};

} // namespace

void ctxc::xf::attachContextualFacts(MLIRContext &context) {
  ConvOp::attachInterface<ConvFacts>(context);
  ScanOp::attachInterface<ScanFacts>(context);
}
