#include "ReadArguments.h"
#include "JsonFields.h"
#include "Symbols.h"
#include "ctxc/Checkpoint/StrictJson.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::pt2;

/// More axes than a tensor of PyTorch has.
static constexpr size_t mostAxes = 64;

/// The types of torch's schema; none for one that no model computes with.
static mlir::Type elementType(mlir::Builder &b, int64_t type) {
  switch (type) {
  case 1:
    return b.getIntegerType(8, /*isSigned=*/false);
  case 2:
  case 3:
  case 4:
  case 5:
    return b.getIntegerType(8 << (type - 2), /*isSigned=*/true);
  case 6:
    return b.getF16Type();
  case 7:
    return b.getF32Type();
  case 8:
    return b.getF64Type();
  case 10:
    return mlir::ComplexType::get(b.getF32Type());
  case 11:
    return mlir::ComplexType::get(b.getF64Type());
  case 12:
    return b.getI1Type();
  case 13:
    return b.getBF16Type();
  default:
    return {};
  }
}

Expected<Values> Values::read(const json::Object &graph, mlir::MLIRContext *context,
                              StringRef where) {
  Values values;
  values.builder = mlir::Builder(context);
  values.where = where.str();
  if (Error error = values.readNumbers(graph))
    return std::move(error);
  if (Error error = values.readTypes(graph))
    return std::move(error);
  return values;
}

/// {"as_int": 3} or {"as_expr": {"expr_str": …}}
Expected<mlir::Attribute> Values::symbol(const json::Object &value) const {
  if (std::optional<int64_t> number = value.getInteger("as_int"))
    return mlir::Attribute(mlir::Builder(builder).getI64IntegerAttr(*number));
  const json::Object *expression = value.getObject("as_expr");
  std::optional<StringRef> text =
      expression ? expression->getString("expr_str") : std::optional<StringRef>();
  std::optional<Size> size = text ? readSize(*text) : std::nullopt;
  if (!size)
    return makeError("a size is neither a number nor an expression of numbers and symbols" +
                     (text ? ": " + quoted(*text) : std::string()));
  if (auto *number = std::get_if<int64_t>(&*size))
    return mlir::Attribute(mlir::Builder(builder).getI64IntegerAttr(*number));
  return mlir::Attribute(mlir::Builder(builder).getStringAttr(std::get<std::string>(*size)));
}

Error Values::readSizes(const json::Array &sizes, SmallVectorImpl<mlir::Attribute> &to,
                        const Twine &what) const {
  if (sizes.size() > mostAxes)
    return makeError(where + ": " + what + " has " + Twine(sizes.size()) + " axes");
  for (const json::Value &value : sizes) {
    const json::Object *size = value.getAsObject();
    Expected<mlir::Attribute> read =
        size ? symbol(*size) : Expected<mlir::Attribute>(makeError("a size is no object"));
    if (!read)
      return makeError(where + ": " + what + ": " + toString(read.takeError()));
    if (auto number = dyn_cast<mlir::IntegerAttr>(*read); number && number.getInt() < 0)
      return makeError(where + ": " + what + " has a size of " + Twine(number.getInt()));
    to.push_back(*read);
  }
  return Error::success();
}

Error Values::readTypes(const json::Object &graph) {
  auto tensors = objectIn(graph, "tensor_values", where);
  if (!tensors)
    return tensors.takeError();
  for (const auto &[name, value] : **tensors) {
    std::string what = "tensor " + quoted(name);
    const json::Object *meta = value.getAsObject();
    if (!meta)
      return makeError(where + ": " + what + " is no object");
    mlir::Type element = elementType(builder, meta->getInteger("dtype").value_or(-1));
    if (!element)
      return makeError(where + ": " + what + " has dtype " +
                       Twine(meta->getInteger("dtype").value_or(-1)) +
                       " of torch's schema; expected integers, booleans, f16, bf16, f32 or f64");
    auto sizes = arrayIn(*meta, "sizes", where + ": " + what);
    if (!sizes)
      return sizes.takeError();
    SmallVector<mlir::Attribute> read;
    if (Error error = readSizes(**sizes, read, what))
      return error;
    types[StringRef(name)] = graph::SymbolicType::get(builder.getContext(), read, element);
  }
  return Error::success();
}

Error Values::readNumbers(const json::Object &graph) {
  const json::Object *symbols = graph.getObject("sym_int_values");
  if (!symbols)
    return Error::success();
  for (const auto &[name, value] : *symbols) {
    const json::Object *number = value.getAsObject();
    Expected<mlir::Attribute> read =
        number ? symbol(*number) : Expected<mlir::Attribute>(makeError("is no object"));
    if (!read)
      return makeError(where + ": " + quoted(name) + ": " + toString(read.takeError()));
    numbers[StringRef(name)] = *read;
  }
  return Error::success();
}

Expected<graph::SymbolicType> Values::type(StringRef tensor) const {
  auto known = types.find(tensor);
  if (known == types.end())
    return makeError(where + ": nothing says the size of tensor " + quoted(tensor));
  return known->second;
}

Error Values::define(StringRef tensor, mlir::Value value) {
  if (!defined.try_emplace(tensor, value).second)
    return makeError(where + ": tensor " + quoted(tensor) + " is made twice");
  return Error::success();
}

Expected<mlir::Value> Values::tensor(StringRef name) const {
  auto known = defined.find(name);
  if (known == defined.end())
    return makeError(where + ": tensor " + quoted(name) + " is read before anything makes it");
  return known->second;
}

Expected<mlir::Attribute> Values::operand(StringRef tensor, Arguments &to) const {
  Expected<mlir::Value> value = this->tensor(tensor);
  if (!value)
    return value.takeError();
  to.operands.push_back(*value);
  return graph::OperandAttr::get(builder.getContext(), to.operands.size() - 1);
}

Expected<mlir::Attribute> Values::argument(const json::Object &value, Arguments &to) const {
  mlir::Builder b = builder;
  if (value.size() != 1)
    return makeError(where + ": an argument has " + Twine(value.size()) + " kinds");
  StringRef kind = value.begin()->first;
  const json::Value &is = value.begin()->second;
  const json::Object *object = is.getAsObject();
  auto name = [&] { return object ? object->getString("name") : std::optional<StringRef>(); };
  if (kind == "as_none")
    return mlir::Attribute(b.getUnitAttr());
  if (kind == "as_tensor" && name())
    return operand(*name(), to);
  if (kind == "as_sym_int" && object) {
    std::optional<StringRef> symbol = object->getString("as_name");
    if (std::optional<int64_t> number = object->getInteger("as_int"))
      return mlir::Attribute(b.getI64IntegerAttr(*number));
    if (symbol && numbers.contains(*symbol))
      return numbers.lookup(*symbol);
  }
  if (std::optional<bool> flag = is.getAsBoolean())
    return mlir::Attribute(b.getBoolAttr(*flag));
  if (kind == "as_float" || kind == "as_sym_float") {
    if (std::optional<double> number = is.getAsNumber())
      return mlir::Attribute(b.getF64FloatAttr(*number));
    if (std::optional<StringRef> text = is.getAsString()) // "-Infinity"
      return mlir::Attribute(b.getF64FloatAttr(text->starts_with("-") ? -INFINITY
                                               : *text == "NaN"       ? NAN
                                                                      : INFINITY));
  }
  if (std::optional<int64_t> number = is.getAsInteger())
    return mlir::Attribute(b.getI64IntegerAttr(*number));
  if (std::optional<StringRef> text = is.getAsString())
    return mlir::Attribute(b.getStringAttr(*text));
  // A list has elements of the kind that its name says, or is of objects with kinds of their own.
  if (const json::Array *list = is.getAsArray()) {
    SmallVector<mlir::Attribute> elements;
    StringRef each = kind;
    each.consume_back("s");
    for (const json::Value &element : *list) {
      const json::Object *own = element.getAsObject();
      bool isTensor = kind == "as_tensors";
      json::Object wrapped;
      if (!own || isTensor || (kind == "as_sym_ints"))
        wrapped[each] = element;
      Expected<mlir::Attribute> read = argument(wrapped.empty() ? *own : wrapped, to);
      if (!read)
        return read.takeError();
      elements.push_back(*read);
    }
    return mlir::Attribute(b.getArrayAttr(elements));
  }
  // Where and how a tensor lies in memory changes no number.
  if (kind == "as_device" || kind == "as_layout" || kind == "as_memory_format")
    return mlir::Attribute(b.getUnitAttr());
  return makeError(where + ": an argument of kind " + quoted(kind) +
                   " is not supported; expected tensors, numbers, flags, texts and lists of them");
}

Expected<Values::Arguments> Values::arguments(const json::Array &inputs) const {
  Arguments result;
  for (const json::Value &value : inputs) {
    const json::Object *input = value.getAsObject();
    std::optional<StringRef> name = input ? input->getString("name") : std::optional<StringRef>();
    const json::Object *what = input ? input->getObject("arg") : nullptr;
    if (!name || name->empty() || !what)
      return makeError(where + ": an argument has no name or no value");
    Expected<mlir::Attribute> read = argument(*what, result);
    if (!read)
      return read.takeError();
    if (isa<mlir::UnitAttr>(*read))
      continue; // as if it had not been given
    if (any_of(result.named, [&](mlir::NamedAttribute known) { return known.getName() == *name; }))
      return makeError(where + ": argument " + quoted(*name) + " is given twice");
    result.named.push_back(mlir::Builder(builder).getNamedAttr(*name, *read));
  }
  return result;
}
