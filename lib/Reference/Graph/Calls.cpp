#include "Calls.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

namespace {
/// Reads "Name(argument, …)", symbols and numbers. The depth is bounded by the importer.
struct Expression {
  StringRef text;
  const Tokens &tokens;

  std::optional<int64_t> read() {
    text = text.ltrim();
    StringRef word = text.take_while([](char c) { return c != '(' && c != ',' && c != ')'; });
    text = text.drop_front(word.size());
    word = word.trim();
    if (!text.consume_front("(")) {
      int64_t number;
      if (!word.getAsInteger(10, number))
        return number;
      return word == tokens.symbol ? std::optional(tokens.count) : std::nullopt;
    }
    SmallVector<int64_t> arguments;
    do {
      std::optional<int64_t> argument = read();
      if (!argument)
        return std::nullopt;
      arguments.push_back(*argument);
      text = text.ltrim();
    } while (text.consume_front(","));
    text.consume_front(")");
    return combine(word, arguments);
  }

  static std::optional<int64_t> combine(StringRef name, ArrayRef<int64_t> x) {
    auto fold = [&](auto f) {
      int64_t result = x.front();
      for (int64_t each : x.drop_front())
        result = f(result, each);
      return std::optional(result);
    };
    if (name == "Add")
      return fold([](int64_t a, int64_t b) { return a + b; });
    if (name == "Mul")
      return fold([](int64_t a, int64_t b) { return a * b; });
    if (name == "Min")
      return fold([](int64_t a, int64_t b) { return std::min(a, b); });
    if (name == "Max")
      return fold([](int64_t a, int64_t b) { return std::max(a, b); });
    if (x.size() != 2)
      return std::nullopt;
    auto floorDiv = [](int64_t a, int64_t b) { return a / b - (a % b && (a < 0) != (b < 0)); };
    if (name == "FloorDiv" && x[1])
      return floorDiv(x[0], x[1]);
    if ((name == "Mod" || name == "PythonMod") && x[1])
      return x[0] - floorDiv(x[0], x[1]) * x[1];
    if (name == "Pow" && x[1] >= 0) {
      int64_t result = 1;
      for (int64_t i = 0; i < std::min<int64_t>(x[1], 64); ++i)
        result *= x[0];
      return result;
    }
    return std::nullopt;
  }
};
} // namespace

std::optional<int64_t> ctxc::reference::sizeOf(Attribute size, const Tokens &tokens) {
  if (auto number = dyn_cast_or_null<IntegerAttr>(size); number && !isa<BoolAttr>(size))
    return number.getInt();
  if (auto text = dyn_cast_or_null<StringAttr>(size))
    return Expression{text.getValue(), tokens}.read();
  return std::nullopt;
}

Kind ctxc::reference::kindOf(Type element) {
  if (isa<ComplexType>(element))
    return Kind::Complex;
  if (isa<FloatType>(element))
    return Kind::Float;
  return element.isInteger(1) ? Kind::Bool : Kind::Integer;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

void Call::fail(const llvm::Twine &reason) {
  if (why.empty())
    why = reason.str();
}

std::optional<Array> Call::optional(StringRef name) {
  auto operand = dyn_cast_or_null<graph::OperandAttr>(op.getArgument(name));
  return operand ? std::optional(operands[operand.getIndex()]) : std::nullopt;
}

Array Call::tensor(StringRef name) {
  if (std::optional<Array> found = optional(name))
    return *found;
  fail("has no tensor '" + name + "'");
  return Array(Kind::Float, {});
}

SmallVector<std::optional<Array>> Call::tensors(StringRef name) {
  SmallVector<std::optional<Array>> result;
  auto list = dyn_cast_or_null<ArrayAttr>(op.getArgument(name));
  if (!list)
    fail("has no list of tensors '" + name + "'");
  for (Attribute each : list ? list.getValue() : ArrayRef<Attribute>()) {
    auto operand = dyn_cast<graph::OperandAttr>(each);
    result.push_back(operand ? std::optional(operands[operand.getIndex()]) : std::nullopt);
  }
  return result;
}

Array Call::tensorOrNumber(StringRef name) {
  if (std::optional<Array> found = optional(name))
    return *found;
  Attribute given = op.getArgument(name);
  Kind kind = isa_and_nonnull<FloatAttr>(given)  ? Kind::Float
              : isa_and_nonnull<BoolAttr>(given) ? Kind::Bool
                                                 : Kind::Integer;
  return Array::filled(kind, {}, number(name));
}

double Call::number(StringRef name, std::optional<double> otherwise) {
  Attribute given = op.getArgument(name);
  if (auto number = dyn_cast_or_null<FloatAttr>(given))
    return number.getValueAsDouble();
  if (auto flag = dyn_cast_or_null<BoolAttr>(given))
    return flag.getValue();
  if (std::optional<int64_t> number = sizeOf(given, itsTokens))
    return *number;
  if (given || !otherwise)
    fail("has no number '" + name + "' that is known");
  return otherwise.value_or(0);
}

int64_t Call::integer(StringRef name, std::optional<int64_t> otherwise) {
  Attribute given = op.getArgument(name);
  if (std::optional<int64_t> number = sizeOf(given, itsTokens))
    return *number;
  if (given || !otherwise)
    fail("has no integer '" + name + "' that is known");
  return otherwise.value_or(0);
}

Shape Call::integers(StringRef name, ArrayRef<int64_t> otherwise) {
  Attribute given = op.getArgument(name);
  if (!given)
    return Shape(otherwise);
  Shape result;
  auto list = dyn_cast<ArrayAttr>(given);
  for (Attribute each : list ? list.getValue() : ArrayRef(given)) {
    std::optional<int64_t> number = sizeOf(each, itsTokens);
    if (!number)
      fail("has no integers '" + name + "' that are known");
    result.push_back(number.value_or(0));
  }
  return result;
}

bool Call::flag(StringRef name, bool otherwise) {
  auto given = dyn_cast_or_null<BoolAttr>(op.getArgument(name));
  return given ? given.getValue() : otherwise;
}

StringRef Call::text(StringRef name, StringRef otherwise) {
  auto given = dyn_cast_or_null<StringAttr>(op.getArgument(name));
  return given ? given.getValue() : otherwise;
}

int64_t Call::axis(StringRef name, int64_t rank, std::optional<int64_t> otherwise) {
  int64_t axis = integer(name, otherwise);
  axis += axis < 0 ? rank : 0;
  if (axis >= 0 && axis < rank)
    return axis;
  fail("has an axis '" + name + "' that its operand lacks");
  return 0;
}

Shape Call::axes(StringRef name, int64_t rank) {
  Shape result = integers(name);
  for (int64_t &axis : result) {
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank)
      fail("has axes '" + name + "' that its operand lacks");
  }
  if (result.empty())
    llvm::append_range(result, llvm::seq<int64_t>(0, rank));
  return result;
}

Shape Call::resultShape(unsigned result) {
  auto type = cast<graph::SymbolicType>(op.getResult(result).getType());
  Shape shape;
  for (Attribute size : type.getSizes()) {
    std::optional<int64_t> number = sizeOf(size, itsTokens);
    if (!number || *number < 0)
      fail("has a result whose sizes depend on more than the number of tokens");
    shape.push_back(std::max<int64_t>(number.value_or(0), 0));
  }
  return shape;
}

Kind Call::resultKind(unsigned result) {
  return kindOf(cast<graph::SymbolicType>(op.getResult(result).getType()).getElementType());
}

Results meanings::none(Call &) { return {}; }

Meaning ctxc::reference::meaningOf(StringRef name) {
  static const llvm::StringMap<Meaning> all = [] {
    llvm::StringMap<Meaning> map;
#define ATEN(name, kind, tokens, meaning, raised, followed, generic) map[name] = meanings::meaning;
#include "dialects/Graph/AtenOps.def"
    return map;
  }();
  Meaning found = all.lookup(name);
  return found == meanings::none ? nullptr : found;
}
