#include "JoinExperts.h"
#include "Raise.h"
#include "SameValues.h"
#include "dialects/XF/FixedMatrix.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

namespace {

/// A gate over all experts: Σ_j w_j e_{sel_j}.
struct Gate {
  Value value, weights, selected;
  int64_t experts() const { return ranked(value).getDimSize(0); }
  int64_t slots() const { return ranked(weights).getDimSize(0); }
};

/// What stands for the same value of each expert.
struct Slots {
  Value value;
  bool isShared; ///< it is the same for all, and has no rows for the slots
};

/// Builds what the selected experts compute, from what each expert does.
class SlotBuilder {
public:
  SlotBuilder(OpBuilder &b, const Gate &gate, llvm::function_ref<bool(xf::ParamOp)> mayJoin)
      : b(b), gate(gate), mayJoin(mayJoin) {}

  /// Of the values that the experts have, in their order; none where they differ in more than
  /// parameters.
  std::optional<Slots> build(ArrayRef<Value> values);

private:
  Value bank(ArrayRef<Value> params);
  Value rowOf(ArrayRef<Operation *> ops);
  /// Whether `values` are the index of the first expert, of the second, and so on.
  bool areCounted(ArrayRef<Value> values) const;
  std::optional<Slots> buildOp(ArrayRef<Operation *> ops);
  Value buildProduct(xf::LinearOp op, ArrayRef<Value> matrices, Slots data);
  Value buildWithVectors(Operation *op, ArrayRef<Value> vectors, Slots data);
  Value buildByRows(Operation *op, ArrayRef<Slots> operands);
  /// With a row for each slot.
  Value rows(Slots slots);

  OpBuilder &b;
  const Gate &gate;
  llvm::function_ref<bool(xf::ParamOp)> mayJoin;
  llvm::MapVector<Value, std::pair<SmallVector<Value>, std::optional<Slots>>>
      known; ///< by the first
};

} // namespace

Value SlotBuilder::rows(Slots slots) {
  if (!slots.isShared)
    return slots.value;
  Location loc = slots.value.getLoc();
  Value row = xf::ReshapeOp::create(b, loc, withRows(ranked(slots.value), 1), slots.value);
  return xf::BroadcastOp::create(b, loc, withRows(ranked(slots.value), gate.slots()), row);
}

/// The parameters as one bank, by the one part of their names that counts them; null where there is
/// none.
Value SlotBuilder::bank(ArrayRef<Value> params) {
  SmallVector<SmallVector<StringRef>> names;
  for (Value value : params) {
    auto param = value.getDefiningOp<xf::ParamOp>();
    auto first = params.front().getDefiningOp<xf::ParamOp>();
    if (!param || param.getType() != first.getType() || param.getFrozen() != first.getFrozen() ||
        param.getConstant() || param.getName().contains('*') || !mayJoin(param))
      return {};
    param.getName().split(names.emplace_back(), '.');
    if (names.back().size() != names.front().size())
      return {};
  }
  SmallVector<StringRef> all = names.front();
  unsigned counted = 0;
  for (size_t part = 0; part < all.size(); ++part) {
    if (llvm::all_of(names, [&](const auto &name) { return name[part] == all[part]; }))
      continue;
    for (auto [e, name] : llvm::enumerate(names))
      if (name[part] != std::to_string(e))
        return {};
    all[part] = "*";
    ++counted;
  }
  if (counted != 1)
    return {};
  auto first = params.front().getDefiningOp<xf::ParamOp>();
  std::string name = llvm::join(all, ".");
  return xf::ParamOp::create(b, NameLoc::get(b.getStringAttr(name)),
                             withRows(ranked(first), gate.experts()), name, first.getFrozen(),
                             /*constant=*/false);
}

bool SlotBuilder::areCounted(ArrayRef<Value> values) const {
  for (auto [e, value] : llvm::enumerate(values)) {
    auto top = value.getDefiningOp<xf::TopKOp>();
    auto scores =
        top && top.getK() == 1 ? top.getScores().getDefiningOp<xf::SettingOp>() : xf::SettingOp();
    std::optional<std::vector<double>> numbers = scores ? xf::ownNumbers(scores) : std::nullopt;
    if (!numbers || int64_t(numbers->size()) != gate.experts() ||
        std::max_element(numbers->begin(), numbers->end()) - numbers->begin() != int64_t(e))
      return false;
  }
  return true;
}

/// The rows of one value that the experts have in turn: those of the selected ones.
Value SlotBuilder::rowOf(ArrayRef<Operation *> ops) {
  auto first = cast<xf::SliceOp>(ops.front());
  for (auto [e, op] : llvm::enumerate(ops)) {
    auto row = dyn_cast_or_null<xf::SliceOp>(op);
    if (!row || !areSame(row.getData(), first.getData()) || row.getAlong() != 0 ||
        row.getFrom() != e || row.getType() != first.getType())
      return {};
  }
  if (ranked(first.getData()).getDimSize(0) != gate.experts() || ranked(first).getDimSize(0) != 1 ||
      ranked(first.getData()).getRank() > 2)
    return {};
  Value rows = xf::GatherOp::create(b, first.getLoc(), first.getData(), gate.selected);
  return xf::ReshapeOp::create(b, first.getLoc(), withRows(ranked(first), gate.slots()), rows);
}

/// The products of the experts' matrices.
Value SlotBuilder::buildProduct(xf::LinearOp op, ArrayRef<Value> matrices, Slots data) {
  bool fits = ranked(data.value).getRank() == (data.isShared ? 1 : 2);
  Value all = fits ? bank(matrices) : Value();
  return all ? Value(xf::ExpertLinearOp::create(b, op.getLoc(), all, gate.selected, data.value,
                                                op.getTransposed()))
             : Value();
}

/// What a bias or a scale of each expert gives the slots: of vectors that are stored one by one,
/// all are read, and those of the selected experts are taken.
Value SlotBuilder::buildWithVectors(Operation *op, ArrayRef<Value> vectors, Slots data) {
  Location loc = op->getLoc();
  auto scale = dyn_cast<xf::ScaleOp>(op);
  if (!(scale || isa<xf::BiasOp>(op)) || ranked(vectors.front()).getRank() != 1 || !bank(vectors))
    return {};
  SmallVector<Value> all;
  for (Value vector : vectors) {
    ArrayRef<int64_t> shape = ranked(vector).getShape();
    Value one =
        xf::ScaleOp::create(b, loc, xf::createOnes(b, loc, shape), vector, llvm::APFloat(0.0f));
    all.push_back(xf::ReshapeOp::create(b, loc, withRows(ranked(one), 1), one));
  }
  Value table = xf::ConcatOp::create(b, loc, all, uint64_t(0));
  Value x = rows(data), each = xf::GatherOp::create(b, loc, table, gate.selected);
  if (each.getType() != x.getType())
    return {};
  if (!scale)
    return xf::AddOp::create(b, loc, x, each);
  Value y = xf::MulOp::create(b, loc, x, each);
  if (scale.getOffset().isZero())
    return y;
  return xf::AddOp::create(b, loc, y, xf::TimesOp::create(b, loc, x, scale.getOffset()));
}

/// What an op without parameters gives the slots, each by itself.
Value SlotBuilder::buildByRows(Operation *op, ArrayRef<Slots> operands) {
  Location loc = op->getLoc();
  auto type = withRows(ranked(op->getResult(0)), gate.slots());
  SmallVector<Value> values;
  for (Slots each : operands)
    values.push_back(rows(each));
  if (auto slice = dyn_cast<xf::SliceOp>(op))
    return xf::SliceOp::create(b, loc, type, values[0], slice.getFrom(), slice.getAlong() + 1);
  if (auto concat = dyn_cast<xf::ConcatOp>(op))
    return xf::ConcatOp::create(b, loc, type, values, concat.getAlong() + 1);
  if (isa<xf::ReshapeOp>(op))
    return xf::ReshapeOp::create(b, loc, type, values[0]);
  if (auto product = dyn_cast<xf::LinearOp>(op)) // of one matrix for all experts
    return operands[0].isShared ? Value(xf::LinearOp::create(b, loc, product.getWeight(), values[1],
                                                             product.getTransposed()))
                                : Value();
  bool byOne =
      isa<xf::MulOp, xf::DivOp>(op) && op->getOperand(0).getType() != op->getOperand(1).getType();
  if (byOne && !operands[1].isShared) {
    // A number for each slot.
    constexpr int64_t most = 256;
    int64_t width = ranked(op->getResult(0)).getShape().back();
    if (ranked(op->getResult(0)).getRank() != 1 || width > most)
      return {};
    values[1] =
        xf::ConcatOp::create(b, loc, type, SmallVector<Value>(width, values[1]), uint64_t(1));
  } else if (byOne) {
    values[1] = operands[1].value;
  }
  if (!isa<xf::MulOp, xf::DivOp>(op) && !op->hasTrait<OpTrait::SameOperandsAndResultType>())
    return {};
  Operation *made = b.clone(*op);
  made->setOperands(values);
  made->getResult(0).setType(type);
  return made->getResult(0);
}

std::optional<Slots> SlotBuilder::buildOp(ArrayRef<Operation *> ops) {
  Operation *first = ops.front();
  if (!first)
    return std::nullopt;
  if (Value rows = isa<xf::SliceOp>(first) ? rowOf(ops) : Value())
    return Slots{rows, false};
  for (Operation *op : ops)
    if (!op || op->getName() != first->getName() || op->getNumResults() != 1 ||
        op->getNumOperands() != first->getNumOperands() ||
        op->getResultTypes() != first->getResultTypes() || isa<xf::ParamOp>(op) ||
        op->getAttrDictionary() != first->getAttrDictionary())
      return std::nullopt;
  auto operandsAt = [&](unsigned i) {
    return llvm::map_to_vector(ops, [&](Operation *op) { return op->getOperand(i); });
  };
  if (auto linear = dyn_cast<xf::ExpertLinearOp>(first)) { // each by its number
    std::optional<Slots> data = build(operandsAt(2));
    bool isOne = data && areAllSame(operandsAt(0)) && areCounted(operandsAt(1)) &&
                 ranked(linear.getBank()).getDimSize(0) == gate.experts() &&
                 ranked(linear.getData()).getRank() == 1;
    if (!isOne)
      return std::nullopt;
    Value y = xf::ExpertLinearOp::create(b, first->getLoc(), linear.getBank(), gate.selected,
                                         data->value, linear.getTransposed());
    auto type = withRows(ranked(linear.getResult()), gate.slots());
    return Slots{xf::ReshapeOp::create(b, first->getLoc(), type, y), false};
  }
  if (auto assignable = dyn_cast<xf::AssignableOpInterface>(first)) {
    unsigned parameter = assignable.getParameterOperand().getOperandNumber();
    SmallVector<Value> params = operandsAt(parameter);
    if (!areAllSame(params)) {
      std::optional<Slots> data = build(operandsAt(assignable.getDataOperand().getOperandNumber()));
      Value made;
      if (data && isa<xf::LinearOp>(first))
        made = buildProduct(cast<xf::LinearOp>(first), params, *data);
      else if (data)
        made = buildWithVectors(first, params, *data);
      return made ? std::optional(Slots{made, false}) : std::nullopt;
    }
  }
  SmallVector<Slots> operands;
  for (unsigned i = 0; i < first->getNumOperands(); ++i) {
    std::optional<Slots> each = build(operandsAt(i));
    if (!each)
      return std::nullopt;
    operands.push_back(*each);
  }
  Value made = buildByRows(first, operands);
  return made ? std::optional(Slots{made, false}) : std::nullopt;
}

std::optional<Slots> SlotBuilder::build(ArrayRef<Value> values) {
  if (areAllSame(values))
    return Slots{values.front(), true};
  auto &[of, made] = known[values.front()];
  if (of.empty()) {
    of.assign(values.begin(), values.end());
    auto ops = llvm::map_to_vector(values, [](Value value) { return value.getDefiningOp(); });
    std::optional<Slots> built = buildOp(ops);
    known[values.front()].second = built; // `made` may have moved
    return built;
  }
  return ArrayRef<Value>(of) == values ? made : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Sums over experts
//===----------------------------------------------------------------------===//

/// `combine` as a gate, where its rows are those of the identity that were selected.
static std::optional<Gate> gateOf(xf::CombineOp combine) {
  auto rows = combine.getData().getDefiningOp<xf::GatherOp>();
  auto selected = rows ? rows.getSelected().getDefiningOp<xf::TopKOp>() : xf::TopKOp();
  auto matrix = rows ? rows.getData().getDefiningOp<xf::SettingOp>() : xf::SettingOp();
  std::optional<std::vector<double>> numbers =
      selected && matrix ? xf::ownNumbers(matrix) : std::nullopt;
  int64_t size = selected ? ranked(selected.getScores()).getDimSize(0) : 0;
  if (!numbers || int64_t(numbers->size()) != size * size)
    return std::nullopt;
  for (int64_t i = 0; i < size * size; ++i)
    if ((*numbers)[i] != (i % (size + 1) == 0))
      return std::nullopt;
  return Gate{combine, combine.getWeights(), selected};
}

/// `value` and what has its numbers in their order, in other shapes.
static SmallVector<Value> shapesOf(Value value) {
  SmallVector<Value> shapes{value};
  for (size_t i = 0; i < shapes.size(); ++i)
    for (Operation *user : shapes[i].getUsers())
      if (isa<xf::ReshapeOp>(user))
        shapes.push_back(user->getResult(0));
  return shapes;
}

/// The outermost sum that `value` is a term of, through sums that nothing else reads.
static xf::AddOp sumOf(Value value) {
  xf::AddOp sum;
  while (value.hasOneUse())
    if (auto next = dyn_cast<xf::AddOp>(*value.user_begin())) {
      sum = next;
      value = next;
    } else {
      break;
    }
  return sum;
}

static void collectTerms(Value value, bool isOuter, SmallVectorImpl<Value> &terms) {
  auto sum = value.getDefiningOp<xf::AddOp>();
  if (!sum || !(isOuter || sum->hasOneUse()))
    return terms.push_back(value);
  collectTerms(sum.getLhs(), false, terms);
  collectTerms(sum.getRhs(), false, terms);
}

/// What the entries of `gate` are multiplied with, by their number, for each sum of such products.
static llvm::MapVector<Operation *, SmallVector<std::pair<xf::MulOp, int64_t>>>
productsOf(const Gate &gate) {
  llvm::MapVector<Operation *, SmallVector<std::pair<xf::MulOp, int64_t>>> products;
  for (Value all : shapesOf(gate.value))
    for (Operation *user : all.getUsers()) {
      auto slice = dyn_cast<xf::SliceOp>(user);
      if (!slice || ranked(slice.getResult()).getNumElements() != 1 || ranked(all).getRank() != 1)
        continue;
      for (Value one : shapesOf(slice))
        for (Operation *reader : one.getUsers()) {
          auto product = dyn_cast<xf::MulOp>(reader);
          if (!product || (product.getLhs() == one) == (product.getRhs() == one))
            continue;
          if (xf::AddOp sum = sumOf(product))
            products[sum].push_back({product, int64_t(slice.getFrom())});
        }
    }
  return products;
}

/// The other factor of a product with an entry of a gate.
static Value weighedBy(xf::MulOp product) {
  auto isEntry = [](Value value) {
    while (auto shape = value.getDefiningOp<xf::ReshapeOp>())
      value = shape.getData();
    return ranked(value).getNumElements() == 1 && value.getDefiningOp<xf::SliceOp>();
  };
  return isEntry(product.getRhs()) ? product.getLhs() : product.getRhs();
}

/// Of products with the entries of a second gate of the same selection, what is multiplied: then
/// `gate` has both gates' weights.
static void takeSecondGate(SmallVectorImpl<Value> &values, Gate &gate, OpBuilder &b) {
  std::optional<Gate> second;
  SmallVector<Value> inner;
  for (auto [e, of] : llvm::enumerate(values)) {
    Value value = of;
    while (auto shape = value.getDefiningOp<xf::ReshapeOp>())
      value = shape.getData();
    auto product = value.getDefiningOp<xf::MulOp>();
    auto slice = product ? product.getRhs().getDefiningOp<xf::SliceOp>() : xf::SliceOp();
    auto combine = slice ? slice.getData().getDefiningOp<xf::CombineOp>() : xf::CombineOp();
    std::optional<Gate> other = combine ? gateOf(combine) : std::nullopt;
    if (!other || other->selected != gate.selected || slice.getFrom() != e ||
        (second && second->value != other->value) || product.getType() != of.getType())
      return;
    second = other;
    inner.push_back(product.getLhs());
  }
  values = inner;
  gate.weights = xf::MulOp::create(b, gate.value.getLoc(), gate.weights, second->weights);
}

/// Σ_e s_e f_e, in the place of the terms of `sum` that are these.
static bool joinSum(xf::AddOp sum, ArrayRef<std::pair<xf::MulOp, int64_t>> products, Gate gate,
                    llvm::function_ref<bool(xf::ParamOp)> mayJoin) {
  SmallVector<xf::MulOp> byExpert(gate.experts());
  for (auto [product, e] : products) {
    if (byExpert[e])
      return false;
    byExpert[e] = product;
  }
  if (!llvm::all_of(byExpert, [](xf::MulOp product) { return bool(product); }))
    return false;
  OpBuilder b(sum);
  SmallVector<Value> values = llvm::map_to_vector(byExpert, weighedBy);
  takeSecondGate(values, gate, b);
  std::optional<Slots> slots = SlotBuilder(b, gate, mayJoin).build(values);
  if (!slots || slots->isShared || ranked(slots->value).getRank() < 2)
    return false;
  Value whole = xf::CombineOp::create(b, byExpert.back().getLoc(), gate.weights, slots->value);
  if (whole.getType() != sum.getType())
    return false;
  SmallVector<Value> terms;
  collectTerms(sum, /*isOuter=*/true, terms);
  llvm::erase_if(terms, [&](Value term) {
    return llvm::is_contained(byExpert, term.getDefiningOp<xf::MulOp>());
  });
  for (Value term : llvm::reverse(terms)) // what comes before the experts stays in front
    whole = xf::AddOp::create(b, sum.getLoc(), term, whole);
  sum.getResult().replaceAllUsesWith(whole);
  return true;
}

namespace {
/// Takes the rows of the selected experts of what is computed for all of them.
class RowTaker {
public:
  RowTaker(OpBuilder &b, const Gate &gate) : b(b), gate(gate) {}
  /// `value` has a row for each expert; null where its rows are not computed one by one.
  Value take(Value value);

private:
  Value takeOp(Operation *op);

  OpBuilder &b;
  const Gate &gate;
  llvm::DenseMap<Value, Value> known;
};
} // namespace

Value RowTaker::take(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || ranked(value).getDimSize(0) != gate.experts())
    return {};
  if (auto found = known.find(value); found != known.end())
    return found->second;
  Value taken = takeOp(op);
  known[value] = taken;
  return taken;
}

Value RowTaker::takeOp(Operation *op) {
  Location loc = op->getLoc();
  SmallVector<int64_t> shape(ranked(op->getResult(0)).getShape());
  shape[0] = gate.slots();
  auto type = RankedTensorType::get(shape, b.getF32Type());
  if (auto linear = dyn_cast<xf::ExpertLinearOp>(op)) {
    auto all = linear.getSelected().getDefiningOp<xf::TopKOp>();
    if (!all || int64_t(all.getK()) != gate.experts())
      return {};
    Value x = ranked(linear.getData()).getRank() == 1 ? linear.getData() : take(linear.getData());
    return x ? Value(xf::ExpertLinearOp::create(b, loc, linear.getBank(), gate.selected, x,
                                                linear.getTransposed()))
             : Value();
  }
  if (auto bias = dyn_cast<xf::BiasOp>(op)) {
    Value x = take(bias.getData());
    if (!x || bias.getBias().getType().getRank() < 2)
      return x ? Value(xf::BiasOp::create(b, loc, x, bias.getBias())) : Value();
    if (bias.getBias().getType().getRank() != 2)
      return {};
    Value each = xf::GatherOp::create(b, loc, bias.getBias(), gate.selected);
    return xf::AddOp::create(b, loc, x, each);
  }
  if (auto repeated = dyn_cast<xf::BroadcastOp>(op))
    return xf::BroadcastOp::create(b, loc, type, repeated.getData());
  auto slice = dyn_cast<xf::SliceOp>(op);
  auto concat = dyn_cast<xf::ConcatOp>(op);
  bool isByRows =
      op->hasTrait<OpTrait::SameOperandsAndResultType>() || isa<xf::ReshapeOp>(op) ||
      (slice && slice.getAlong() > 0) || (concat && concat.getAlong() > 0) ||
      (isa<xf::MulOp, xf::DivOp>(op) && op->getOperand(0).getType() == op->getOperand(1).getType());
  // A norm of a vector, which has no rows, is of all its entries.
  if (!isByRows || ranked(op->getResult(0)).getRank() < 2)
    return {};
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(ranked(operand).getRank() < 2 ? Value() : take(operand));
    if (!operands.back())
      return {};
  }
  Operation *made = b.clone(*op);
  made->setOperands(operands);
  made->getResult(0).setType(type);
  return made->getResult(0);
}

/// Σ_e s_e y_e, where the rows y_e are computed with banks of all experts.
static void joinRows(xf::CombineOp combine, const Gate &gate) {
  OpBuilder b(combine);
  bool hasRows = ranked(combine.getData()).getRank() > 1;
  Value taken = hasRows ? RowTaker(b, gate).take(combine.getData()) : Value();
  if (taken)
    combine.getResult().replaceAllUsesWith(
        xf::CombineOp::create(b, combine.getLoc(), gate.weights, taken));
}

void ctxc::pt2::joinExperts(xf::BlockOp block, llvm::function_ref<bool(xf::ParamOp)> mayJoin) {
  Block &body = block.getBody().front();
  for (xf::CombineOp combine : llvm::to_vector(body.getOps<xf::CombineOp>())) {
    std::optional<Gate> gate = gateOf(combine);
    if (!gate)
      continue;
    for (auto &[sum, products] : productsOf(*gate))
      joinSum(cast<xf::AddOp>(sum), products, *gate, mayJoin);
    for (Value all : shapesOf(gate->value))
      for (Operation *user : llvm::make_early_inc_range(all.getUsers()))
        if (auto weighed = dyn_cast<xf::CombineOp>(user); weighed && weighed.getWeights() == all)
          joinRows(weighed, *gate);
  }
}
