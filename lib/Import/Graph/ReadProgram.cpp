#include "ReadProgram.h"
#include "Capture.h"
#include "JsonFields.h"
#include "Note.h"
#include "ReadArguments.h"
#include "Spelling.h"
#include "Symbols.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::pt2;

/// The schema that this reads; another major version may mean something else by the same words.
static constexpr int64_t schemaMajor = 8;
/// The calls, each in the next, that a location keeps at most.
static constexpr size_t mostCalls = 4;

static Error checkVersion(JsonView file, StringRef where) {
  JsonView schema = file["schema_version"];
  int64_t major = schema["major"].integer().value_or(0);
  int64_t minor = schema["minor"].integer().value_or(0);
  if (major == schemaMajor)
    return Error::success();
  StringRef torch = file["torch_version"].text().value_or("of an unknown version");
  return makeError(where + ": found schema " + Twine(major) + "." + Twine(minor) +
                   " of torch.export, written by torch " + quoted(torch) + "; expected schema " +
                   Twine(schemaMajor) + ", which torch 2.13 writes: export it with that version");
}

namespace {

class ProgramReader {
public:
  ProgramReader(JsonView graph, JsonView signature, const Note &note, const Payloads &payloads,
                Values values, std::string where, mlir::MLIRContext *context)
      : graph(graph), signature(signature), note(note), payloads(payloads),
        values(std::move(values)), where(std::move(where)), builder(context) {}

  Expected<Program> read();

private:
  Expected<JsonView> specOf(JsonView value) const;
  Error readInputs();
  Error checkFixedLength() const;
  bool isRead(StringRef tensor) const;
  Error readInput(JsonView value);
  Error readStored(StringRef tensor, StringRef name, bool fixed, bool loaded);
  Error readNumbers(graph::StoredOp tensor, StringRef name);
  Error readNode(JsonView node);
  Error readOutputs();
  Error takeParts(Program &program) const;
  Error findTokens(StringRef name, graph::SymbolicType type);
  mlir::Location calls(ArrayRef<SourceLine> innermostFirst);
  mlir::Location locationOf(StringRef name, JsonView metadata);

  JsonView graph, signature;
  const Note &note;
  const Payloads &payloads;
  Values values;
  std::string where;
  mlir::OpBuilder builder;
  SourceLines lines;
  mlir::Attribute tokens;
  bool isWhole = false;              ///< the file has the numbers of all parameters
  StringMap<graph::StoredOp> stored; ///< by the name that stands for it
};

} // namespace

/// The one member of a specification: its key is its kind.
Expected<JsonView> ProgramReader::specOf(JsonView value) const {
  if (!value.isObject() || value.size() != 1 || !(*value.begin()).isObject())
    return makeError(where + ": the signature has an entry that is no object of one kind");
  return *value.begin();
}

/// The tokens' axis is the second one of the first input.
Error ProgramReader::findTokens(StringRef name, graph::SymbolicType type) {
  if (type.getRank() < 2 || type.getNumber(0) != 1)
    return makeError(where + ": input " + quoted(name) +
                     " is not (1, tokens, …); export the model "
                     "for one sequence");
  mlir::Attribute size = type.getSizes()[1];
  if (tokens && tokens != size)
    return makeError(where + ": input " + quoted(name) +
                     " has another number of tokens than the "
                     "inputs before it");
  tokens = size;
  return Error::success();
}

Error ProgramReader::readStored(StringRef tensor, StringRef name, bool fixed, bool loaded) {
  auto type = values.type(tensor);
  if (!type)
    return type.takeError();
  auto alias = note.aliases.find(name);
  StringRef one = alias == note.aliases.end() ? name : StringRef(alias->second);
  graph::StoredOp &known = stored[one];
  if (!known) {
    mlir::Location loc = mlir::NameLoc::get(builder.getStringAttr(one));
    known =
        graph::StoredOp::create(builder, loc, *type, one, fixed, loaded, mlir::DenseElementsAttr());
    if (Error error = readNumbers(known, name))
      return error;
  } else if (known.getType() != *type || known.getFixed() != fixed) {
    return makeError(where + ": " + quoted(name) + " and " + quoted(one) +
                     " share memory, and are not one tensor; expected the same shape and kind");
  }
  return values.define(tensor, known);
}

/// A mask, a scale or a list of indices is a part of the program; what could be a parameter, or has
/// more entries than the masks of any model, is read with the weights.
Error ProgramReader::readNumbers(graph::StoredOp tensor, StringRef name) {
  constexpr int64_t mostEntries = 1 << 22;
  if (!tensor.getFixed() || parameterOf(tensor) || !payloads.has(name))
    return Error::success();
  auto type = cast<graph::SymbolicType>(tensor.getType());
  SmallVector<int64_t> shape;
  int64_t count = 1;
  for (unsigned i = 0; i < type.getRank(); ++i) {
    shape.push_back(type.getNumber(i).value_or(-1));
    if (shape.back() < 0 || (shape.back() && count > mostEntries / shape.back()))
      return Error::success();
    count *= shape.back();
  }
  Expected<std::vector<double>> numbers = payloads.numbers(name);
  if (!numbers)
    return numbers.takeError();
  if (int64_t(numbers->size()) != count)
    return makeError(where + ": tensor " + quoted(name) + " has " + Twine(numbers->size()) +
                     " entries; its type says " + Twine(count));
  tensor.setValueAttr(mlir::DenseElementsAttr::get(
      mlir::RankedTensorType::get(shape, builder.getF64Type()), ArrayRef(*numbers)));
  return Error::success();
}

/// Whether a node has tensor `name` among its arguments.
bool ProgramReader::isRead(StringRef name) const {
  auto isIt = [&](JsonView tensor) { return tensor["name"].text() == name; };
  auto reads = [&](JsonView input) {
    return isIt(input["arg"]["as_tensor"]) || any_of(input["arg"]["as_tensors"], isIt);
  };
  return any_of(graph["nodes"], [&](JsonView node) {
    // A size is in the types, and a check changes nothing.
    return node["target"].text() != "torch.ops.aten.sym_size.int" && any_of(node["inputs"], reads);
  });
}

Error ProgramReader::readInput(JsonView value) {
  Expected<JsonView> spec = specOf(value);
  if (!spec)
    return spec.takeError();
  StringRef kind = spec->key();
  JsonView argument = (*spec)["arg"];
  if (kind == "user_input")
    argument = argument["as_tensor"];
  std::optional<StringRef> tensor = argument["name"].text();
  if (!tensor)
    return kind == "user_input" || kind == "constant_input"
               ? Error::success() // a number or a flag, which the graph has in itself
               : makeError(where + ": the signature has an input of kind " + quoted(kind) +
                           " without a name");
  if (kind == "user_input") {
    auto type = values.type(*tensor);
    if (!type)
      return type.takeError();
    std::string role = note.roles.lookup(*tensor);
    if (role.empty())
      role = isa<mlir::FloatType>(type->getElementType()) ? "activation"
             : tensor->contains("position")               ? "position"
                                                          : "token";
    // torch.export gives positions that nothing reads a number of their own.
    if (role == "position" && !isRead(*tensor))
      return Error::success();
    if (Error error = findTokens(*tensor, *type))
      return error;
    mlir::Location loc = mlir::NameLoc::get(builder.getStringAttr(*tensor));
    return values.define(*tensor, graph::InputOp::create(builder, loc, *type, *tensor, role));
  }
  std::optional<StringRef> name = (*spec)[kind == "parameter" ? "parameter_name"
                                          : kind == "buffer"  ? "buffer_name"
                                                              : "tensor_constant_name"]
                                      .text();
  if (!name)
    return makeError(where + ": the signature has an input of kind " + quoted(kind) +
                     "; expected parameters, buffers, constants and the model's own inputs");
  const bool isFixed = kind != "parameter";
  return readStored(*tensor, *name, isFixed,
                    isFixed && !isWhole && (*spec)["persistent"].flag().value_or(false));
}

Error ProgramReader::readInputs() {
  auto inputs = arrayIn(signature, "input_specs", where);
  if (!inputs)
    return inputs.takeError();
  isWhole = all_of(*inputs, [&](JsonView input) {
    std::optional<StringRef> name = input["parameter"]["parameter_name"].text();
    return !name || payloads.has(*name);
  });
  for (JsonView value : *inputs)
    if (Error error = readInput(value))
      return error;
  if (!tokens)
    return makeError(where + ": the program has no input; expected (1, tokens, …)");
  return checkFixedLength();
}

/// A number of tokens that is fixed must not be met by chance: it is how their axis is known.
Error ProgramReader::checkFixedLength() const {
  auto fixed = dyn_cast<mlir::IntegerAttr>(tokens);
  if (!fixed)
    return Error::success();
  for (const auto &[name, tensor] : stored) {
    auto type = cast<graph::SymbolicType>(graph::StoredOp(tensor).getType());
    for (unsigned i = 0; i < type.getRank(); ++i)
      if (int64_t size = type.getNumber(i).value_or(0);
          fixed.getInt() < 5 || (size && size % fixed.getInt() == 0))
        return makeError(where + ": the program is for " + Twine(fixed.getInt()) +
                         " tokens alone, which does not tell their axis from one of the " +
                         Twine(size) + " entries of " + quoted(name) +
                         "; export it with a length that divides no size, such as 13");
  }
  return Error::success();
}

/// The path of the innermost module: entries "key,path,class" separated by semicolons.
static StringRef innermostModule(JsonView metadata) {
  StringRef stack = metadata["nn_module_stack"].text().value_or("");
  StringRef last = stack.rsplit(';').second;
  if (last.empty())
    last = stack;
  auto [key, rest] = last.split(',');
  StringRef path = rest.split(',').first;
  return path.starts_with("_empty_nn_module_stack") ? "" : path;
}

/// The line of the innermost call, and behind it those of the calls around it, as far as they are
/// marked: torch alone writes every forward that leads to an op.
mlir::Location ProgramReader::calls(ArrayRef<SourceLine> innermostFirst) {
  const SourceLine &line = innermostFirst.front();
  lines.try_emplace({line.file.str(), line.line}, line.text.str());
  mlir::Location at = mlir::FileLineColRange::get(builder.getStringAttr(line.file), line.line,
                                                  line.column, line.column + line.width);
  innermostFirst = innermostFirst.drop_front();
  if (innermostFirst.empty() || !innermostFirst.front().width)
    return at;
  return mlir::CallSiteLoc::get(at, calls(innermostFirst));
}

/// A value's name around its module's path around its lines.
mlir::Location ProgramReader::locationOf(StringRef name, JsonView metadata) {
  mlir::StringAttr as = builder.getStringAttr(name);
  SmallVector<SourceLine> own = ownLines(metadata["stack_trace"].text().value_or(""));
  if (own.empty())
    return mlir::NameLoc::get(as);
  own.truncate(std::min(own.size(), mostCalls));
  mlir::Location at = calls(own);
  if (StringRef path = innermostModule(metadata); !path.empty())
    at = mlir::NameLoc::get(builder.getStringAttr(path), at);
  return mlir::NameLoc::get(as, at);
}

Error ProgramReader::readNode(JsonView node) {
  std::optional<StringRef> target = node["target"].text();
  JsonView inputs = node["inputs"], outputs = node["outputs"];
  if (!target || !inputs.isArray() || !outputs.isArray())
    return makeError(where + ": a node has no target, no inputs or no outputs");
  if (target->starts_with("torch.ops.higher_order.")) {
    SmallVector<SourceLine> own = ownLines(node["metadata"]["stack_trace"].text().value_or(""));
    bool isWritten = !own.empty() && !own.front().file.starts_with("<");
    std::string place =
        isWritten ? " (" + own.front().file.str() + ":" + std::to_string(own.front().line) + ")"
                  : "";
    return makeError(where + ": '" + target->drop_front(strlen("torch.ops.")) + "'" + place +
                     " runs other programs by what it reads, as branches and loops do; expected "
                     "calls of ops alone: write it without that, or export what it runs");
  }
  SmallVector<StringRef> names;
  auto add = [&](JsonView tensor) { names.push_back(tensor["name"].text().value_or("")); };
  for (JsonView output : outputs) {
    if (!output.isObject())
      return makeError(where + ": a node has an output that is no object");
    if (JsonView tensor = output["as_tensor"])
      add(tensor);
    for_each(output["as_tensors"], add);
  }
  if (names.empty())
    return Error::success(); // a size, which is in the types, or a check
  auto arguments = values.arguments(inputs);
  if (!arguments)
    return arguments.takeError();
  SmallVector<mlir::Type> types;
  for (StringRef name : names) {
    auto type = values.type(name);
    if (!type)
      return type.takeError();
    types.push_back(*type);
  }
  JsonView metadata = node["metadata"];
  bool visible = note.visible.contains(names.front());
  auto call = graph::CallOp::create(
      builder, locationOf(names.front(), metadata), types, nameOfOp(*target), arguments->operands,
      builder.getDictionaryAttr(arguments->named), innermostModule(metadata), visible);
  for (auto [name, result] : llvm::zip(names, call.getResults()))
    if (Error error = values.define(name, result))
      return error;
  return Error::success();
}

Error ProgramReader::readOutputs() {
  auto outputs = arrayIn(signature, "output_specs", where);
  if (!outputs)
    return outputs.takeError();
  SmallVector<mlir::Value> results;
  for (JsonView value : *outputs) {
    Expected<JsonView> spec = specOf(value);
    if (!spec)
      return spec.takeError();
    if (spec->key() != "user_output")
      return makeError(where + ": the program has a result of kind " + quoted(spec->key()) +
                       ", which it keeps between calls; export the model without a cache");
    std::optional<StringRef> name = (*spec)["arg"]["as_tensor"]["name"].text();
    if (!name)
      continue;
    auto result = values.tensor(*name);
    if (!result)
      return result.takeError();
    results.push_back(*result);
  }
  if (results.empty())
    return makeError(where + ": the program returns no tensor");
  graph::ReturnOp::create(builder, builder.getUnknownLoc(), results);
  return Error::success();
}

/// The parts that the note has of parameters of this program, with their shapes.
Error ProgramReader::takeParts(Program &program) const {
  for (StoredPart part : note.parts) {
    graph::StoredOp op = stored.lookup(part.name);
    if (!op)
      continue;
    auto type = cast<graph::SymbolicType>(op.getType());
    uint64_t count = 1, wanted = 1;
    for (int64_t size : part.dims)
      count = SaturatingMultiply<uint64_t>(count, size);
    for (unsigned i = 0; i < type.getRank(); ++i) {
      part.shape.push_back(type.getNumber(i).value_or(0));
      wanted = SaturatingMultiply<uint64_t>(wanted, part.shape.back());
    }
    if (count != wanted)
      return makeError(where + ": parameter " + quoted(part.name) + " is said to be a part of " +
                       Twine(count) + " entries; its type says " + Twine(wanted));
    program.parts.push_back(std::move(part));
  }
  return Error::success();
}

Expected<Program> ProgramReader::read() {
  Program program;
  program.module =
      mlir::ModuleOp::create(mlir::FileLineColLoc::get(builder.getContext(), where, 1, 1));
  auto op = graph::ProgramOp::create(builder, program.module->getLoc(), "model",
                                     builder.getI64IntegerAttr(0));
  program.module->push_back(op);
  builder.setInsertionPointToEnd(&op.getBody().emplaceBlock());
  if (Error error = readInputs())
    return std::move(error);
  if (Error error = takeParts(program))
    return std::move(error);
  op.setTokensAttr(tokens);
  auto nodes = arrayIn(graph, "nodes", where);
  if (!nodes)
    return nodes.takeError();
  for (JsonView node : *nodes)
    if (Error error = readNode(node))
      return std::move(error);
  if (Error error = readOutputs())
    return std::move(error);
  recompose(op);
  if (failed(mlir::verify(*program.module)))
    return makeError(where + ": the program does not verify; see the messages above");
  program.lines = std::move(lines);
  return program;
}

Expected<Program> ctxc::pt2::readProgram(const Archive &archive, const Payloads &payloads,
                                         mlir::MLIRContext &context) {
  Expected<JsonTree> file = readJson(archive, "models/model.json");
  if (!file)
    return file.takeError();
  std::string where = (archive.name() + ": models/model.json").str();
  if (Error error = checkVersion(file->root(), where))
    return std::move(error);
  Expected<Note> note = readNote(archive);
  if (!note)
    return note.takeError();
  auto module = objectIn(file->root(), "graph_module", where);
  if (!module)
    return module.takeError();
  auto graph = objectIn(*module, "graph", where);
  if (!graph)
    return graph.takeError();
  auto signature = objectIn(*module, "signature", where);
  if (!signature)
    return signature.takeError();
  Expected<Values> values = Values::read(*graph, &context, where);
  if (!values)
    return values.takeError();
  Expected<Program> program =
      ProgramReader(*graph, *signature, *note, payloads, std::move(*values), where, &context)
          .read();
  if (program)
    program->taken = note->taken;
  return program;
}
