#include "ctxc/Transforms/WrittenForms.h"
#include "MaskedSums.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace ctxc;
using llvm::APFloat;

/// What an activation reads, if it is of this kind; null otherwise.
static Value dataOf(Value value, xf::ActivationKind kind) {
  auto activation = value.getDefiningOp<xf::ActivationOp>();
  return activation && activation.getKind() == kind ? activation.getData() : Value();
}

/// `value` as a factor times another value, which is no product with a number.
static std::pair<Value, double> withFactor(Value value) {
  double factor = 1;
  while (auto times = value.getDefiningOp<xf::TimesOp>()) {
    factor *= times.getFactor().convertToDouble();
    value = times.getData();
  }
  return {value, factor};
}

static bool isNegated(Value value, Value of) {
  auto [x, factor] = withFactor(value);
  auto [y, other] = withFactor(of);
  return x == y && factor == -other;
}

/// x |x| and x³.
static Value powerOf(OpBuilder &b, xf::MulOp mul) {
  auto make = [&](Value x, int64_t n) {
    return xf::PowerOp::create(b, mul.getLoc(), x, n, /*root=*/false);
  };
  for (auto [x, other] : {std::pair(mul.getLhs(), mul.getRhs()), {mul.getRhs(), mul.getLhs()}}) {
    if (dataOf(other, xf::ActivationKind::abs) == x)
      return make(x, 2);
    auto square = other.getDefiningOp<xf::MulOp>();
    if (square && square.getLhs() == x && square.getRhs() == x)
      return make(x, 3);
  }
  return {};
}

/// x + y, or x − y, where that is a function of one value.
static Value sumOf(OpBuilder &b, Location loc, Value x, Value y, double sign) {
  using Kind = xf::ActivationKind;
  auto [first, factor] = withFactor(x);
  auto [second, other] = withFactor(y);
  other *= sign;
  auto one = first.getDefiningOp<xf::ActivationOp>(),
       two = second.getDefiningOp<xf::ActivationOp>();
  if (!one || !two || one.getKind() != two.getKind() || !isNegated(two.getData(), one.getData()))
    return {};
  // f(x) − f(−x) = x for each of these.
  static constexpr Kind halves[] = {Kind::relu,      Kind::silu,     Kind::gelu,
                                    Kind::gelu_tanh, Kind::softplus, Kind::quick_gelu};
  if (factor == -other && llvm::is_contained(halves, one.getKind())) {
    if (factor == 1)
      return one.getData();
    return xf::TimesOp::create(b, loc, one.getData(), APFloat(float(factor)));
  }
  // c relu(x) − d relu(−x), for a positive d / c.
  if (one.getKind() != Kind::relu || !(factor * other < 0) || std::abs(other) > std::abs(factor))
    return {};
  Value leaky = xf::LeakyOp::create(b, loc, one.getData(), APFloat(float(-other / factor)));
  return factor == 1 ? leaky : xf::TimesOp::create(b, loc, leaky, APFloat(float(factor)));
}

/// W a + W b, of products that nothing else reads.
static Value productOf(OpBuilder &b, xf::AddOp add) {
  auto one = add.getLhs().getDefiningOp<xf::LinearOp>(),
       two = add.getRhs().getDefiningOp<xf::LinearOp>();
  auto nameOf = [](xf::LinearOp op) {
    auto param = op.getWeight().getDefiningOp<xf::ParamOp>();
    return param ? param.getName() : StringRef();
  };
  bool isSame = one && two && one != two && !nameOf(one).empty() && nameOf(one) == nameOf(two) &&
                one.getTransposed() == two.getTransposed() && one->hasOneUse() &&
                two->hasOneUse() && one.getData().getType() == two.getData().getType();
  if (!isSame)
    return {};
  Value sum = xf::AddOp::create(b, add.getLoc(), one.getData(), two.getData());
  return xf::LinearOp::create(b, add.getLoc(), one.getWeight(), sum, one.getTransposed());
}

/// x + b + b.
static Value biasOf(OpBuilder &b, xf::BiasOp bias) {
  auto inner = bias.getData().getDefiningOp<xf::BiasOp>();
  auto own = bias.getBias().getDefiningOp<xf::ParamOp>(),
       other = inner ? inner.getBias().getDefiningOp<xf::ParamOp>() : xf::ParamOp();
  if (!own || !other || own.getName() != other.getName() || !inner->hasOneUse())
    return {};
  Location loc = bias.getLoc();
  Value half = xf::TimesOp::create(b, loc, inner.getData(), APFloat(0.5f));
  Value sum = xf::BiasOp::create(b, loc, half, bias.getBias());
  return xf::TimesOp::create(b, loc, sum, APFloat(2.0f));
}

static Value formOf(Operation &op) {
  OpBuilder builder(&op);
  if (auto mul = dyn_cast<xf::MulOp>(op))
    return powerOf(builder, mul);
  if (auto bias = dyn_cast<xf::BiasOp>(op))
    return biasOf(builder, bias);
  if (auto sub = dyn_cast<xf::SubOp>(op))
    return sumOf(builder, op.getLoc(), sub.getLhs(), sub.getRhs(), -1);
  auto add = dyn_cast<xf::AddOp>(op);
  if (!add)
    return {};
  if (Value product = productOf(builder, add))
    return product;
  Value sum = sumOf(builder, op.getLoc(), add.getLhs(), add.getRhs(), 1);
  return sum ? sum : sumOf(builder, op.getLoc(), add.getRhs(), add.getLhs(), 1);
}

unsigned ctxc::recognizeForms(ModuleOp module) {
  unsigned count = 0;
  for (xf::BlockOp block : module.getOps<xf::BlockOp>()) {
    Block &body = block.getBody().front();
    unsigned before = count;
    count += joinMaskedTerms(block);
    for (Operation &op : llvm::make_early_inc_range(body))
      if (Value form = formOf(op)) {
        op.getResult(0).replaceAllUsesWith(form);
        ++count;
      }
    if (count == before)
      continue;
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (op.use_empty() && isMemoryEffectFree(&op) && !op.hasTrait<OpTrait::IsTerminator>() &&
          isa<xf::ActivationOp, xf::TimesOp, xf::MulOp, xf::AddOp, xf::SubOp, xf::BiasOp,
              xf::LinearOp>(op))
        op.erase();
  }
  return count;
}
