// How far patches can move each op's result (ReachOpInterface).
#include "dialects/XF/FixedMatrix.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace mlir;
using namespace ctxc::xf;

static int64_t entries(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

static bool isFixed(const Reach &reach) { return reach.kind == Reach::Fixed; }

/// The parameter's name in the text of a bound.
static std::string nameOf(Value parameter) {
  auto param = parameter.getDefiningOp<ParamOp>();
  return param ? param.getName().str() : "its parameter";
}

//===----------------------------------------------------------------------===//
// Ops with a parameter: changed by a patch, or fixed
//===----------------------------------------------------------------------===//

/// The reach of a patchable matrix times fixed data: free, unless the data is zero.
static Reach ofPatchedMatrix(const Reach &data, const Facts &facts) {
  return isFixed(data) && facts.isZero() ? Reach::fixed() : Reach::free();
}

Reach LinearOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts> facts) {
  Reach reach = operands[1];
  if (!isFixed(operands[0]))
    return ofPatchedMatrix(reach, facts[1]);
  int64_t in = cast<RankedTensorType>(getData().getType()).getShape().back();
  int64_t out = cast<RankedTensorType>(getType()).getShape().back();
  int64_t rows = entries(getResult()) / out;
  if (reach.kind == Reach::Bounded) {
    reach.factors += "·‖" + nameOf(getWeight()) + "‖₂";
    return reach;
  }
  std::optional<MatrixFacts> matrix = matrixFacts(*this, facts[0]);
  int64_t most = matrix && matrix->rank ? *matrix->rank : in;
  if (reach.kind == Reach::Thin && reach.dimensions <= most * rows)
    return reach.dimensions < out * rows ? reach : Reach::free();
  if (most < out)
    return Reach::thin(*this, most * rows);
  // As many rays as there are dimensions span a cone, which does not reach the other side of some
  // direction.
  if (reach.kind == Reach::OneSided && in == out)
    return Reach::oneSided(reach, 0);
  return Reach::free();
}

Reach ExpertLinearOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts> facts) {
  // Selecting other experts means multiplying with other matrices.
  if (!isFixed(operands[1]))
    return Reach::free();
  return isFixed(operands[0]) ? Reach::free() : ofPatchedMatrix(operands[2], facts[2]);
}

Reach ScaleOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts> facts) {
  Reach reach = operands[0];
  if (!isFixed(operands[1])) {
    if (!isFixed(reach))
      return Reach::free();
    if (facts[0].isZero())
      return Reach::fixed();
    int64_t numbers = entries(getScale());
    if (facts[0].zeroSomewhere)
      return Reach::thin(*this, std::min(numbers, entries(getResult()) - 1), facts[0].why);
    return Reach::thin(*this, numbers);
  }
  if (reach.kind == Reach::Bounded) {
    std::string factor = nameOf(getScale());
    if (double offset = getOffset().convertToDouble()) {
      std::string text;
      llvm::raw_string_ostream(text) << llvm::format("%g", offset);
      factor = text + " + " + factor;
    }
    reach.factors += "·‖" + factor + "‖∞";
  }
  reach.sign = 0;
  return reach;
}

// Whether the bias may be patched or not, and whether or not the leading dimensions share it.
Reach BiasOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts>) {
  if (isFixed(operands[1]))
    return operands[0];
  return sum(*this, operands[0], Reach::thin(*this, entries(getBias())));
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Reach AddOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts>) {
  return sum(*this, operands[0], operands[1]);
}

Reach SubOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts>) {
  return sum(*this, operands[0], times(operands[1], -1));
}

Reach TimesOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts>) {
  return times(operands[0], getFactor().convertToDouble());
}

Reach MulOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts> facts) {
  bool isOneNumber = getLhs().getType() != getRhs().getType();
  if (isFixed(operands[1]))
    return byFactor(*this, operands[0], facts[1], entries(getRhs()));
  if (!isFixed(operands[0]))
    return Reach::free();
  return isOneNumber ? Reach::thin(*this, 1)
                     : byFactor(*this, operands[1], facts[0], entries(getLhs()));
}

Reach DivOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts>) {
  if (!isFixed(operands[1]) || operands[0].kind == Reach::Bounded)
    return Reach::free();
  Reach quotient = operands[0];
  quotient.sign = 0;
  return quotient;
}

//===----------------------------------------------------------------------===//
// Bijections, entry by entry
//===----------------------------------------------------------------------===//

/// Entries keep their signs. How far bounded ones move follows from the result's facts, or from how
/// steep the function is.
static Reach ofBijection(const Reach &reach, double stretch) {
  if (reach.kind != Reach::Bounded)
    return reach.kind == Reach::Thin ? Reach::free() : reach; // the image of a subspace is curved
  return stretch > 0 ? times(reach, stretch) : Reach::free();
}

Reach LeakyOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts>) {
  return ofBijection(operands[0], std::max(1.0, getSlope().convertToDouble()));
}
Reach PowerOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts>) {
  return ofBijection(operands[0], 0);
}
Reach RoundOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts>) { return operands[0]; }

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

// All rows are equal, and together reach no more than one row does.
Reach BroadcastOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts>) {
  const Reach &reach = operands[0];
  int64_t count = cast<RankedTensorType>(getType()).getDimSize(0);
  if (reach.kind == Reach::Bounded)
    return times(reach, std::sqrt(double(count)));
  return reach.kind == Reach::Free ? Reach::thin(*this, entries(getData())) : reach;
}

Reach ReshapeOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts>) { return operands[0]; }

Reach RotaryOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts>) {
  Reach turned = operands[0]; // orthogonal, except for the amplitude
  if (turned.kind == Reach::Bounded)
    turned = times(turned, getStretch());
  turned.sign = 0;
  return turned;
}

Reach SliceOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts>) {
  const Reach &reach = operands[0];
  bool isAll = reach.kind == Reach::Thin && reach.dimensions >= entries(getResult());
  // A direction other than an entry's may involve entries that the slice leaves out.
  return isAll || (reach.kind == Reach::OneSided && reach.sign == 0) ? Reach::free() : reach;
}

// Parts that do not move restrict the whole to an affine subspace.
Reach ConcatOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts>) {
  int64_t moving = 0;
  bool allFree = true;
  Reach result = Reach::fixed();
  for (auto [value, part] : llvm::zip_equal(getParts(), operands)) {
    if (isFixed(part))
      continue;
    moving += part.kind == Reach::Thin ? part.dimensions : entries(value);
    allFree &= part.kind == Reach::Free || part.kind == Reach::Thin;
    result = join(result, part);
  }
  // A half line beside a fixed entry is still a half line.
  if (result.kind == Reach::Bounded || result.kind == Reach::OneSided)
    return result;
  return allFree ? Reach::thin(*this, moving) : Reach::free();
}
