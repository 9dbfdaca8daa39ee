// What ops of PyTorch become in xf: AtenOps.def gives each its function.
#include "GraphValues.h"
#include "Mask.h"
#include "Raise.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

Raiser::Results Raiser::raiseKnown(graph::CallOp call) {
  if (!call.getTarget().starts_with("aten."))
    return {};
  using Method = Results (Raiser::*)(graph::CallOp);
  static const llvm::StringMap<Method> methods = [] {
    llvm::StringMap<Method> made;
#define ATEN(name, kind, tokens, meaning, raised, followed, generic) made[name] = &Raiser::raised;
#include "dialects/Graph/AtenOps.def"
    return made;
  }();
  if (Value gate = gateValue(call))
    return {gate};
  Method method = methods.lookup(call.getBaseName());
  if (!method || method == &Raiser::none)
    return {};
  bool isOfShape =
      llvm::is_contained({&Raiser::sameOrder, &Raiser::permuted, &Raiser::copied, &Raiser::expanded,
                          &Raiser::part, &Raiser::row, &Raiser::indexed, &Raiser::gathered,
                          &Raiser::placed, &Raiser::written, &Raiser::filled},
                         method);
  // All others compute with floating-point numbers.
  auto computes = [&](Value operand) {
    Value raised = lookup(operand);
    return !isData(operand) || (raised && xf::isSized(raised.getType()) && isFloat(raised));
  };
  if (isOfShape || llvm::all_of(call.getOperands(), computes))
    return (this->*method)(call);
  // What is written out is raised at its end, and what leads there may be no op of xf.
  if (method == &Raiser::choice)
    return choice(call);
  bool mayEnd = method == &Raiser::times || method == &Raiser::quotient;
  Value whole = mayEnd ? writtenNorm(call) : Value();
  whole = whole || !mayEnd ? whole : writtenActivation(call);
  return whole ? Results{whole} : Results{};
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

Value Raiser::withBias(Location loc, Value data, Value bias) {
  graph::StoredOp stored = storedOf(bias);
  if (!data || !stored)
    return {};
  if (Value numbers = numbersFor(stored, data)) {
    Value x = data;
    bool fits = matchShapes(loc, x, numbers) && x.getType() == data.getType();
    return fits ? Value(xf::AddOp::create(builder, loc, x, numbers)) : Value();
  }
  Value b = parameter(stored);
  ArrayRef<int64_t> shape = ranked(b).getShape(), of = ranked(data).getShape();
  bool fits = shape.size() <= of.size() && of.take_back(shape.size()) == shape;
  return fits ? Value(xf::BiasOp::create(builder, loc, data, b)) : Value();
}

Value Raiser::withScale(Location loc, Value data, Value scale) {
  // (1 + m) ⊙ x, as Gemma's norms have it.
  float offset = 0;
  Value m = beforeCopies(scale);
  if (graph::CallOp sum = callOf(m, "add"))
    if (Value stored = besideNumber(sum, 1)) {
      m = stored;
      offset = 1;
    }
  graph::StoredOp stored = storedOf(m);
  if (!data || !stored)
    return {};
  if (Value numbers = numbersFor(stored, data)) {
    Value x = data;
    numbers = plus(loc, numbers, offset);
    bool isOne = ranked(numbers).getShape() == ArrayRef<int64_t>{1};
    bool fits = isOne || (matchShapes(loc, x, numbers) && x.getType() == data.getType());
    return fits ? Value(xf::MulOp::create(builder, loc, x, numbers)) : Value();
  }
  Value s = parameter(stored);
  ArrayRef<int64_t> shape = ranked(s).getShape(), of = ranked(data).getShape();
  bool fits = shape.size() <= of.size() && of.take_back(shape.size()) == shape;
  // Fixed numbers of a token's shape behind axes of one entry, which no patch changes.
  bool isFixed = stored.getFixed() && offset == 0 && ranked(s).getElementType().isF32() &&
                 shape.size() > of.size() && shape.take_back(of.size()) == of &&
                 ranked(s).getNumElements() == ranked(data).getNumElements();
  if (isFixed)
    return xf::MulOp::create(builder, loc, data, reshaped(loc, s, data.getType()));
  return fits ? Value(xf::ScaleOp::create(builder, loc, data, s, llvm::APFloat(offset))) : Value();
}

/// Which entry of a tensor of that shape is left by indices that are taken of it, the first one
/// last; none where more than one is.
static std::optional<int64_t> entryOf(ArrayRef<int64_t> shape, ArrayRef<graph::CallOp> selects) {
  auto dims = llvm::to_vector(llvm::seq<size_t>(0, shape.size()));
  SmallVector<int64_t> index(shape.size(), 0);
  for (graph::CallOp select : llvm::reverse(selects)) {
    int64_t dim = numberOf(select, "dim").value_or(0), at = numberOf(select, "index").value_or(0);
    dim += dim < 0 ? int64_t(dims.size()) : 0;
    if (dim < 0 || dim >= int64_t(dims.size()))
      return std::nullopt;
    at += at < 0 ? shape[dims[dim]] : 0;
    if (at < 0 || at >= shape[dims[dim]])
      return std::nullopt;
    index[dims[dim]] = at;
    dims.erase(dims.begin() + dim);
  }
  int64_t entry = 0;
  for (auto [size, at] : llvm::zip_equal(shape, index))
    entry = entry * size + at;
  bool isOne = llvm::all_of(dims, [&](size_t dim) { return shape[dim] == 1; });
  return isOne ? std::optional(entry) : std::nullopt;
}

/// `data` times a stored number, which is the scale of a one, so that a patch may change it.
Value Raiser::withNumber(Location loc, Value data, Value number) {
  SmallVector<graph::CallOp> selects;
  number = beforeCopies(number);
  while (graph::CallOp select = callOf(number, "select")) {
    selects.push_back(select);
    number = beforeCopies(select.getTensor("self"));
  }
  graph::StoredOp stored = storedOf(number);
  if (!data || !isFloat(data) || !stored)
    return {};
  Value scale = parameter(stored);
  auto type = ranked(scale);
  std::optional<int64_t> entry = entryOf(type.getShape(), selects);
  if (!entry)
    return {};
  if (Value numbers = numbersOf(stored)) {
    auto value = cast<DenseElementsAttr>(*numbers.getDefiningOp<xf::SettingOp>().getValue());
    return xf::TimesOp::create(builder, loc, data, value.getValues<llvm::APFloat>()[*entry]);
  }
  Value one = xf::createOnes(builder, loc, type.getShape());
  Value factor = xf::ScaleOp::create(builder, loc, one, scale, llvm::APFloat(0.0f));
  auto vector = [&](int64_t size) {
    return RankedTensorType::get({size}, ranked(factor).getElementType());
  };
  if (type.getRank() > 1)
    factor = xf::ReshapeOp::create(builder, loc, vector(type.getNumElements()), factor);
  if (type.getNumElements() > 1)
    factor = xf::SliceOp::create(builder, loc, vector(1), factor, *entry, 0);
  return xf::MulOp::create(builder, loc, data, factor);
}

/// The stored matrix that `weight` is, and whether it is turned.
static std::pair<Value, bool> beforeTurn(Value weight) {
  Value value = beforeCopies(weight);
  for (StringRef name : {"t", "transpose", "permute", "numpy_T"})
    if (graph::CallOp turn = callOf(value, name);
        turn && orderOf(turn) == SmallVector<int64_t>{1, 0})
      return {turn.getOperand(0), true};
  return {value, false};
}

Raiser::Results Raiser::linear(graph::CallOp call) {
  bool isAddmm = call.getBaseName() == "addmm";
  if (isAddmm &&
      (numberOf(call, "alpha").value_or(1) != 1 || numberOf(call, "beta").value_or(1) != 1))
    return {};
  Value x = lookup(call.getTensor(isAddmm ? "mat1" : "input"));
  auto [weight, turned] = beforeTurn(call.getTensor(isAddmm ? "mat2" : "weight"));
  // linear multiplies by Wᵀ, and addmm by the matrix itself.
  bool transposed = isAddmm ? !turned : turned;
  graph::StoredOp stored = storedOf(weight);
  Value y;
  if (x && stored && ranked(parameter(stored)).getRank() == 2) {
    Value w = weightOf(stored);
    if (ranked(x).getShape().back() == ranked(w).getDimSize(transposed ? 0 : 1))
      y = xf::LinearOp::create(builder, call.getLoc(), w, x, transposed);
  } else if (x && !stored) {
    y = oneOfBank(call.getLoc(), weight, transposed, x);
    if (!y && !transposed)
      y = scaledRows(call.getLoc(), weight, x);
  }
  if (!y)
    return {};
  if (Value bias = call.getTensor(isAddmm ? "self" : "bias")) {
    Value without = y;
    y = withBias(call.getLoc(), y, bias);
    Value made = y || isData(bias) ? Value() : ofStored(bias);
    if (made && made.getType() == without.getType())
      y = xf::AddOp::create(builder, call.getLoc(), without, made);
    if (!y)
      return {};
  }
  return {y};
}

Raiser::Results Raiser::product(graph::CallOp call) {
  for (auto pattern : {&Raiser::expertProduct, &Raiser::productFromLeft, &Raiser::productOfRows})
    if (Value y = (this->*pattern)(call))
      return {y};
  Value x = lookup(call.getTensor("self"));
  auto [weight, turned] = beforeTurn(call.getTensor("other"));
  graph::StoredOp stored = storedOf(weight);
  if (x && isData(call.getTensor("self")))
    if (Value y = oneOfBank(call.getLoc(), weight, !turned, x))
      return {y};
  if (!x || !isData(call.getTensor("self")) || !stored ||
      ranked(parameter(stored)).getRank() != 2 ||
      ranked(x).getShape().back() != ranked(parameter(stored)).getDimSize(turned ? 1 : 0))
    return {};
  return {xf::LinearOp::create(builder, call.getLoc(), weightOf(stored), x, !turned)};
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Raiser::Results Raiser::sum(graph::CallOp call) {
  std::optional<Sides> sides = sidesOf(call);
  if (sides && sides->number && lookup(sides->left))
    return withTerm(call, lookup(sides->left), *sides->number);
  if (!sides || !sides->right || call.getBaseName() == "rsub")
    return {};
  Value a = isData(sides->left) ? lookup(sides->left) : Value();
  Value b = isData(sides->right) ? lookup(sides->right) : Value();
  bool isSub = call.getBaseName() == "sub";
  if (a && b) {
    if (!matchShapes(call.getLoc(), a, b))
      return {};
    if (isSub)
      return {xf::SubOp::create(builder, call.getLoc(), a, b)};
    return {xf::AddOp::create(builder, call.getLoc(), a, b)};
  }
  Value data = a ? a : b, fixed = a ? sides->right : sides->left;
  if (!data) // numbers that no token moves
    return {};
  // Zeros to which all terms are added.
  std::optional<double> number = numberIn(fixed, axes);
  auto type = number ? tokenType(call.getResult(0), axes)
                     : llvm::Expected<RankedTensorType>(RankedTensorType());
  bool isZero = type && number == 0.0 && data.getType() == *type && (a || !isSub);
  llvm::consumeError(type.takeError());
  if (isZero)
    return {data};
  if (Value y = isSub ? Value() : withBias(call.getLoc(), data, fixed))
    return {y};
  if (Value made = ofStoredBeside(fixed, a ? sides->left : sides->right);
      made && matchShapes(call.getLoc(), data, made)) {
    if (isSub)
      return {xf::SubOp::create(builder, call.getLoc(), a ? data : made, a ? made : data)};
    return {xf::AddOp::create(builder, call.getLoc(), data, made)};
  }
  if (isSub)
    return {};
  Value other = madeOfStored(fixed); // embeddings of positions
  if (!other || other.getType() != data.getType())
    return {};
  return {xf::AddOp::create(builder, call.getLoc(), data, other)};
}

/// A value that no token moves, as an op of which only that is known; null where it is a stored
/// one.
Value Raiser::madeOfStored(Value fixed) {
  llvm::Expected<Value> made = storedOf(fixed) ? Value() : operand(fixed);
  if (made && *made && isFloat(*made))
    return *made;
  llvm::consumeError(made.takeError());
  return {};
}

Raiser::Results Raiser::times(graph::CallOp call) {
  if (call.getBaseName() == "neg")
    return {xf::TimesOp::create(builder, call.getLoc(), lookup(call.getOperand(0)),
                                llvm::APFloat(-1.0f))};
  for (auto pattern : {&Raiser::writtenNorm, &Raiser::writtenActivation, &Raiser::withSinks})
    if (Value y = (this->*pattern)(call))
      return {y};
  std::optional<Sides> sides = sidesOf(call);
  if (!sides)
    return {};
  // A stored number is one as well.
  if (sides->right && !isData(sides->left))
    std::swap(sides->left, sides->right);
  if (sides->right && !isData(sides->right))
    sides->number = numberIn(sides->right, axes);
  Value a = isData(sides->left) ? lookup(sides->left) : Value();
  if (sides->number) {
    if (!a || !std::isfinite(float(*sides->number)))
      return {};
    return {xf::TimesOp::create(builder, call.getLoc(), a, llvm::APFloat(float(*sides->number)))};
  }
  Value b = isData(sides->right) ? lookup(sides->right) : Value();
  if (a && b) {
    auto isOne = [](Value v) { return ranked(v).getNumElements() == 1; };
    if (a.getType() != b.getType() && isOne(a))
      std::swap(a, b);
    if (a.getType() != b.getType() && !(isOne(b) && ranked(b).getRank() == 1) &&
        !matchShapes(call.getLoc(), a, b))
      return {};
    return {xf::MulOp::create(builder, call.getLoc(), a, b)};
  }
  Value data = a ? a : b, fixed = a ? sides->right : sides->left;
  Value y = withScale(call.getLoc(), data, fixed);
  if (!y)
    y = withNumber(call.getLoc(), data, fixed);
  Value made = data && !y ? ofStoredBeside(fixed, a ? sides->left : sides->right) : Value();
  made = made || !data || y ? made : fixedRow(fixed);
  made = made || !data || y ? made : madeOfStored(fixed);
  bool isOne = made && ranked(made).getShape() == ArrayRef<int64_t>{1};
  if (made && (isOne || matchShapes(call.getLoc(), data, made)))
    y = xf::MulOp::create(builder, call.getLoc(), data, made);
  return y ? Results{y} : Results{};
}

Raiser::Results Raiser::quotient(graph::CallOp call) {
  if (Value norm = writtenNorm(call))
    return {norm};
  std::optional<Sides> sides = sidesOf(call);
  if (!sides || !isData(sides->left))
    return {};
  if (sides->right && !isData(sides->right))
    sides->number = numberIn(sides->right, axes);
  Value a = lookup(sides->left);
  if (sides->number) {
    float factor = 1 / float(*sides->number);
    if (!std::isfinite(factor))
      return {};
    return {xf::TimesOp::create(builder, call.getLoc(), a, llvm::APFloat(factor))};
  }
  Value b = isData(sides->right) ? lookup(sides->right) : Value();
  if (!b || (a.getType() != b.getType() && ranked(b).getShape() != ArrayRef<int64_t>{1} &&
             !matchShapes(call.getLoc(), a, b)))
    return {};
  return {xf::DivOp::create(builder, call.getLoc(), a, b)};
}

Value Raiser::activation(Location loc, xf::ActivationKind kind, Value x) {
  return xf::ActivationOp::create(builder, loc, kind, x);
}

Raiser::Results Raiser::function(graph::CallOp call) {
  using Kind = xf::ActivationKind;
  StringRef name = call.getBaseName();
  auto approximate = dyn_cast_or_null<StringAttr>(call.getArgument("approximate"));
  bool byTanh = approximate && approximate.getValue() == "tanh";
  if (name == "softplus" &&
      (numberOf(call, "beta").value_or(1) != 1 || numberOf(call, "threshold").value_or(20) < 20))
    return {};
  Kind kind = byTanh            ? Kind::gelu_tanh
              : name == "expm1" ? Kind::exp
                                : *xf::symbolizeActivationKind(name);
  Value y = activation(call.getLoc(), kind, lookup(call.getOperand(0)));
  return {name == "expm1" ? plus(call.getLoc(), y, -1) : y};
}

/// Of positions that are positive: elsewhere PyTorch's is no number, and xf's is.
Raiser::Results Raiser::logarithm(graph::CallOp call) {
  Value x = lookup(call.getOperand(0));
  auto times = x ? x.getDefiningOp<xf::TimesOp>() : xf::TimesOp();
  Value counted = times ? times.getData() : x;
  auto position = counted ? counted.getDefiningOp<xf::PositionOp>() : xf::PositionOp();
  if (!position)
    return {};
  if (times) { // a share of the position
    const bool isPlus = call.getBaseName() == "log1p";
    const double factor = times.getFactor().convertToDouble();
    if (factor < 1e-30 || (!isPlus && position.at(0) < 1))
      return {};
    return {
        activation(call.getLoc(), xf::ActivationKind::log, isPlus ? plus(call.getLoc(), x, 1) : x)};
  }
  if (call.getBaseName() == "log1p")
    position =
        xf::PositionOp::create(builder, call.getLoc(), x.getType(),
                               position.getOffset() + position.getDivisor(), position.getDivisor());
  if (position.at(0) < 1)
    return {};
  return {activation(call.getLoc(), xf::ActivationKind::log, position)};
}

//===----------------------------------------------------------------------===//
// Along the last axis
//===----------------------------------------------------------------------===//

Raiser::Results Raiser::normed(graph::CallOp call) {
  bool isLayer = call.getBaseName() == "layer_norm";
  Value x = lookup(call.getTensor("input"));
  auto shape = dyn_cast_or_null<ArrayAttr>(call.getArgument("normalized_shape"));
  auto width = shape && shape.size() == 1 ? dyn_cast<IntegerAttr>(shape[0]) : IntegerAttr();
  if (!x || !width || width.getInt() != ranked(x).getShape().back())
    return {};
  // Without an argument layer_norm has 1e-5, and rms_norm the distance of two numbers of the type
  // in which it computes: float32 for narrower ones.
  auto type = cast<graph::SymbolicType>(call.getTensor("input").getType());
  bool isDouble = type.getElementType().isF64();
  double eps = numberOf(call, "eps").value_or(isLayer ? 1e-5 : isDouble ? 0x1p-52 : 0x1p-23);
  Value y = xf::NormalizeOp::create(builder, call.getLoc(),
                                    isLayer ? xf::NormKind::layer : xf::NormKind::rms, x,
                                    llvm::APFloat(eps));
  if (Value weight = call.getTensor("weight"))
    y = withScale(call.getLoc(), y, weight);
  if (Value bias = call.getTensor("bias"))
    y = withBias(call.getLoc(), y, bias);
  return y ? Results{y} : Results{};
}

Raiser::Results Raiser::softmax(graph::CallOp call) {
  Value x = lookup(call.getTensor("self"));
  std::optional<int64_t> dim = integerOf(call, "dim");
  std::optional<int64_t> own = dim ? tokenDim(call.getTensor("self"), *dim) : std::nullopt;
  if (!x || !own || *own != ranked(x).getRank() - 1)
    return {};
  return {xf::SoftmaxOp::create(builder, call.getLoc(), x)};
}
