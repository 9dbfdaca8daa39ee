#include "ReadProgram.h"
#include "JsonFields.h"
#include "ReadArguments.h"
#include "Symbols.h"
#include "ctxc/Checkpoint/StrictJson.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::pt2;

/// The schema that this reads; another major version may mean something else by the same words.
static constexpr int64_t schemaMajor = 8;

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

/// An entry of `archive` as a JSON object.
static Expected<JsonTree> readJson(const Archive &archive, StringRef entry) {
  Expected<std::string> text = archive.read(entry);
  if (!text)
    return text.takeError();
  return readObject(std::move(*text), (archive.name() + ": " + entry).str());
}

namespace {

class ProgramReader {
public:
  ProgramReader(JsonView graph, JsonView signature, const Payloads &payloads, Values values,
                std::string where, mlir::MLIRContext *context)
      : graph(graph), signature(signature), payloads(payloads), values(std::move(values)),
        where(std::move(where)), builder(this->where, payloads, context) {}

  Expected<Program> read();

private:
  Expected<JsonView> specOf(JsonView value) const;
  Error readInputs();
  bool isRead(StringRef tensor) const;
  Error readInput(JsonView value);
  Error readStored(StringRef tensor, StringRef name, bool fixed, bool loaded);
  Error readNode(JsonView node);
  Expected<SmallVector<mlir::Value>> readOutputs();

  JsonView graph, signature;
  const Payloads &payloads;
  Values values;
  std::string where;
  GraphBuilder builder;
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

Error ProgramReader::readStored(StringRef tensor, StringRef name, bool fixed, bool loaded) {
  auto type = values.type(tensor);
  if (!type)
    return type.takeError();
  StringRef one = payloads.oneOf(name);
  graph::StoredOp &known = stored[one];
  if (!known) {
    auto made = builder.stored(one, *type, fixed, loaded);
    if (!made)
      return made.takeError();
    known = *made;
  } else if (known.getType() != *type || known.getFixed() != fixed) {
    return makeError(where + ": " + quoted(name) + " and " + quoted(one) +
                     " share memory, and are not one tensor; expected the same shape and kind");
  }
  return values.define(tensor, known);
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
    StringRef role = isa<mlir::FloatType>(type->getElementType()) ? "activation"
                     : tensor->contains("position")               ? "position"
                                                                  : "token";
    // torch.export gives positions that nothing reads a number of their own.
    if (role == "position" && !isRead(*tensor))
      return Error::success();
    auto made = builder.input(*tensor, *type, role);
    return made ? values.define(*tensor, *made) : made.takeError();
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
  JsonView metadata = node["metadata"];
  GraphBuilder::Call call;
  call.op = *target;
  call.operands = std::move(arguments->operands);
  call.arguments = std::move(arguments->named);
  call.name = names.front();
  call.trace = metadata["stack_trace"].text().value_or("");
  call.module = innermostModule(metadata);
  for (StringRef name : names) {
    auto type = values.type(name);
    if (!type)
      return type.takeError();
    call.types.push_back(*type);
  }
  for (auto [name, result] : llvm::zip(names, builder.call(call)))
    if (Error error = values.define(name, result))
      return error;
  return Error::success();
}

Expected<SmallVector<mlir::Value>> ProgramReader::readOutputs() {
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
  return results;
}

Expected<Program> ProgramReader::read() {
  if (Error error = readInputs())
    return std::move(error);
  auto nodes = arrayIn(graph, "nodes", where);
  if (!nodes)
    return nodes.takeError();
  for (JsonView node : *nodes)
    if (Error error = readNode(node))
      return std::move(error);
  auto results = readOutputs();
  return results ? builder.finish(*results) : results.takeError();
}

Expected<Program> ctxc::pt2::readProgram(const Archive &archive, const Payloads &payloads,
                                         mlir::MLIRContext &context) {
  if (archive.has("extra/ctxc.json"))
    return makeError(archive.name() + ": was written by ctxc 0.1 or an early 0.2, which wrote "
                                      ".pt2 files; export it again, as model.ctxc");
  Expected<JsonTree> file = readJson(archive, "models/model.json");
  if (!file)
    return file.takeError();
  std::string where = (archive.name() + ": models/model.json").str();
  if (Error error = checkVersion(file->root(), where))
    return std::move(error);
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
      ProgramReader(*graph, *signature, payloads, std::move(*values), where, &context).read();
  if (program) {
    program->source.why = "it was not written by ctxc";
    program->source.file = archive.identity();
  }
  return program;
}
