#include "ReadFile.h"
#include "JsonFields.h"
#include "ReadNumbers.h"
#include "Symbols.h"
#include "ctxc/Support/ForeignText.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SHA256.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::pt2;

static constexpr StringLiteral formatOfFile = "ctxc program", versionOfFile = "1";
static constexpr size_t mostOfTaken = 300;
static constexpr unsigned deepestList = 8;

namespace {

class FileReader {
public:
  FileReader(JsonView root, const SafetensorsFile &file, const Payloads &payloads,
             std::string where, mlir::MLIRContext *context)
      : root(root), file(file), payloads(payloads), where(std::move(where)), b(context),
        builder(this->where, payloads, context) {}

  Expected<Program> read();

private:
  Error wrong(const Twine &what) const { return makeError(where + ": " + at + what); }
  Error members(JsonView object, ArrayRef<StringRef> known) const {
    return expectMembers(object, known, where + ": " + StringRef(at).rtrim(": "));
  }
  Expected<StringRef> nameOf(JsonView entry) const;
  Expected<mlir::Attribute> size(JsonView value) const;
  Expected<graph::SymbolicType> type(JsonView entry) const;
  /// The name and type of what an entry declares.
  Expected<std::pair<StringRef, graph::SymbolicType>> declared(JsonView entry) const;
  Error readInput(JsonView entry);
  Error readStored(JsonView entry);
  Error checkNumbers(StringRef name, StringRef type, graph::SymbolicType sizes) const;
  Error readPart(JsonView part, StringRef name, graph::SymbolicType type);
  Error readCall(JsonView call);
  Expected<mlir::Value> value(JsonView tensor, StringRef kind) const;
  Expected<mlir::Attribute> argument(JsonView one, GraphBuilder::Call &to, unsigned depth) const;

  JsonView root;
  const SafetensorsFile &file;
  const Payloads &payloads;
  std::string where;
  std::string at; ///< the entry that is being read: "calls[3]: "
  mlir::Builder b;
  GraphBuilder builder;
  bool isWhole = false; ///< the file has the numbers of all parameters
  StringMap<mlir::Value> tensors, storedTensors;
  SmallVector<StringRef> traces;
  std::vector<StoredPart> parts;
};

} // namespace

Expected<StringRef> FileReader::nameOf(JsonView entry) const {
  std::optional<StringRef> name = entry["name"].text();
  if (!name || name->empty())
    return wrong("expected a text 'name'");
  return *name;
}

/// 3 or "Mul(2, t)"
Expected<mlir::Attribute> FileReader::size(JsonView value) const {
  std::optional<int64_t> number = value.integer();
  if (number && *number >= 0)
    return mlir::Attribute(mlir::Builder(b).getI64IntegerAttr(*number));
  std::optional<StringRef> text = value.text();
  if (!text || !isSizeText(*text))
    return wrong("a size is neither a number that is not negative nor an expression of numbers and "
                 "names" +
                 (text ? ": " + quoted(*text) : std::string()));
  return mlir::Attribute(mlir::Builder(b).getStringAttr(*text));
}

/// The type that an entry's 'type' and 'sizes' say.
Expected<graph::SymbolicType> FileReader::type(JsonView entry) const {
  std::optional<StringRef> name = entry["type"].text();
  std::optional<int64_t> code = name ? codeOfType(*name) : std::nullopt;
  if (!code)
    return wrong("found the type " + quoted(name.value_or("")) +
                 ", expected one such as F32, BF16, I64 or BOOL");
  JsonView sizes = entry["sizes"];
  if (!sizes.isArray() || sizes.size() > mostAxes)
    return wrong("expected a list 'sizes' of at most " + Twine(mostAxes));
  SmallVector<mlir::Attribute> read;
  for (JsonView each : sizes) {
    Expected<mlir::Attribute> made = size(each);
    if (!made)
      return made.takeError();
    read.push_back(*made);
  }
  return graph::SymbolicType::get(b.getContext(), read, elementType(b.getContext(), *code));
}

Expected<std::pair<StringRef, graph::SymbolicType>> FileReader::declared(JsonView entry) const {
  auto name = nameOf(entry);
  if (!name)
    return name.takeError();
  auto type = this->type(entry);
  if (!type)
    return type.takeError();
  return std::make_pair(*name, *type);
}

Error FileReader::readInput(JsonView entry) {
  if (Error error = members(entry, {"name", "role", "type", "sizes"}))
    return error;
  auto is = declared(entry);
  if (!is)
    return is.takeError();
  auto &[name, type] = *is;
  StringRef role = entry["role"].text().value_or("");
  if (!is_contained({"token", "position", "activation"}, role))
    return wrong("found the role " + quoted(role) + ", expected token, position or activation");
  auto made = builder.input(name, type, role);
  if (!made)
    return made.takeError();
  if (!tensors.try_emplace(name, *made).second)
    return wrong("tensor " + quoted(name) + " is made twice");
  return Error::success();
}

/// What the file's header says of a stored tensor must be what the program says.
Error FileReader::checkNumbers(StringRef name, StringRef type, graph::SymbolicType sizes) const {
  const TensorView *stored = file.find(name);
  if (!stored)
    return Error::success();
  bool isSame =
      ctxc::nameOf(stored->dtype) == type && int64_t(stored->shape.size()) == sizes.getRank();
  for (auto [i, size] : enumerate(stored->shape))
    isSame = isSame && sizes.getNumber(i) == size;
  if (isSame)
    return Error::success();
  return wrong("the file stores " + ctxc::nameOf(stored->dtype) + shapeText(stored->shape) +
               ", and the program says another type or other sizes");
}

Error FileReader::readStored(JsonView entry) {
  if (Error error = members(entry, {"name", "kind", "type", "sizes", "part"}))
    return error;
  auto is = declared(entry);
  if (!is)
    return is.takeError();
  auto &[name, type] = *is;
  StringRef kind = entry["kind"].text().value_or("");
  if (!is_contained({"parameter", "buffer", "constant"}, kind))
    return wrong("found the kind " + quoted(kind) + ", expected parameter, buffer or constant");
  if (Error error = checkNumbers(name, *entry["type"].text(), type))
    return error;
  auto made = builder.stored(name, type, kind != "parameter", kind == "buffer" && !isWhole);
  if (!made)
    return made.takeError();
  if (!storedTensors.try_emplace(name, *made).second)
    return wrong("tensor " + quoted(name) + " is stored twice");
  return entry["part"] ? readPart(entry["part"], name, type) : Error::success();
}

/// Which entries of a tensor of the author's it is.
Error FileReader::readPart(JsonView from, StringRef name, graph::SymbolicType type) {
  at += "part: ";
  if (Error error = members(from, {"of", "offset", "dims", "strides"}))
    return error;
  StoredPart part;
  part.name = name.str();
  part.of = from["of"].text().value_or("").str();
  if (part.of.empty())
    return wrong("expected the name of the tensor that it is a part of, as 'of'");
  part.offset = from["offset"].integer().value_or(-1);
  bool isPlace = part.offset >= 0;
  uint64_t count = 1, wanted = 1;
  for (auto [key, to] : {std::pair<StringRef, SmallVectorImpl<int64_t> *>("dims", &part.dims),
                         {"strides", &part.strides}}) {
    isPlace &= from[key].isArray() && from[key].size() <= mostAxes;
    for (JsonView each : from[key]) {
      to->push_back(each.integer().value_or(-1));
      isPlace &= to->back() >= 0;
    }
  }
  if (!isPlace || part.dims.size() != part.strides.size())
    return wrong("is a place that is none; expected 'offset', and as many 'dims' as 'strides', all "
                 "of them 0 or more");
  for (int64_t size : part.dims)
    count = SaturatingMultiply<uint64_t>(count, size);
  for (unsigned i = 0; i < type.getRank(); ++i) {
    part.shape.push_back(type.getNumber(i).value_or(0));
    wanted = SaturatingMultiply<uint64_t>(wanted, part.shape.back());
  }
  if (count != wanted)
    return wrong("has " + Twine(count) + " entries; the tensor's type says " + Twine(wanted));
  parts.push_back(std::move(part));
  return Error::success();
}

Expected<mlir::Value> FileReader::value(JsonView tensor, StringRef kind) const {
  const auto &known = kind == "tensor" ? tensors : storedTensors;
  std::optional<StringRef> name = tensor.text();
  if (auto found = known.find(name.value_or("")); name && found != known.end())
    return found->second;
  return wrong(kind == "tensor"
                   ? "tensor " + quoted(name.value_or("")) + " is read before anything makes it"
                   : "nothing says the type of the stored tensor " + quoted(name.value_or("")));
}

/// {"int": 3}: one member, whose key is its kind.
Expected<mlir::Attribute> FileReader::argument(JsonView one, GraphBuilder::Call &to,
                                               unsigned depth) const {
  if (!one.isObject() || one.size() != 1)
    return wrong("expected an object of one kind");
  mlir::Builder make = b;
  JsonView is = *one.begin();
  StringRef kind = is.key();
  if (kind == "tensor" || kind == "stored") {
    Expected<mlir::Value> read = value(is, kind);
    if (!read)
      return read.takeError();
    to.operands.push_back(*read);
    return graph::OperandAttr::get(b.getContext(), to.operands.size() - 1);
  }
  if (kind == "list" && is.isArray() && depth < deepestList) {
    SmallVector<mlir::Attribute> elements;
    for (JsonView each : is) {
      Expected<mlir::Attribute> read = argument(each, to, depth + 1);
      if (!read)
        return read.takeError();
      elements.push_back(*read);
    }
    return mlir::Attribute(make.getArrayAttr(elements));
  }
  if (kind == "size")
    return size(is);
  std::optional<StringRef> text = is.text();
  if (kind == "text" && text)
    return mlir::Attribute(make.getStringAttr(*text));
  if (std::optional<int64_t> code = text ? codeOfType(*text) : std::nullopt; kind == "type" && code)
    return mlir::Attribute(make.getI64IntegerAttr(*code));
  if (std::optional<bool> flag = is.flag(); kind == "flag" && flag)
    return mlir::Attribute(make.getBoolAttr(*flag));
  if (kind == "none" && is.flag() == true)
    return mlir::Attribute(make.getUnitAttr());
  if (std::optional<int64_t> number = is.integer(); kind == "int" && number)
    return mlir::Attribute(make.getI64IntegerAttr(*number));
  if (kind == "float") {
    if (std::optional<double> number = is.number())
      return mlir::Attribute(make.getF64FloatAttr(*number));
    for (auto [name, number] :
         {std::pair<StringRef, double>("inf", INFINITY), {"-inf", -INFINITY}, {"nan", NAN}})
      if (text == name)
        return mlir::Attribute(make.getF64FloatAttr(number));
  }
  return wrong(
      "found an argument of kind " + quoted(kind) +
      " that is none; expected tensor, stored, int, float, flag, text, type, size, none or "
      "list, with what it names");
}

Error FileReader::readCall(JsonView call) {
  if (Error error = members(call, {"op", "arguments", "results", "module", "trace", "visible"}))
    return error;
  GraphBuilder::Call made;
  made.op = call["op"].text().value_or("");
  JsonView arguments = call["arguments"], results = call["results"];
  if (made.op.empty() || !arguments.isObject() || !results.isArray() || !results.size())
    return wrong("expected a text 'op', an object 'arguments' and a list 'results'");
  std::string place = at;
  for (JsonView each : arguments) {
    at = place + "argument " + quoted(each.key()) + ": ";
    if (each.key().empty())
      return wrong("it has no name");
    Expected<mlir::Attribute> read = argument(each, made, 0);
    if (!read)
      return read.takeError();
    if (!isa<mlir::UnitAttr>(*read)) // as if it had not been given
      made.arguments.push_back(b.getNamedAttr(each.key(), *read));
  }
  SmallVector<StringRef> names;
  for (JsonView each : results) {
    at = place + "results[" + std::to_string(names.size()) + "]: ";
    if (Error error = members(each, {"name", "type", "sizes"}))
      return error;
    auto is = declared(each);
    if (!is)
      return is.takeError();
    names.push_back(is->first);
    made.types.push_back(is->second);
  }
  at = place;
  made.name = names.front();
  if (JsonView module = call["module"]) {
    if (!module.text())
      return wrong("expected a text 'module'");
    made.module = *module.text();
  }
  if (JsonView trace = call["trace"]) {
    int64_t index = trace.integer().value_or(-1);
    if (index < 0 || size_t(index) >= traces.size())
      return wrong("expected 'trace' to be a place in 'traces', which has " + Twine(traces.size()));
    made.trace = traces[index];
  }
  if (JsonView visible = call["visible"]) {
    if (!visible.flag())
      return wrong("expected a flag 'visible'");
    made.visible = *visible.flag();
  }
  for (auto [name, result] : llvm::zip(names, builder.call(made)))
    if (!tensors.try_emplace(name, result).second)
      return wrong("tensor " + quoted(name) + " is made twice");
  return Error::success();
}

Expected<Program> FileReader::read() {
  if (Error error =
          members(root, {"inputs", "stored", "calls", "results", "traces", "source", "taken"}))
    return std::move(error);
  for (StringRef list : {"inputs", "stored", "calls", "results", "traces"})
    if (!root[list].isArray())
      return wrong("expected a list " + quoted(list));
  if (!root["source"].isObject())
    return wrong("expected an object 'source'");
  if (root["taken"] && !root["taken"].text())
    return wrong("expected a text 'taken'");
  for (JsonView trace : root["traces"]) {
    if (!trace.text())
      return wrong("'traces' has an entry that is no text");
    traces.push_back(*trace.text());
  }
  isWhole = all_of(root["stored"], [&](JsonView each) {
    return each["kind"].text() != "parameter" || payloads.has(each["name"].text().value_or(""));
  });
  auto each = [&](StringRef list, Error (FileReader::*readOne)(JsonView)) -> Error {
    size_t index = 0;
    for (JsonView entry : root[list]) {
      at = (list + "[" + Twine(index++) + "]: ").str();
      if (Error error = (this->*readOne)(entry))
        return error;
    }
    at.clear();
    return Error::success();
  };
  if (Error error = each("stored", &FileReader::readStored))
    return std::move(error);
  for (const TensorView &tensor : file.tensors())
    if (!storedTensors.contains(tensor.name))
      return wrong("the file stores a tensor " + quoted(tensor.name) +
                   ", which the program does not name");
  if (Error error = each("inputs", &FileReader::readInput))
    return std::move(error);
  if (Error error = each("calls", &FileReader::readCall))
    return std::move(error);
  SmallVector<mlir::Value> results;
  for (JsonView result : root["results"]) {
    at = "results: ";
    GraphBuilder::Call none;
    Expected<mlir::Attribute> read = argument(result, none, deepestList);
    if (!read)
      return read.takeError();
    if (none.operands.empty())
      return wrong("expected tensors alone");
    results.push_back(none.operands.front());
  }
  Expected<Program> program = builder.finish(results);
  if (!program)
    return program;
  program->parts = std::move(parts);
  program->taken = printableLine(root["taken"].text().value_or("").take_front(mostOfTaken));
  return program;
}

/// What the metadata of a file must be; an entry of it as JSON.
static Error checkMetadata(const std::map<std::string, std::string> &metadata, StringRef path) {
  auto entry = [&](const char *key) {
    auto found = metadata.find(key);
    return found == metadata.end() ? StringRef() : StringRef(found->second);
  };
  if (entry("format") != formatOfFile)
    return makeError(path + ": is no program: its metadata has no 'format' that is " +
                     quoted(formatOfFile) + "; expected what the exporters of ctxc write");
  StringRef version = entry("version");
  unsigned number = 0, own = 0;
  versionOfFile.getAsInteger(10, own);
  if (version.getAsInteger(10, number) || number < own)
    return makeError(path + ": found version " + quoted(version) + " of the format, expected " +
                     versionOfFile + ": an exporter that is older has written it; export it again");
  if (number > own)
    return makeError(path + ": found version " + quoted(version) + " of the format, expected " +
                     versionOfFile +
                     ": an exporter that is newer has written it; read it with a newer ctxc, or "
                     "export it with the exporter of this one");
  for (const auto &[key, text] : metadata)
    if (!is_contained({"format", "version", "program", "numbers"}, key))
      return makeError(path + ": its metadata has " + quoted(key) +
                       ", which is not known here; expected format, version, program and numbers");
  return Error::success();
}

Expected<Program> ctxc::pt2::readFile(const SafetensorsFile &file, const Payloads &payloads,
                                      mlir::MLIRContext &context) {
  const auto &metadata = file.metadata();
  std::string path = file.file().path().str();
  if (Error error = checkMetadata(metadata, path))
    return std::move(error);
  auto json = [&](const char *key) -> Expected<JsonTree> {
    auto found = metadata.find(key);
    if (found == metadata.end())
      return makeError(path + ": its metadata has no " + quoted(key));
    return readObject(found->second, path + ": " + key);
  };
  Expected<JsonTree> said = json("program");
  if (!said)
    return said.takeError();
  Expected<JsonTree> numbers = json("numbers");
  if (!numbers)
    return numbers.takeError();
  Expected<Program> program =
      FileReader(said->root(), file, payloads, path + ": program", &context).read();
  if (!program)
    return program;
  Expected<SourceNumbers> source = readNumbers(numbers->root(), path + ": numbers");
  if (!source)
    return source.takeError();
  program->source = std::move(*source);
  SHA256 hash;
  for (const auto &[key, text] : metadata)
    hash.update(text);
  program->source.file = toHex(hash.final(), /*LowerCase=*/true);
  return program;
}
