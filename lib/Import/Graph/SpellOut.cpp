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

/// The matrices whose sum `matrix` is; none where it is no sum of two of its shape.
static std::optional<Sides> summandsOf(Value matrix) {
  graph::CallOp sum = callOf(matrix, "add");
  std::optional<Sides> sides = sum ? sidesOf(sum) : std::nullopt;
  bool areAlike = sides && sides->right && sides->left.getType() == matrix.getType() &&
                  sides->right.getType() == matrix.getType();
  return areAlike ? sides : std::nullopt;
}

/// What `call`, a product with a matrix, gives for x and this matrix: of a sum that of its parts,
/// of a product one after the other.
static Value timesMatrix(Writer &write, graph::CallOp call, Value x, Value matrix) {
  bool isTransposed = call.getBaseName() == "linear";
  if (std::optional<Sides> sides = summandsOf(matrix)) {
    Value left = timesMatrix(write, call, x, sides->left);
    return write.of("aten.add.Tensor", left, timesMatrix(write, call, x, sides->right), {},
                    left.getType());
  }
  graph::CallOp scaled = callOf(matrix, "mul");
  if (std::optional<Sides> sides = scaled ? sidesOf(scaled) : std::nullopt;
      sides && sides->number && sides->left.getType() == matrix.getType())
    return write.times(timesMatrix(write, call, x, sides->left), scaled.getArgument("other"));
  for (StringRef name : {"matmul", "mm"})
    if (graph::CallOp inner = callOf(matrix, name)) {
      Value first = inner.getOperand(0), second = inner.getOperand(1);
      if (sizesOf(first).size() != 2 || sizesOf(second).size() != 2)
        break;
      if (isTransposed)
        std::swap(first, second);
      return timesMatrix(write, call, timesMatrix(write, call, x, first), second);
    }
  SmallVector<Attribute> sizes(sizesOf(x));
  sizes.back() = sizesOf(matrix)[isTransposed ? 0 : 1];
  Type type = graph::SymbolicType::get(call.getContext(), sizes, elementOf(call.getResult(0)));
  return isTransposed ? write.product(x, matrix, type)
                      : write.of(call.getTarget(), x, matrix, {}, type);
}

/// x Wᵀ + b of a matrix that is computed: what is known of the sum does not wait for the product.
/// x (W + B A) = x W + (x B) A: a change of a stored matrix W adds to the result.
static void spellProduct(graph::CallOp call) {
  bool isLinear = call.getBaseName() == "linear";
  Value x = call.getTensor(isLinear ? "input" : "self"), bias = call.getTensor("bias"),
        matrix = call.getTensor(isLinear ? "weight" : "other");
  if (!x || !matrix)
    return;
  std::optional<Sides> sides = summandsOf(matrix);
  auto isStored = [](Value value) { return bool(value.getDefiningOp<graph::StoredOp>()); };
  bool isSummed =
      sides && sizesOf(matrix).size() == 2 && (isStored(sides->left) || isStored(sides->right));
  if (!isSummed && (!bias || !computedBy(matrix)))
    return;
  Writer write(call);
  Type type = call.getResult(0).getType();
  Value product = isSummed ? timesMatrix(write, call, x, matrix) : write.product(x, matrix, type);
  write.replace(bias ? write.of("aten.add.Tensor", product, bias, {}, type) : product);
}

void pt2::spellOut(graph::ProgramOp program) {
  static constexpr std::pair<StringLiteral, void (*)(graph::CallOp)> rules[] = {
      {"add", spellSum},
      {"sub", spellSum},
      {"rsub", spellSum},
      {"linear", spellProduct},
      {"matmul", spellProduct},
      {"lerp", spellInterpolation},
      {"addcmul", spellSumOfProduct},
      {"addcdiv", spellSumOfProduct}};
  for (auto call : llvm::make_early_inc_range(program.getBody().getOps<graph::CallOp>()))
    for (auto [name, rule] : rules)
      if (call.getTarget().starts_with("aten.") && call.getBaseName() == name &&
          call.getNumResults() == 1)
        rule(call);
}
