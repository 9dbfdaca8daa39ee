#include "SureMixing.h"
#include "GraphValues.h"
#include "dialects/Graph/AtenOps.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

/// Whether a value that does not depend on the model's input is no factor of zeros and no mask that
/// hides all but the token itself: a trained parameter, a mask that the exporter has looked at, or
/// a rotation's sines and cosines.
static bool isHarmless(Value fixed, const TokenAxes &axes) {
  Value value = beforeCopies(fixed);
  if (auto stored = value.getDefiningOp<graph::StoredOp>())
    return !stored.getFixed();
  auto call = value.getDefiningOp<graph::CallOp>();
  if (!call || axes.countAxes(value) > 1)
    return call && call.getVisible();
  llvm::DenseSet<Operation *> seen;
  SmallVector<graph::CallOp> work{call};
  while (!work.empty()) {
    graph::CallOp made = work.pop_back_val();
    if (!seen.insert(made).second)
      continue;
    if (callOf(made.getResult(0), "cos") || callOf(made.getResult(0), "sin"))
      return true;
    for (Value operand : made.getOperands())
      if (auto from = operand.getDefiningOp<graph::CallOp>())
        work.push_back(from);
  }
  return false;
}

/// Ops that lose nothing that varies in general.
static bool isGeneric(graph::CallOp call, const TokenAxes &axes) {
  const graph::AtenOp *op = graph::atenOp(call);
  if (!op || !op->isGeneric)
    return false;
  StringRef name = call.getBaseName();
  bool isSum = name == "sub" || name == "add" || name == "div" || name == "mul";
  // x − x, 0 x, and what is added to itself with the other sign.
  if (isSum && (numberOf(call, "other") == 0.0 || numberOf(call, "alpha") == 0.0 ||
                (call.getTensor("self") == call.getTensor("other") && name != "mul")))
    return false;
  auto train = dyn_cast_or_null<BoolAttr>(call.getArgument("train"));
  if (train && train.getValue())
    return false;
  // A part of the tokens may be the token itself.
  static constexpr StringLiteral parts[] = {"slice", "select", "split", "split_with_sizes",
                                            "chunk", "unbind", "mean"};
  if (llvm::is_contained(parts, name) &&
      axes.countAxes(call.getOperand(0)) != axes.countAxes(call.getResult(0)))
    return false;
  return llvm::all_of(call.getOperands(), [&](Value operand) {
    return axes.isData(operand) || isHarmless(operand, axes);
  });
}

bool ctxc::pt2::surelyMixes(ArrayRef<graph::CallOp> region, const TokenAxes &axes) {
  bool weighs = false;
  for (graph::CallOp call : region) {
    if (!isGeneric(call, axes))
      return false;
    StringRef name = call.getBaseName();
    if (name != "softmax")
      continue;
    // Of scores with a row for each token, along the tokens.
    auto type = cast<graph::SymbolicType>(call.getOperand(0).getType());
    std::optional<int64_t> dim = integerOf(call, "dim");
    weighs |= dim && axes.countAxes(call.getOperand(0)) == 2 &&
              type.getSizes()[(*dim + type.getRank()) % type.getRank()] == axes.tokens();
  }
  return weighs;
}
