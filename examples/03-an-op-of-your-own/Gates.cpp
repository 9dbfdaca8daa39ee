// What the analyses ask of the ops: where a result can be zero, which values it can take, and how
// an output chain goes through it; and of the one with a parameter, how a patch of that is formed.
#include "Gates.h"

using namespace mlir;
using namespace gates;
using namespace ctxc;
using xf::ActivationKind;
using xf::Facts;
using xf::Solvability;
using xf::Zeros;

#include "GatesDialect.cpp.inc"
#define GET_OP_CLASSES
#include "GatesOps.cpp.inc"

void GatesDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "GatesOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// gates.mix
//===----------------------------------------------------------------------===//

// Both weights lie strictly between 0 and 1: a mixture is zero on a null set, unless a and b are
// both zero on open sets.
Facts MixOp::inferFacts(ArrayRef<Facts> operands) {
  const Facts &a = operands[1], &b = operands[2];
  Facts facts;
  facts.vector = std::max(Zeros::NullSet, std::min(a.vector, b.vector));
  facts.elements = std::max(
      Zeros::NullSet, std::min(std::max(a.vector, a.elements), std::max(b.vector, b.elements)));
  if (a.bound && b.bound)
    facts.bound = std::max(*a.bound, *b.bound);
  facts.why = a.why.empty() ? b.why : a.why;
  return facts;
}

Solvability MixOp::getSolvability(unsigned index, std::string &reason) {
  if (index != 0)
    return Solvability::Exact;
  reason = "a mixture stays between its two inputs, whatever the gate";
  return Solvability::No;
}

// 1/σ(s) = 1 + e⁻ˢ gives a = y + (y − b) ⊙ e⁻ˢ, and in the same way b = y + (y − a) ⊙ eˢ.
Value MixOp::buildSolve(OpBuilder &b, unsigned index, Value target, ValueRange operands) {
  Value exponent = operands[0], other = operands[index == 1 ? 2 : 1];
  if (index == 1)
    exponent = xf::TimesOp::create(b, getLoc(), exponent, APFloat(-1.0f));
  Value ratio = xf::ActivationOp::create(b, getLoc(), ActivationKind::exp, exponent);
  Value difference = xf::SubOp::create(b, getLoc(), target, other);
  Value correction = xf::MulOp::create(b, getLoc(), difference, ratio);
  return xf::AddOp::create(b, getLoc(), target, correction);
}

//===----------------------------------------------------------------------===//
// gates.softsign
//===----------------------------------------------------------------------===//

// Zero where x is, and always inside (−1, 1).
Facts SoftsignOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = operands[0];
  facts.bound = 1.0;
  facts.length.reset();
  facts.floor.reset();
  facts.ceiling.reset();
  return facts;
}

Solvability SoftsignOp::getSolvability(unsigned, std::string &reason) {
  reason = "softsign's output stays between -1 and 1";
  return Solvability::No;
}

Value SoftsignOp::buildSolve(OpBuilder &, unsigned, Value, ValueRange) {
  llvm_unreachable("softsign is not solvable");
}

//===----------------------------------------------------------------------===//
// gates.shift
//===----------------------------------------------------------------------===//

LogicalResult ShiftOp::verify() {
  if (getRate().isZero() || !getRate().isFinite())
    return emitOpError("found rate ") << getRate().convertToDouble() << ", expected a number but 0";
  if (getData().getType().getShape() != getBias().getType().getShape())
    return emitOpError("found a bias of type ")
           << getBias().getType() << ", expected the data's shape, " << getData().getType();
  return success();
}

// A bias makes a zero a coincidence, and lifts any bound.
Facts ShiftOp::inferFacts(ArrayRef<Facts>) { return {Zeros::NullSet, Zeros::NullSet}; }

// x = y − rate · b
Solvability ShiftOp::getSolvability(unsigned, std::string &) { return Solvability::Exact; }
Value ShiftOp::buildSolve(OpBuilder &b, unsigned, Value target, ValueRange) {
  APFloat opposite = getRate();
  opposite.changeSign();
  return ShiftOp::create(b, getLoc(), target, getBias(), opposite);
}

// Whatever the data is, a change of b brings the result to any target.
OpOperand &ShiftOp::getParameterOperand() { return getBiasMutable(); }
OpOperand &ShiftOp::getDataOperand() { return getDataMutable(); }
xf::Obligation ShiftOp::getObligation() { return xf::Obligation::None; }
xf::ChangeForm ShiftOp::getChangeForm() { return xf::ChangeForm::Delta; }
StringRef ShiftOp::getLemma(xf::ControlRole role) {
  return role == xf::ControlRole::Input ? "input controllability of biases"
                                        : "output controllability of outer bias";
}

// The patch is one vector, Δb = (t − y) / rate for the target t and the result y without it.
SmallVector<Type> ShiftOp::getPartTypes() { return {getType()}; }
patch::PatchForm ShiftOp::getPatchForm() { return {patch::PatchForm::Delta}; }
SmallVector<Value> ShiftOp::buildParts(OpBuilder &b, const patch::PatchRequest &request) {
  Value difference = xf::SubOp::create(b, getLoc(), request.target, request.result);
  return {xf::TimesOp::create(b, getLoc(), difference, APFloat(1.0f) / getRate())};
}
Value ShiftOp::buildPatched(OpBuilder &b, ValueRange operands, Value, ValueRange parts) {
  Value bias = patch::ApplyDeltaOp::create(b, getLoc(), getType(), operands[1], parts[0]);
  return ShiftOp::create(b, getLoc(), operands[0], bias, getRate());
}
