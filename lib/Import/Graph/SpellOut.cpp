// Ops that are others in one: each is written as the ops that it is made of, so that a program
// means the same to every pattern whichever way its author has put it.
#include "GraphValues.h"
#include "Spelling.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

namespace {
/// Writes calls in front of one, with its module and line.
class Writer {
public:
  explicit Writer(graph::CallOp like) : builder(like), like(like) {}

  /// `target` of `a`, and of a tensor or a number.
  Value of(StringRef target, Value a, Value b, Attribute number, Type type) {
    SmallVector<Value> operands{a};
    SmallVector<NamedAttribute> arguments{{builder.getNamedAttr("self", operand(0))}};
    if (b)
      operands.push_back(b);
    arguments.push_back(builder.getNamedAttr("other", b ? Attribute(operand(1)) : number));
    return graph::CallOp::create(builder, like.getLoc(), type, target, operands,
                                 builder.getDictionaryAttr(arguments), like.getPath(),
                                 /*visible=*/false)
        .getResult(0);
  }
  /// The product of a linear layer without its bias.
  Value product(Value input, Value weight, Type type) {
    NamedAttribute arguments[] = {builder.getNamedAttr("input", operand(0)),
                                  builder.getNamedAttr("weight", operand(1))};
    return graph::CallOp::create(builder, like.getLoc(), type, like.getTarget(),
                                 ValueRange{input, weight}, builder.getDictionaryAttr(arguments),
                                 like.getPath(), /*visible=*/false)
        .getResult(0);
  }
  /// `value` times a number, unless that is 1.
  Value times(Value value, Attribute number) {
    return number ? of("aten.mul.Tensor", value, {}, number, value.getType()) : value;
  }
  void replace(Value by) { like.getResult(0).replaceAllUsesWith(by); }

private:
  Attribute operand(unsigned index) { return graph::OperandAttr::get(like.getContext(), index); }

  OpBuilder builder;
  graph::CallOp like;
};
} // namespace

/// A number that is not 1; null where it is 1, or was not given.
static Attribute factorOf(graph::CallOp call, StringRef name) {
  std::optional<double> number = numberOf(call, name);
  return number && *number != 1 ? call.getArgument(name) : Attribute();
}

/// self + α other, self − α other, and other − α self, also without α where both are tensors.
static void spellSum(graph::CallOp call) {
  Attribute alpha = factorOf(call, "alpha");
  Value self = call.getTensor("self"), other = call.getTensor("other");
  Attribute number = call.getArgument("other");
  bool isTurned = other && call.getBaseName() == "rsub";
  if ((!alpha && !isTurned) || !self || (!other && !numberOf(call, "other")))
    return;
  Writer write(call);
  Type type = call.getResult(0).getType();
  if (call.getBaseName() == "rsub") {
    Value scaled = write.times(self, alpha);
    write.replace(other ? write.of("aten.sub.Tensor", other, scaled, {}, type)
                        : write.of("aten.rsub.Scalar", scaled, {}, number, type));
    return;
  }
  if (!other)
    number = FloatAttr::get(Float64Type::get(call.getContext()),
                            *numberOf(call, "other") * *numberOf(call, "alpha"));
  write.replace(
      write.of(call.getTarget(), self, other ? write.times(other, alpha) : Value(), number, type));
}

/// self + w (end − self).
static void spellInterpolation(graph::CallOp call) {
  Value self = call.getTensor("self"), end = call.getTensor("end"),
        weight = call.getTensor("weight");
  if (!self || !end || (!weight && !numberOf(call, "weight")))
    return;
  Writer write(call);
  Type type = call.getResult(0).getType();
  Value way = write.of("aten.sub.Tensor", end, self, {}, type);
  Value part = write.of("aten.mul.Tensor", way, weight, call.getArgument("weight"), type);
  write.replace(write.of("aten.add.Tensor", self, part, {}, type));
}

/// self + v a b, and self + v a / b.
static void spellSumOfProduct(graph::CallOp call) {
  Value self = call.getTensor("self"), a = call.getTensor("tensor1"), b = call.getTensor("tensor2");
  if (!self || !a || !b || (call.getArgument("value") && !numberOf(call, "value")))
    return;
  Writer write(call);
  Type type = call.getResult(0).getType();
  StringRef target = call.getBaseName() == "addcmul" ? "aten.mul.Tensor" : "aten.div.Tensor";
  // The product has the shape of all three only where it is not repeated for the sum.
  Type ofA = a.getType();
  Value product = write.of(target, a, b, {}, ofA == b.getType() ? ofA : type);
  write.replace(
      write.of("aten.add.Tensor", self, write.times(product, factorOf(call, "value")), {}, type));
}

/// x Wᵀ + b of a matrix that is computed: what is known of the sum does not wait for the product.
static void spellLinear(graph::CallOp call) {
  Value input = call.getTensor("input"), weight = call.getTensor("weight"),
        bias = call.getTensor("bias");
  if (!input || !weight || !bias || !computedBy(weight))
    return;
  Writer write(call);
  Type type = call.getResult(0).getType();
  write.replace(write.of("aten.add.Tensor", write.product(input, weight, type), bias, {}, type));
}

void pt2::spellOut(graph::ProgramOp program) {
  static constexpr std::pair<StringLiteral, void (*)(graph::CallOp)> rules[] = {
      {"add", spellSum},
      {"sub", spellSum},
      {"rsub", spellSum},
      {"linear", spellLinear},
      {"lerp", spellInterpolation},
      {"addcmul", spellSumOfProduct},
      {"addcdiv", spellSumOfProduct}};
  for (auto call : llvm::make_early_inc_range(program.getBody().getOps<graph::CallOp>()))
    for (auto [name, rule] : rules)
      if (call.getTarget().starts_with("aten.") && call.getBaseName() == name &&
          call.getNumResults() == 1)
        rule(call);
}
