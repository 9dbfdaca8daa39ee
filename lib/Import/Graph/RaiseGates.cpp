// Gates of mixtures as they are written over all experts: a vector with an entry for each expert,
// which is 0 but for the selected ones. It is Σ_j w_j e_{sel_j}, for rows e of the identity.
#include "GraphValues.h"
#include "Mask.h"
#include "Raise.h"
#include "dialects/Graph/AtenOps.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

/// A mask that is added to scores, or put in their place, is at most this.
static constexpr double hidden = -1e9;
/// The identity of more experts is not written out.
static constexpr int64_t mostExperts = 1024;

static graph::SymbolicType symbolicOf(Value value) {
  return cast<graph::SymbolicType>(value.getType());
}

static bool isOfFloats(Value value) { return isa<FloatType>(symbolicOf(value).getElementType()); }

/// Flags and indices before they became numbers of another type; with `views`, before axes of one
/// entry were put in or taken out.
static Value beforeCasts(Value value, bool views = false) {
  while (auto call = value ? value.getDefiningOp<graph::CallOp>() : graph::CallOp()) {
    const graph::AtenOp *op = graph::atenOp(call);
    bool isView = views && op && op->kind == graph::AtenKind::Views && op->name != "expand";
    if (!op || (op->kind != graph::AtenKind::Copies && !isView) || call.getOperands().empty())
      break;
    value = call.getOperand(0);
  }
  return value;
}

/// The call that gives `value` its axes in another order; null where none does.
static graph::CallOp turnOf(Value value) {
  for (StringRef name : {"transpose", "permute", "t"})
    if (graph::CallOp turn = callOf(value, name))
      return turn;
  return {};
}

/// What is true where `value` is not; null where that is not written.
static Value beforeNot(Value value) {
  value = beforeCasts(value);
  for (StringRef name : {"bitwise_not", "logical_not"})
    if (graph::CallOp negation = callOf(value, name))
      return beforeCasts(negation.getOperand(0));
  if (graph::CallOp isZero = callOf(value, "eq"); isZero && numberOf(isZero, "other") == 0.0)
    return beforeCasts(isZero.getTensor("self"));
  return {};
}

/// The one axis that a call goes along, counted from the front.
static std::optional<int64_t> axisOf(graph::CallOp call, Value of) {
  int64_t rank = symbolicOf(of).getRank();
  auto dims = dyn_cast_or_null<ArrayAttr>(call.getArgument("dim"));
  auto one = dims && dims.size() == 1 ? dyn_cast<IntegerAttr>(dims[0])
                                      : dyn_cast_or_null<IntegerAttr>(call.getArgument("dim"));
  if (!one)
    return std::nullopt;
  int64_t axis = one.getInt() + (one.getInt() < 0 ? rank : 0);
  return axis >= 0 && axis < rank ? std::optional(axis) : std::nullopt;
}

static int64_t expertsOf(xf::TopKOp selected) {
  return cast<RankedTensorType>(selected.getScores().getType()).getDimSize(0);
}

xf::TopKOp Raiser::selectedOf(Value value) const {
  Value raised = lookup(beforeCasts(value, /*views=*/true));
  return raised ? raised.getDefiningOp<xf::TopKOp>() : xf::TopKOp();
}

/// A float vector of as many entries as `value` has for one token.
Value Raiser::vectorOf(Value value, int64_t count) {
  Value x = value && isData(value) ? lookup(value) : Value();
  if (!x || !isa<Float32Type>(ranked(x).getElementType()) || ranked(x).getNumElements() != count)
    return {};
  while (auto shape = x.getDefiningOp<xf::ReshapeOp>()) // the same value however it is read
    x = shape.getData();
  return reshaped(value.getLoc(), x, RankedTensorType::get({count}, builder.getF32Type()));
}

Raiser::Gate Raiser::evenGate(Location loc, xf::TopKOp selected) {
  Value &ones = even[selected];
  if (!ones)
    ones = xf::createOnes(builder, loc, {int64_t(selected.getK())});
  return {ones, selected, /*isFlag=*/true};
}

//===----------------------------------------------------------------------===//
// One-hot rows
//===----------------------------------------------------------------------===//

/// The selection whose rows `value` has, 1 at the expert and 0 elsewhere, along its last axis.
xf::TopKOp Raiser::hotRowsOf(Value value) const {
  value = beforeCasts(value);
  int64_t rank = symbolicOf(value).getRank();
  std::optional<int64_t> last = rank ? symbolicOf(value).getNumber(rank - 1) : std::nullopt;
  xf::TopKOp selected;
  if (graph::CallOp hot = callOf(value, "one_hot"))
    selected = selectedOf(hot.getOperand(0));
  // i = 0, 1, …
  if (graph::CallOp equal = callOf(value, "eq"))
    if (std::optional<Sides> sides = sidesOf(equal); sides && sides->right)
      for (auto [index, counted] :
           {std::pair(sides->left, sides->right), std::pair(sides->right, sides->left)})
        if (isData(index) && !isData(counted) && countsUp(counted) &&
            symbolicOf(index).getRank() > 0 &&
            symbolicOf(index).getNumber(symbolicOf(index).getRank() - 1) == 1)
          selected = selectedOf(index);
  return selected && last == expertsOf(selected) ? selected : xf::TopKOp();
}

/// Whether `value` is 0, 1, 2, … along its last axis, and has no other of several entries.
bool Raiser::countsUp(Value value) const {
  value = beforeCasts(value, /*views=*/true);
  if (graph::CallOp range = callOf(value, "arange"))
    return numberOf(range, "start").value_or(0) == 0 && numberOf(range, "step").value_or(1) == 1;
  auto stored = value.getDefiningOp<graph::StoredOp>();
  std::optional<std::vector<double>> numbers =
      stored ? rotations.numbersOf()(stored) : std::nullopt;
  const int64_t rank = symbolicOf(value).getRank();
  if (!numbers || rank == 0 || symbolicOf(value).getNumber(rank - 1) != int64_t(numbers->size()))
    return false;
  for (auto [i, number] : llvm::enumerate(*numbers))
    if (number != double(i))
      return false;
  return true;
}

/// [sel_j = e] for a number e, wherever its axes are: the selection, and e.
std::optional<std::pair<xf::TopKOp, int64_t>> Raiser::indicatorOf(Value value) const {
  value = beforeCasts(value, /*views=*/true);
  if (graph::CallOp equal = callOf(value, "eq")) {
    std::optional<double> number = numberOf(equal, "other");
    xf::TopKOp selected = number ? selectedOf(equal.getTensor("self")) : xf::TopKOp();
    if (selected && *number >= 0 && *number < double(expertsOf(selected)) &&
        *number == std::floor(*number))
      return std::pair(selected, int64_t(*number));
    return std::nullopt;
  }
  while (graph::CallOp turn = turnOf(value))
    value = beforeCasts(turn.getOperand(0), /*views=*/true);
  graph::CallOp select = callOf(value, "select");
  std::optional<int64_t> e = select ? integerOf(select, "index") : std::nullopt;
  std::optional<int64_t> axis = e ? axisOf(select, select.getOperand(0)) : std::nullopt;
  if (!axis)
    return std::nullopt;
  Value rows = beforeCasts(select.getOperand(0));
  while (graph::CallOp turn = turnOf(rows)) {
    SmallVector<int64_t> order = orderOf(turn);
    if (order.empty())
      return std::nullopt;
    axis = order[*axis];
    rows = beforeCasts(turn.getOperand(0));
  }
  xf::TopKOp selected = *axis == symbolicOf(rows).getRank() - 1 ? hotRowsOf(rows) : xf::TopKOp();
  if (!selected)
    return std::nullopt;
  *e += *e < 0 ? expertsOf(selected) : 0;
  return *e >= 0 && *e < expertsOf(selected) ? std::optional(std::pair(selected, *e))
                                             : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Gates
//===----------------------------------------------------------------------===//

std::optional<Raiser::Gate> Raiser::gateOf(Value value) {
  auto call = value ? value.getDefiningOp<graph::CallOp>() : graph::CallOp();
  if (!call || !call.getTarget().starts_with("aten.") || !isData(value))
    return std::nullopt;
  if (auto known = gates.find(value); known != gates.end())
    return known->second;
  std::optional<Gate> gate = findGate(call);
  // Along the last axis, and no other.
  auto type = gate ? tokenType(value, axes) : llvm::Expected<RankedTensorType>(RankedTensorType());
  bool isVector = gate && type && type->getNumElements() == expertsOf(gate->selected) &&
                  tokenDim(value, -1) == type->getRank() - 1 &&
                  type->getShape().back() == expertsOf(gate->selected);
  llvm::consumeError(type.takeError());
  if (!isVector)
    gate.reset();
  gates[value] = gate;
  return gate;
}

std::optional<Raiser::Gate> Raiser::findGate(graph::CallOp call) {
  StringRef name = call.getBaseName();
  const graph::AtenOp *op = graph::atenOp(call);
  if (op && op->kind == graph::AtenKind::Copies && !call.getOperands().empty()) {
    Value from = call.getOperand(0);
    bool rounds = isOfFloats(from) && symbolicOf(from).getElementType() !=
                                          symbolicOf(call.getResult(0)).getElementType();
    return rounds ? std::nullopt : gateOf(from);
  }
  if (name == "scatter" || name == "scatter_add")
    return scatteredGate(call);
  if (name == "sum" || name == "any")
    return summedGate(call);
  if (name == "mul")
    return scaledGate(call);
  if (name == "masked_fill" || name == "where")
    return maskedGate(call, 0.0);
  if (name == "div")
    return dividedGate(call);
  if (name == "softmax")
    return softmaxGate(call);
  // Of one expert, whose axis was not kept.
  if (xf::TopKOp selected = hotRowsOf(call.getResult(0)); selected && selected.getK() == 1)
    return evenGate(call.getLoc(), selected);
  return std::nullopt;
}

std::optional<Raiser::Gate> Raiser::scatteredGate(graph::CallOp call) {
  Value self = call.getTensor("self"), index = call.getTensor("index");
  xf::TopKOp selected = index ? selectedOf(index) : xf::TopKOp();
  std::optional<int64_t> axis = self ? axisOf(call, self) : std::nullopt;
  if (!selected || axis != symbolicOf(self).getRank() - 1 || numberIn(self, axes) != 0.0)
    return std::nullopt;
  Value source = call.getTensor("src");
  std::optional<double> number = source ? numberIn(source, axes) : numberOf(call, "value");
  auto flag = dyn_cast_or_null<BoolAttr>(call.getArgument("value"));
  if (number == 1.0 || (flag && flag.getValue()))
    return evenGate(call.getLoc(), selected);
  if (Value weights = vectorOf(source, selected.getK()))
    return Gate{weights, selected};
  return std::nullopt;
}

/// Σ_j w_j e_{sel_j}, and Σ_j e_{sel_j}.
std::optional<Raiser::Gate> Raiser::summedGate(graph::CallOp call) {
  Value from = call.getTensor("self");
  int64_t rank = symbolicOf(from).getRank();
  if (axisOf(call, from) != rank - 2)
    return std::nullopt;
  if (xf::TopKOp selected = hotRowsOf(from);
      selected && symbolicOf(from).getNumber(rank - 2) == int64_t(selected.getK()))
    return evenGate(call.getLoc(), selected);
  graph::CallOp product = callOf(beforeCasts(from), "mul");
  std::optional<Sides> sides = product ? sidesOf(product) : std::nullopt;
  if (!sides || !sides->right)
    return std::nullopt;
  for (auto [rows, weights] :
       {std::pair(sides->left, sides->right), std::pair(sides->right, sides->left)}) {
    xf::TopKOp selected = hotRowsOf(rows);
    auto type = symbolicOf(weights);
    if (!selected || symbolicOf(rows).getRank() != rank || type.getRank() != rank ||
        type.getNumber(rank - 1) != 1 || type.getNumber(rank - 2) != int64_t(selected.getK()))
      continue;
    if (Value vector = vectorOf(weights, selected.getK()))
      return Gate{vector, selected};
  }
  return std::nullopt;
}

/// A gate times a number, a number of the token, or a vector of all experts.
std::optional<Raiser::Gate> Raiser::scaledGate(graph::CallOp call) {
  std::optional<Sides> sides = sidesOf(call);
  if (!sides)
    return std::nullopt;
  Location loc = call.getLoc();
  if (sides->number) {
    std::optional<Gate> gate = gateOf(sides->left);
    if (!gate || !std::isfinite(float(*sides->number)))
      return std::nullopt;
    return Gate{
        xf::TimesOp::create(builder, loc, gate->weights, llvm::APFloat(float(*sides->number))),
        gate->selected};
  }
  for (auto [of, by] :
       {std::pair(sides->left, sides->right), std::pair(sides->right, sides->left)}) {
    std::optional<Gate> gate = gateOf(of);
    if (!gate)
      continue;
    if (Value one = vectorOf(by, 1))
      return Gate{xf::MulOp::create(builder, loc, gate->weights, one), gate->selected};
    if (std::optional<Gate> taken = takenGate(loc, by, gate->selected))
      return Gate{gate->isFlag ? taken->weights
                               : xf::MulOp::create(builder, loc, gate->weights, taken->weights),
                  gate->selected};
  }
  return std::nullopt;
}

/// The selected entries of a vector with one for each expert.
std::optional<Raiser::Gate> Raiser::takenGate(Location loc, Value of, xf::TopKOp selected) {
  Value all = vectorOf(of, expertsOf(selected));
  if (!all)
    return std::nullopt;
  return Gate{xf::GatherOp::create(builder, loc, all, selected), selected};
}

/// A vector in whose place `number` stands where an expert is not selected.
std::optional<Raiser::Gate> Raiser::maskedGate(graph::CallOp call, double number) {
  bool isFill = call.getBaseName() == "masked_fill";
  Value mask = call.getTensor(isFill ? "mask" : "condition"), kept = call.getTensor("self");
  Value rest = call.getTensor(isFill ? "value" : "other");
  std::optional<double> by =
      rest ? numberIn(rest, axes) : numberOf(call, isFill ? "value" : "other");
  auto isIt = [&](std::optional<double> each) {
    return each && (number == 0 ? *each == 0 : *each <= number);
  };
  Value flag = mask ? beforeCasts(mask) : Value();
  bool isTurned = isFill;
  if (!isFill && !isIt(by)) { // where(¬flag, number, kept)
    Value first = call.getTensor("self");
    by = first ? numberIn(first, axes) : numberOf(call, "self");
    kept = call.getTensor("other");
    isTurned = true;
  }
  flag = isTurned && flag ? beforeNot(flag) : flag;
  std::optional<Gate> gate = flag && isIt(by) ? gateOf(flag) : std::nullopt;
  return gate && gate->isFlag ? takenGate(call.getLoc(), kept, gate->selected) : std::nullopt;
}

/// A gate divided by its sum, perhaps with a small number added, or by a number of the token.
std::optional<Raiser::Gate> Raiser::dividedGate(graph::CallOp call) {
  std::optional<Sides> sides = sidesOf(call);
  std::optional<Gate> gate = sides && sides->right ? gateOf(sides->left) : std::nullopt;
  if (!gate)
    return std::nullopt;
  auto [by, eps] = withoutNumber(sides->right);
  graph::CallOp sum = callOf(by, "sum");
  Location loc = call.getLoc();
  if (sum && keepsLast(sum) && beforeCopies(sum.getTensor("self")) == beforeCopies(sides->left))
    return Gate{
        xf::NormalizeOp::create(builder, loc, xf::NormKind::sum, gate->weights, llvm::APFloat(eps)),
        gate->selected};
  if (Value one = vectorOf(sides->right, 1))
    return Gate{xf::DivOp::create(builder, loc, gate->weights, one), gate->selected};
  return std::nullopt;
}

/// softmax over the selected experts alone: the others' scores are −∞.
std::optional<Raiser::Gate> Raiser::softmaxGate(graph::CallOp call) {
  Value self = call.getTensor("self");
  if (axisOf(call, self) != symbolicOf(self).getRank() - 1)
    return std::nullopt;
  graph::CallOp scores = beforeCopies(self).getDefiningOp<graph::CallOp>();
  std::optional<Gate> gate;
  if (graph::CallOp scatter = callOf(scores ? scores.getResult(0) : Value(), "scatter")) {
    Value index = scatter.getTensor("index"), under = scatter.getTensor("self");
    xf::TopKOp selected = index ? selectedOf(index) : xf::TopKOp();
    std::optional<double> number = under ? numberIn(under, axes) : std::nullopt;
    Value weights = selected && number && *number <= hidden &&
                            axisOf(scatter, under) == symbolicOf(under).getRank() - 1
                        ? vectorOf(scatter.getTensor("src"), selected.getK())
                        : Value();
    if (weights)
      gate = Gate{weights, selected};
  } else if (scores && (scores.getBaseName() == "masked_fill" || scores.getBaseName() == "where")) {
    gate = maskedGate(scores, hidden);
  }
  if (!gate)
    return std::nullopt;
  return Gate{xf::SoftmaxOp::create(builder, call.getLoc(), gate->weights), gate->selected};
}

//===----------------------------------------------------------------------===//
// As values
//===----------------------------------------------------------------------===//

/// For each selected index a row that is 1 there, and 0 elsewhere.
Value Raiser::hotRows(Location loc, xf::TopKOp selected) {
  const int64_t count = expertsOf(selected);
  SmallVector<float> identity(count * count, 0);
  for (int64_t i = 0; i < count; ++i)
    identity[i * count + i] = 1;
  auto type = RankedTensorType::get({count, count}, builder.getF32Type());
  Value matrix = setting(loc, "each_of_" + std::to_string(count), type,
                         DenseElementsAttr::get(type, ArrayRef(identity)));
  return xf::GatherOp::create(builder, loc, matrix, selected);
}

/// The same where a program has them as numbers.
Value Raiser::oneHot(graph::CallOp call) {
  Value rows = call.getTensor("self");
  xf::TopKOp selected = rows && isData(rows) ? hotRowsOf(rows) : xf::TopKOp();
  if (!selected || expertsOf(selected) > mostExperts)
    return {};
  auto type = tokenType(call.getResult(0), axes);
  if (!type || !isa<Float32Type>(type->getElementType()) ||
      type->getShape() != ArrayRef<int64_t>({int64_t(selected.getK()), expertsOf(selected)})) {
    llvm::consumeError(type.takeError());
    return {};
  }
  return hotRows(call.getLoc(), selected);
}

Value Raiser::spread(Location loc, const Gate &gate) {
  xf::TopKOp selected = gate.selected;
  int64_t count = expertsOf(selected);
  if (count > mostExperts)
    return {};
  Value &known = spreads[{gate.weights, selected}];
  if (known)
    return known;
  known = xf::CombineOp::create(builder, loc, gate.weights, hotRows(loc, selected));
  return known;
}

/// The entry of a gate that is written by itself: Σ_j w_j [sel_j = e], or w [sel = e].
Value Raiser::gateEntry(graph::CallOp call) {
  StringRef name = call.getBaseName();
  Value whole = call.getResult(0);
  if (const graph::AtenOp *op = graph::atenOp(call); op && op->kind == graph::AtenKind::Copies &&
                                                     !call.getOperands().empty() &&
                                                     !isOfFloats(call.getOperand(0))) {
    Value from = beforeCasts(call.getOperand(0), /*views=*/true);
    call = from.getDefiningOp<graph::CallOp>();
    name = call && call.getTarget().starts_with("aten.") ? call.getBaseName() : "";
  }
  if (!call)
    return {};
  // A flag for each slot, and what it lets through.
  Value flags = call.getResult(0), weights;
  bool isSum = name == "sum" || name == "any";
  if (isSum)
    flags = beforeCasts(call.getTensor("self"));
  auto product = flags.getDefiningOp<graph::CallOp>();
  std::optional<std::pair<xf::TopKOp, int64_t>> found;
  if (product && product.getTarget().starts_with("aten.")) {
    std::optional<Sides> sides = product.getBaseName() == "mul" ? sidesOf(product) : std::nullopt;
    if (sides && sides->right) {
      for (auto [flag, by] :
           {std::pair(sides->left, sides->right), std::pair(sides->right, sides->left)})
        if (auto one = found ? std::nullopt : indicatorOf(flag)) {
          found = one;
          weights = by;
        }
    } else if (product.getBaseName() == "where") {
      Value other = product.getTensor("other");
      std::optional<double> rest = other ? numberIn(other, axes) : numberOf(product, "other");
      if (rest == 0.0 && (found = indicatorOf(product.getTensor("condition"))))
        weights = product.getTensor("self");
    } else if (product.getBaseName() == "masked_fill") {
      Value not_ = beforeNot(product.getTensor("mask"));
      if (numberOf(product, "value") == 0.0 && not_ && (found = indicatorOf(not_)))
        weights = product.getTensor("self");
    } else {
      found = indicatorOf(flags);
    }
  }
  if (!found)
    return {};
  auto [selected, e] = *found;
  int64_t slots = selected.getK();
  // The sum goes over the slots, and over nothing else.
  auto made = tokenType(whole, axes);
  bool isOne = made && made->getNumElements() == 1;
  llvm::consumeError(made.takeError());
  std::optional<int64_t> along = isSum ? axisOf(call, call.getTensor("self")) : std::nullopt;
  bool overSlots = isSum ? along && symbolicOf(call.getTensor("self")).getNumber(*along) == slots &&
                               axes.axis(call.getTensor("self")) != unsigned(*along)
                         : slots == 1;
  Gate gate = evenGate(call.getLoc(), selected);
  if (weights) {
    Value vector = vectorOf(weights, slots);
    if (!vector)
      return {};
    gate = {vector, selected};
  }
  Value all = isOne && overSlots ? spread(call.getLoc(), gate) : Value();
  if (!all)
    return {};
  auto one = RankedTensorType::get({1}, builder.getF32Type());
  return xf::SliceOp::create(builder, call.getLoc(), one, all, e, 0);
}

Value Raiser::gateValue(graph::CallOp call) {
  if (call.getNumResults() != 1 || !isOfFloats(call.getResult(0)))
    return {};
  auto type = tokenType(call.getResult(0), axes);
  if (!type) {
    llvm::consumeError(type.takeError());
    return {};
  }
  if (std::optional<Gate> gate = gateOf(call.getResult(0)))
    if (Value all = spread(call.getLoc(), *gate))
      return reshaped(call.getLoc(), all, *type);
  if (Value entry = gateEntry(call))
    return reshaped(call.getLoc(), entry, *type);
  return {};
}
