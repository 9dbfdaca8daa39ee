#include "ctxc/Analysis/ZeroRange.h"

using namespace mlir;
using namespace ctxc;
using xf::Zeros;

ZeroRange::ZeroRange(xf::BlockOp block) {
  Block &body = block.getBody().front();
  for (Value arg : body.getArguments()) {
    xf::Facts &facts = table[arg] = {Zeros::NullSet, Zeros::NullSet, std::nullopt, ""};
    facts.bothSigns = true; // activations have both signs in general
  }
  for (Operation &op : body) {
    SmallVector<xf::Facts> operands;
    for (Value operand : op.getOperands())
      operands.push_back(facts(operand));
    auto speaker = dyn_cast<xf::FactsOpInterface>(op);
    for (OpResult result : op.getResults())
      table[result] =
          speaker && result.getResultNumber() == 0 ? speaker.inferFacts(operands) : xf::Facts();
  }
}

Zeros ZeroRange::failure(xf::Obligation obligation, Value value) const {
  switch (obligation) {
  case xf::Obligation::None:
    return Zeros::Never;
  case xf::Obligation::NonzeroVector: {
    // Each of several vectors must be nonzero.
    auto type = cast<RankedTensorType>(value.getType());
    bool single = type.getNumElements() == type.getShape().back();
    return single ? facts(value).vector : std::max(facts(value).elements, facts(value).vector);
  }
  case xf::Obligation::NonzeroElements:
    return std::max(facts(value).elements, facts(value).vector);
  case xf::Obligation::SameSelection:
    return Zeros::NullSet; // scores are equal but for rounding: selections differ only at ties
  case xf::Obligation::NonzeroSum: {
    // Entries of one sign do not cancel.
    const xf::Facts &f = facts(value);
    return f.floor && *f.floor >= 0 ? f.vector : std::max(Zeros::NullSet, f.vector);
  }
  }
  llvm_unreachable("an obligation of no known kind");
}
