// Ops as PyTorch's modules call them, where a program has them in parts: `run_decompositions()`
// with PyTorch's own table leaves only the ops of its core.
#include "GraphValues.h"
#include "Spelling.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

namespace {
/// The arguments of a call that is made anew.
struct NewCall {
  OpBuilder builder;
  graph::CallOp like; ///< has the same module and line
  SmallVector<Value> operands;
  SmallVector<NamedAttribute> arguments;

  explicit NewCall(graph::CallOp like) : builder(like), like(like) {}
  NewCall &tensor(StringRef name, Value value) {
    auto index = graph::OperandAttr::get(like.getContext(), unsigned(operands.size()));
    operands.push_back(value);
    return argument(name, index);
  }
  NewCall &argument(StringRef name, Attribute value) {
    arguments.push_back(builder.getNamedAttr(name, value));
    return *this;
  }
  /// Puts a call of `target` in the place of `result`.
  void replace(Value result, StringRef target) {
    auto made = graph::CallOp::create(builder, like.getLoc(), result.getType(), target, operands,
                                      builder.getDictionaryAttr(arguments), like.getPath(),
                                      like.getVisible());
    result.replaceAllUsesWith(made.getResult(0));
  }
};
} // namespace

/// A norm whose further results only training needs.
static void recomposeNorm(graph::CallOp call) {
  auto isUnused = [](Value result) { return result.use_empty(); };
  if (!llvm::all_of(call.getResults().drop_front(), isUnused))
    return;
  NewCall made(call);
  made.operands = llvm::to_vector(call.getOperands());
  made.arguments = llvm::to_vector(call.getArguments());
  bool isLayer = call.getTarget() == "aten.native_layer_norm.default";
  made.replace(call.getResult(0), isLayer ? "aten.layer_norm.default" : "aten.batch_norm.default");
}

namespace {
/// An operand of bmm.
struct Factor {
  Value whole;                 ///< with all leading axes
  Value value;                 ///< before they were repeated, which matmul does itself
  ArrayRef<Attribute> leading; ///< the axes of `whole` that are one in bmm
};
} // namespace

/// What `value` was before its leading axes were made one; null where they were not.
static Factor beforeMerging(Value value) {
  graph::CallOp view = callOf(value, "view");
  if (!view)
    return {};
  Value whole = view.getOperand(0);
  ArrayRef<Attribute> sizes = sizesOf(whole);
  if (sizes.size() < 3 || sizesOf(value).size() != 3 ||
      sizes.take_back(2) != sizesOf(value).take_back(2))
    return {};
  Factor factor{beforeCopies(whole), beforeCopies(whole), sizes.drop_back(2)};
  if (graph::CallOp repeated = callOf(factor.value, "expand")) {
    Value one = repeated.getOperand(0);
    if (sizesOf(one).size() >= 2 && sizesOf(one).take_back(2) == sizes.take_back(2))
      factor.value = one;
  }
  return factor;
}

/// Whether the product of both has all leading axes: each of them is that of one or the other.
static bool haveLeading(const Factor &a, const Factor &b) {
  auto has = [&](const Factor &factor, size_t fromBehind) {
    ArrayRef<Attribute> own = sizesOf(factor.value).drop_back(2);
    return fromBehind < own.size() &&
           own[own.size() - 1 - fromBehind] == a.leading[a.leading.size() - 1 - fromBehind];
  };
  return llvm::all_of(llvm::seq(a.leading.size()),
                      [&](size_t axis) { return has(a, axis) || has(b, axis); });
}

/// matmul(a, b), where each leading axis stands for itself.
static void recomposeParts(graph::CallOp product, Value result) {
  Factor a = beforeMerging(product.getTensor("self")), b = beforeMerging(product.getTensor("mat2"));
  if (!a.value || !b.value || a.leading != b.leading)
    return;
  if (!haveLeading(a, b))
    a.value = a.whole;
  for (Operation *user : result.getUsers()) {
    auto view = dyn_cast<graph::CallOp>(user);
    if (!view || view.getTarget() != "aten.view.default")
      continue;
    ArrayRef<Attribute> sizes = sizesOf(view.getResult(0));
    if (sizes.size() >= 3 && sizes.drop_back(2) == a.leading &&
        sizes.take_back(2) == sizesOf(result).take_back(2))
      NewCall(view)
          .tensor("self", a.value)
          .tensor("other", b.value)
          .replace(view.getResult(0), "aten.matmul.default");
  }
}

/// matmul(a, b): mm, or bmm, for which leading axes are made one.
static void recomposeProduct(graph::CallOp call) {
  recomposeParts(call, call.getResult(0));
  NewCall(call)
      .tensor("self", call.getTensor("self"))
      .tensor("other", call.getTensor("mat2"))
      .replace(call.getResult(0), "aten.matmul.default");
}

/// rsub(x, c) = c − x.
static void recomposeFromNumber(graph::CallOp call) {
  if (numberOf(call, "self") && call.getNumOperands() == 1 && !call.getArgument("alpha"))
    NewCall(call)
        .tensor("self", call.getOperand(0))
        .argument("other", call.getArgument("self"))
        .replace(call.getResult(0), "aten.rsub.Scalar");
}

/// diff(x, prepend=p): p and x side by side from the second entry on, minus the same up to the
/// last.
static void recomposeDifference(graph::CallOp call) {
  std::optional<Sides> sides = sidesOf(call);
  graph::CallOp later = sides && sides->right ? callOf(sides->left, "slice") : graph::CallOp();
  graph::CallOp earlier = later ? callOf(sides->right, "slice") : graph::CallOp();
  if (!earlier || later.getOperand(0) != earlier.getOperand(0) ||
      later.getArgument("dim") != earlier.getArgument("dim") || !later.getArgument("dim") ||
      integerOf(later, "start") != 1 || integerOf(earlier, "start").value_or(0) != 0 ||
      later.getArgument("step") || earlier.getArgument("step"))
    return;
  graph::CallOp both = callOf(later.getOperand(0), "cat");
  auto list = both ? dyn_cast_or_null<ArrayAttr>(both.getArgument("tensors")) : ArrayAttr();
  std::optional<int64_t> dim = integerOf(later, "dim");
  if (!list || list.size() != 2 || !dim || integerOf(both, "dim").value_or(0) != *dim)
    return;
  auto tensorAt = [&](unsigned i) {
    auto operand = dyn_cast<graph::OperandAttr>(list[i]);
    return operand ? both.getOperand(operand.getIndex()) : Value();
  };
  Value before = tensorAt(0), x = tensorAt(1);
  int64_t axis = *dim < 0 ? *dim + int64_t(sizesOf(call.getResult(0)).size()) : *dim;
  // Both slices have as many entries as x, behind the one in front.
  if (!before || !x || x.getType() != call.getResult(0).getType() ||
      later.getResult(0).getType() != x.getType() ||
      earlier.getResult(0).getType() != x.getType() || axis < 0 ||
      axis >= cast<graph::SymbolicType>(before.getType()).getRank() ||
      cast<graph::SymbolicType>(before.getType()).getNumber(unsigned(axis)) != 1)
    return;
  NewCall made(call);
  made.tensor("self", x).tensor("prepend", before);
  made.argument("n", made.builder.getI64IntegerAttr(1)).argument("dim", later.getArgument("dim"));
  made.replace(call.getResult(0), "aten.diff.default");
}

/// The number that `value`, which has no axis, is everywhere.
static Attribute filledWith(Value value) {
  value = beforeCopies(value);
  if (!sizesOf(value).empty())
    return {};
  for (auto [name, argument] : {std::pair("scalar_tensor", "s"), std::pair("full", "fill_value")})
    if (graph::CallOp call = callOf(value, name); call && numberOf(call, argument))
      return call.getArgument(argument);
  return {};
}

/// What is written log(1 + eˣ).
static Value softplusOf(Value value) {
  value = beforeCopies(value);
  graph::CallOp log = callOf(value, "log"), more = callOf(value, "log1p");
  Value power = more ? more.getOperand(0) : Value();
  if (log)
    power = besideNumber(callOf(beforeCopies(log.getOperand(0)), "add"), 1);
  graph::CallOp exp = power ? callOf(beforeCopies(power), "exp") : graph::CallOp();
  return exp ? beforeCopies(exp.getOperand(0)) : Value();
}

/// softplus(x) = where(x > t, x, log(1 + eˣ)): above 15 the two differ by less than the last place
/// of a float32.
static bool recomposeSoftplus(graph::CallOp call) {
  graph::CallOp compared = callOf(call.getTensor("condition"), "gt");
  Value x = call.getTensor("self"), otherwise = call.getTensor("other");
  std::optional<double> from = compared ? numberOf(compared, "other") : std::nullopt;
  if (!x || !otherwise || from.value_or(0) < 15 || x.getType() != call.getResult(0).getType() ||
      beforeCopies(compared.getTensor("self")) != beforeCopies(x) ||
      softplusOf(otherwise) != beforeCopies(x))
    return false;
  NewCall(call).tensor("self", x).replace(call.getResult(0), "aten.softplus.default");
  return true;
}

/// masked_fill(x, mask, c) = where(mask, c, x).
static void recomposeChoice(graph::CallOp call) {
  if (recomposeSoftplus(call))
    return;
  Value mask = call.getTensor("condition"), with = call.getTensor("self"),
        x = call.getTensor("other");
  Attribute number = mask && with && x ? filledWith(with) : Attribute();
  if (!number || x.getType() != call.getResult(0).getType() || filledWith(x))
    return;
  NewCall made(call);
  made.tensor("self", x).tensor("mask", mask).argument("value", number);
  made.replace(call.getResult(0), "aten.masked_fill.Scalar");
}

/// softmax, in the type of its operand.
static void recomposeSoftmax(graph::CallOp call) {
  Value x = call.getTensor("self");
  if (x.getType() == call.getResult(0).getType())
    NewCall(call)
        .tensor("self", x)
        .argument("dim", call.getArgument("dim"))
        .replace(call.getResult(0), "aten.softmax.int");
}

/// conv1d, which is a convolution along one axis.
static void recomposeConvolution(graph::CallOp call) {
  auto transposed = dyn_cast_or_null<BoolAttr>(call.getArgument("transposed"));
  if (!transposed || transposed.getValue() || sizesOf(call.getResult(0)).size() != 3)
    return;
  NewCall made(call);
  made.operands = llvm::to_vector(call.getOperands());
  for (NamedAttribute argument : call.getArguments())
    if (argument.getName() != "transposed" && argument.getName() != "output_padding")
      made.arguments.push_back(argument);
  made.replace(call.getResult(0), "aten.conv1d.default");
}

/// squeeze along one axis.
static void recomposeSqueeze(graph::CallOp call) {
  auto dims = dyn_cast_or_null<ArrayAttr>(call.getArgument("dim"));
  if (!dims || dims.size() != 1)
    return;
  NewCall(call)
      .tensor("self", call.getOperand(0))
      .argument("dim", dims[0])
      .replace(call.getResult(0), "aten.squeeze.dim");
}

/// x[:, −t:] of t tokens: as many entries in a row are all of them.
static void recomposeWhole(graph::CallOp call) {
  Attribute start = call.getArgument("start");
  Value from = call.getTensor("self");
  if (from && start && !isa<IntegerAttr>(start) && integerOf(call, "step").value_or(1) == 1 &&
      from.getType() == call.getResult(0).getType())
    call.getResult(0).replaceAllUsesWith(from);
}

/// A tensor beside one without entries, which any other may stand beside.
static void recomposeAlone(graph::CallOp call) {
  SmallVector<Value> others = llvm::filter_to_vector(call.getOperands(), [](Value operand) {
    auto type = cast<graph::SymbolicType>(operand.getType());
    return type.getRank() != 1 || type.getNumber(0) != 0;
  });
  if (others.size() == 1 && others.front().getType() == call.getResult(0).getType())
    call.getResult(0).replaceAllUsesWith(others.front());
}

void pt2::recompose(graph::ProgramOp program) {
  static constexpr std::pair<StringLiteral, void (*)(graph::CallOp)> rules[] = {
      {"aten.native_layer_norm.default", recomposeNorm},
      {"aten._native_batch_norm_legit_no_training.default", recomposeNorm},
      {"aten.mm.default", recomposeProduct},
      {"aten.bmm.default", recomposeProduct},
      {"aten._softmax.default", recomposeSoftmax},
      {"aten.convolution.default", recomposeConvolution},
      {"aten.squeeze.dims", recomposeSqueeze},
      {"aten.slice.Tensor", recomposeWhole},
      {"aten.cat.default", recomposeAlone},
      {"aten.sub.Tensor", recomposeFromNumber},
      {"aten.sub.Tensor", recomposeDifference},
      {"aten.where.self", recomposeChoice}};
  spellOut(program);
  for (auto call : llvm::make_early_inc_range(program.getBody().getOps<graph::CallOp>()))
    for (auto [target, rule] : rules)
      if (call.getTarget() == target)
        rule(call);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(program.getBody().front())))
    if (isa<graph::CallOp>(op) && op.getNumResults() && op.use_empty())
      op.erase();
}
