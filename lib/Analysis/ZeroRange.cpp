#include "ctxc/Analysis/ZeroRange.h"

using namespace mlir;
using namespace ctxc;
using xf::Zeros;

ZeroRange::ZeroRange(xf::BlockOp block) {
  Block &body = block.getBody().front();
  for (Value arg : body.getArguments())
    table[arg] = {Zeros::NullSet, Zeros::NullSet, std::nullopt, ""};
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
  case xf::Obligation::NonzeroVector:
    return facts(value).vector;
  case xf::Obligation::NonzeroElements:
    return std::max(facts(value).elements, facts(value).vector);
  }
  llvm_unreachable("an obligation of no known kind");
}
