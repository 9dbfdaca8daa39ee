#include "ReadArguments.h"
#include "GraphBuilder.h"
#include "JsonFields.h"
#include "Symbols.h"
#include "ctxc/Checkpoint/StrictJson.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::pt2;

Expected<Values> Values::read(JsonView graph, mlir::MLIRContext *context, StringRef where) {
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
Expected<mlir::Attribute> Values::symbol(JsonView value) const {
  if (std::optional<int64_t> number = value["as_int"].integer())
    return mlir::Attribute(mlir::Builder(builder).getI64IntegerAttr(*number));
  std::optional<StringRef> text = value["as_expr"]["expr_str"].text();
  std::optional<Size> size = text ? readSize(*text) : std::nullopt;
  if (!size)
    return makeError("a size is neither a number nor an expression of numbers and symbols" +
                     (text ? ": " + quoted(*text) : std::string()));
  if (auto *number = std::get_if<int64_t>(&*size))
    return mlir::Attribute(mlir::Builder(builder).getI64IntegerAttr(*number));
  return mlir::Attribute(mlir::Builder(builder).getStringAttr(std::get<std::string>(*size)));
}

Error Values::readSizes(JsonView sizes, SmallVectorImpl<mlir::Attribute> &to,
                        const Twine &what) const {
  if (sizes.size() > mostAxes)
    return makeError(where + ": " + what + " has " + Twine(sizes.size()) + " axes");
  for (JsonView size : sizes) {
    Expected<mlir::Attribute> read = symbol(size);
    if (!read)
      return makeError(where + ": " + what + ": " + toString(read.takeError()));
    if (auto number = dyn_cast<mlir::IntegerAttr>(*read); number && number.getInt() < 0)
      return makeError(where + ": " + what + " has a size of " + Twine(number.getInt()));
    to.push_back(*read);
  }
  return Error::success();
}

Error Values::readTypes(JsonView graph) {
  auto tensors = objectIn(graph, "tensor_values", where);
  if (!tensors)
    return tensors.takeError();
  for (JsonView meta : *tensors) {
    std::string what = "tensor " + quoted(meta.key());
    int64_t dtype = meta["dtype"].integer().value_or(-1);
    mlir::Type element = elementType(builder.getContext(), dtype);
    if (!element)
      return makeError(where + ": " + what + " has dtype " + Twine(dtype) +
                       " of torch's schema; expected integers, booleans, f16, bf16, f32 or f64");
    auto sizes = arrayIn(meta, "sizes", where + ": " + what);
    if (!sizes)
      return sizes.takeError();
    SmallVector<mlir::Attribute> read;
    if (Error error = readSizes(*sizes, read, what))
      return error;
    types[meta.key()] = graph::SymbolicType::get(builder.getContext(), read, element);
  }
  return Error::success();
}

Error Values::readNumbers(JsonView graph) {
  for (JsonView number : graph["sym_int_values"]) {
    Expected<mlir::Attribute> read = symbol(number);
    if (!read)
      return makeError(where + ": " + quoted(number.key()) + ": " + toString(read.takeError()));
    numbers[number.key()] = *read;
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

Expected<mlir::Attribute> Values::argument(StringRef kind, JsonView is, Arguments &to) const {
  mlir::Builder b = builder;
  if (kind == "as_none")
    return mlir::Attribute(b.getUnitAttr());
  if (std::optional<StringRef> name = is["name"].text(); kind == "as_tensor" && name)
    return operand(*name, to);
  if (kind == "as_sym_int" && is.isObject()) {
    std::optional<StringRef> symbol = is["as_name"].text();
    if (std::optional<int64_t> number = is["as_int"].integer())
      return mlir::Attribute(b.getI64IntegerAttr(*number));
    if (symbol && numbers.contains(*symbol))
      return numbers.lookup(*symbol);
  }
  if (std::optional<bool> flag = is.flag())
    return mlir::Attribute(b.getBoolAttr(*flag));
  if (kind == "as_float" || kind == "as_sym_float") {
    if (std::optional<double> number = is.number())
      return mlir::Attribute(b.getF64FloatAttr(*number));
    if (std::optional<StringRef> text = is.text()) // "-Infinity"
      return mlir::Attribute(b.getF64FloatAttr(text->starts_with("-") ? -INFINITY
                                               : *text == "NaN"       ? NAN
                                                                      : INFINITY));
  }
  if (std::optional<int64_t> number = is.integer())
    return mlir::Attribute(b.getI64IntegerAttr(*number));
  if (std::optional<StringRef> text = is.text())
    return mlir::Attribute(b.getStringAttr(*text));
  // A list has elements of the kind that its name says, or is of objects with kinds of their own.
  if (is.isArray()) {
    SmallVector<mlir::Attribute> elements;
    StringRef each = kind;
    each.consume_back("s");
    for (JsonView element : is) {
      bool hasKind = element.isObject() && kind != "as_tensors" && kind != "as_sym_ints";
      Expected<mlir::Attribute> read =
          hasKind ? argument(element, to) : argument(each, element, to);
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

Expected<mlir::Attribute> Values::argument(JsonView value, Arguments &to) const {
  if (value.size() != 1)
    return makeError(where + ": an argument has " + Twine(value.size()) + " kinds");
  JsonView only = *value.begin();
  return argument(only.key(), only, to);
}

Expected<Values::Arguments> Values::arguments(JsonView inputs) const {
  Arguments result;
  for (JsonView input : inputs) {
    std::optional<StringRef> name = input["name"].text();
    JsonView what = input["arg"];
    if (!name || name->empty() || !what.isObject())
      return makeError(where + ": an argument has no name or no value");
    Expected<mlir::Attribute> read = argument(what, result);
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
