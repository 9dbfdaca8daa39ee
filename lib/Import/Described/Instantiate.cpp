// The program of a description for one config: reads the keys that the description names, refuses
// what it does not hold for, and writes the text with their numbers.
#include "../HuggingFace/Family.h"
#include "../HuggingFace/Rope.h"
#include "Described.h"
#include "Expression.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

constexpr StringLiteral wayOut =
    ", or a program by python -m ctxc.export (docs/check-your-architecture.md)";
/// No product of three is past what a double holds exactly.
constexpr int64_t largestSize = 1 << 24, mostLayers = 10000;
constexpr double largestNumber = 1e30;

std::string text(const json::Value &value) {
  std::string result;
  raw_string_ostream(result) << value;
  return result;
}

class Instance {
public:
  Instance(const json::Object &description, ConfigReader &config, Problems &problems)
      : description(description), config(config), problems(problems),
        type(description.getString("model_type").value_or("").str()) {}

  std::string program();

private:
  const json::Object &object(const json::Object &in, StringRef key) const {
    static const json::Object empty;
    const json::Object *found = in.getObject(key);
    return found ? *found : empty;
  }
  const json::Array &array(const json::Object &in, StringRef key) const {
    static const json::Array empty;
    const json::Array *found = in.getArray(key);
    return found ? *found : empty;
  }

  void readRopes();
  double size(StringRef key);
  double readSize(StringRef key, const json::Object &rule);
  void readLists(int64_t layers);
  std::vector<std::string> listByRule(StringRef key, const json::Array &rule, int64_t layers);
  void checkFixed();
  bool holds(const json::Object &when, std::optional<size_t> layer);
  const json::Object *choose(const json::Array &among, std::optional<size_t> layer,
                             const Twine &what);
  json::Value choice(StringRef key);

  using Names = ArrayRef<std::pair<std::string, std::string>>;
  void writeLines(const json::Array &lines, Names names, StringRef indent);
  void writeLine(StringRef line, Names names, std::optional<size_t> layer);
  void write(StringRef form, std::optional<size_t> layer = std::nullopt);
  void writeNumber(StringRef expression, bool isInteger);
  void writeRope(StringRef arguments);
  double value(StringRef expression);
  void notWhole(StringRef expression, double value);

  const json::Object &description;
  ConfigReader &config;
  Problems &problems;
  std::string type;
  StringMap<std::optional<double>> sizes; ///< without a value: being read
  StringMap<std::vector<std::string>> lists;
  StringMap<Rope> ropes;
  StringMap<std::string> words;
  bool failed = false;
  std::string out;
};

/// The keys of `object`, sorted, so that messages come in the same order in every run.
std::vector<StringRef> keysOf(const json::Object &object) {
  std::vector<StringRef> keys;
  for (const auto &entry : object)
    keys.push_back(entry.first);
  llvm::sort(keys);
  return keys;
}

} // namespace

/// The path's rope, from both generations of config.
void Instance::readRopes() {
  if (!description.getObject("ropes"))
    return;
  checkOneRopeForm(config);
  RopeForm form;
  form.mayBeLong = false;
  const json::Object &described = object(description, "ropes");
  for (StringRef path : keysOf(described)) {
    const json::Object &entry = object(described, path);
    form.mayScale = entry.getBoolean("scales").value_or(false);
    double theta = entry.getNumber("theta").value_or(1e4);
    auto [first, inner] = path.split('.');
    bool older = inner.empty() && config.has("rope_scaling");
    ConfigReader *parameters = config.object(older ? "rope_scaling" : first);
    if (!inner.empty())
      parameters = parameters ? parameters->object(inner) : nullptr;
    else
      theta = config.number("rope_theta", theta, 1e-3, largestNumber);
    Rope rope = readRopeParameters(config, parameters, theta, form);
    if (rope.amplitude != 1)
      config.problem(older ? "rope_scaling" : first,
                     "scales queries and keys, which the description of '" + Twine(type) +
                         "' does not hold for; expected no factor of attention" + wayOut);
    double partial = entry.getNumber("partial").value_or(1);
    if (config.has("partial_rotary_factor"))
      partial = config.number("partial_rotary_factor", partial, 0, 1);
    if (parameters && parameters->has("partial_rotary_factor"))
      partial = parameters->number("partial_rotary_factor", partial, 0, 1);
    if (entry.getBoolean("whole").value_or(false) && partial != 1)
      config.problem(first, "rotates a part of a head, which the description of '" + Twine(type) +
                                "' does not hold for; expected a partial_rotary_factor of 1" +
                                wayOut);
    sizes["partial_rotary_factor"] = partial;
    ropes[path] = rope;
  }
}

double Instance::readSize(StringRef key, const json::Object &rule) {
  std::optional<StringRef> absent = rule.getString(config.isNull(key) ? "null" : "absent");
  if (!config.has(key)) {
    config.unread({{key}});
    if (absent)
      return value(*absent);
    if (config.isNull(key))
      config.problem(key, "is not what the description of '" + Twine(type) +
                              "' holds for; expected a number" + wayOut);
    else
      config.problem("has no key '" + key + "', which a '" + Twine(type) + "' needs");
    failed = true;
    return 1;
  }
  if (rule.getBoolean("integer").value_or(true))
    return double(config.integer(key, std::nullopt, rule.getInteger("least").value_or(1),
                                 key == description.getString("layer_count") ? mostLayers
                                                                             : largestSize));
  return config.number(key, 1, rule.getNumber("above").value_or(-largestNumber), largestNumber);
}

double Instance::size(StringRef key) {
  auto [known, isNew] = sizes.try_emplace(key);
  if (!isNew)
    return known->second.value_or(NAN);
  const json::Object *rule = object(description, "sizes").getObject(key);
  double found = rule ? readSize(key, *rule) : NAN;
  sizes[key] = found;
  return found;
}

double Instance::value(StringRef expression) {
  return described::evaluate(expression, [&](StringRef key) { return size(key); });
}

std::vector<std::string> Instance::listByRule(StringRef key, const json::Array &rule,
                                              int64_t layers) {
  std::vector<std::string> result;
  for (int64_t i = 0; i < layers; ++i)
    for (const json::Value &pair : rule) {
      const json::Array &entry = *pair.getAsArray();
      StringRef condition = *entry[0].getAsString();
      auto valueOf = [&](StringRef name) { return name == "i" ? double(i) : size(name); };
      if (condition.empty() || described::evaluate(condition, valueOf) == 1) {
        result.push_back(entry[1].getAsString()->str());
        break;
      }
    }
  return result;
}

void Instance::readLists(int64_t layers) {
  const json::Object &described = object(description, "lists");
  for (StringRef key : keysOf(described)) {
    std::vector<std::string> given = config.texts(key);
    const json::Array *absent = object(described, key).getArray("absent");
    if (!config.has(key) && !absent) {
      config.problem("has no key '" + key + "', which a '" + type + "' needs");
      failed = true;
    }
    if (!config.has(key) && absent)
      given = listByRule(key, *absent, layers);
    if (int64_t(given.size()) != layers) {
      config.problem(key, "has " + Twine(given.size()) + " entries; expected " + Twine(layers) +
                              ", one for each layer");
      failed = true;
    }
    lists[key] = std::move(given);
  }
}

/// Reports the keys that do not have the one value for which the description holds.
void Instance::checkFixed() {
  const json::Object &described = object(description, "fixed");
  for (StringRef key : keysOf(described)) {
    const json::Object &entry = object(described, key);
    const json::Value *expected = entry.get("value"), *absent = entry.get("absent");
    if (!expected || !absent)
      continue;
    const json::Value *given = config.raw(key);
    if (given ? *given == *expected : *absent == *expected)
      continue;
    if (given)
      config.problem(key, "is not what the description of '" + Twine(type) +
                              "' holds for; expected " + text(*expected) + wayOut);
    else
      config.problem("has no key '" + key + "', which says " + text(*absent) +
                     "; the description of '" + type + "' holds for " + text(*expected) + wayOut);
  }
}

/// What the config says of a key that a condition names, or what its absence says.
json::Value Instance::choice(StringRef key) {
  const json::Value *given = config.raw(key);
  const json::Object *rule = object(description, "choices").getObject(key);
  const json::Value *absent = rule ? rule->get("absent") : nullptr;
  return given ? *given : absent ? *absent : json::Value(nullptr);
}

bool Instance::holds(const json::Object &when, std::optional<size_t> layer) {
  for (const auto &[key, expected] : when) {
    auto list = lists.find(key);
    if (list != lists.end()) {
      if (!layer || *layer >= list->second.size() ||
          expected.getAsString() != StringRef(list->second[*layer]))
        return false;
      continue;
    }
    json::Value given = choice(key);
    bool isAny = expected.getAsString() == StringRef("*");
    if (isAny ? given.kind() == json::Value::Null : given != expected)
      return false;
  }
  return true;
}

const json::Object *Instance::choose(const json::Array &among, std::optional<size_t> layer,
                                     const Twine &what) {
  for (const json::Value &one : among)
    if (holds(object(*one.getAsObject(), "when"), layer))
      return one.getAsObject();
  std::vector<std::string> found;
  for (StringRef key : keysOf(object(*among.front().getAsObject(), "when"))) {
    auto list = lists.find(key);
    std::string value = list == lists.end()                  ? text(choice(key))
                        : layer && *layer < list->second.size() ? quoted(list->second[*layer])
                                                             : "none";
    found.push_back("'" + key.str() + "' = " + value);
  }
  config.problem("the description of '" + Twine(type) + "' has no " + what + " for " +
                 join(found, ", ") + "; expected one that it has" + wayOut);
  failed = true;
  return nullptr;
}

void Instance::notWhole(StringRef expression, double found) {
  std::string shown;
  raw_string_ostream(shown) << format("%g", found);
  config.problem(expression + " is " + shown + "; expected a whole number of at least 0");
  failed = true;
}

void Instance::writeNumber(StringRef expression, bool isInteger) {
  double found = value(expression);
  if (!isInteger) {
    raw_string_ostream(out) << format("%.17e", found);
    if (!std::isfinite(found))
      notWhole(expression, found);
    return;
  }
  if (!(found >= 0 && found < 9e15) || found != std::floor(found)) {
    if (!failed)
      notWhole(expression, found);
    found = 1;
  }
  out += std::to_string(int64_t(found));
}

/// `arguments` are the path of the rope's parameters, and how many entries of a head it rotates.
void Instance::writeRope(StringRef arguments) {
  auto [path, dims] = arguments.split(", ");
  Rope rope = ropes[path];
  double entries = value(dims);
  if (!(entries >= 2 && entries <= 1 << 16) || std::fmod(entries, 2) != 0) {
    if (!failed)
      config.problem(dims + " gives " + Twine(int64_t(entries)) +
                     " entries of a head to rotate; expected an even number of at least 2");
    failed = true;
    entries = 2;
  }
  rope.entries = int64_t(entries);
  mlir::MLIRContext context;
  context.loadDialect<xf::XFDialect>();
  auto attribute = cast<xf::RopeAttr>(rope.frequencies(&context, rope.entries));
  out += "dense<[";
  raw_string_ostream os(out);
  llvm::interleaveComma(attribute.getFrequencies(), os,
                        [&](double x) { os << format("%.9e", x); });
  out += "]>";
}

void Instance::writeLine(StringRef line, Names names, std::optional<size_t> layer) {
  std::string named = line.str();
  for (const auto &[from, to] : names)
    for (size_t at = 0; (at = named.find(from, at)) != std::string::npos; at += to.size())
      named.replace(at, from.size(), to);
  write(named, layer);
  out += '\n';
}

void Instance::writeLines(const json::Array &lines, Names names, StringRef indent) {
  for (const json::Value &line : lines) {
    out += indent;
    writeLine(line.getAsString().value_or(""), names, std::nullopt);
  }
}

/// Writes `form`, in which "$(…)" is an integer or a rope, "$f(…)" a number, "$a(…)" an activation
/// and "$i" the layer.
void Instance::write(StringRef form, std::optional<size_t> layer) {
  while (true) {
    auto [before, behind] = form.split('$');
    out += before;
    if (behind.empty())
      return;
    if (behind.consume_front("i")) {
      out += std::to_string(layer.value_or(0));
      form = behind;
      continue;
    }
    char kind = behind.front();
    behind = behind.drop_front(kind == '(' ? 1 : 2);
    size_t end = 0;
    for (int depth = 1; end < behind.size(); ++end) {
      depth += behind[end] == '(' ? 1 : behind[end] == ')' ? -1 : 0;
      if (depth == 0)
        break;
    }
    StringRef inside = behind.take_front(end);
    form = behind.drop_front(end + 1);
    if (kind == 'a')
      out += words[inside];
    else if (inside.consume_front("rope(") && inside.consume_back(")"))
      writeRope(inside);
    else
      writeNumber(inside, kind == '(');
  }
}

/// The whole text: the blocks that layers have, and the model.
std::string Instance::program() {
  readRopes();
  for (StringRef key : keysOf(object(description, "sizes")))
    size(key);
  int64_t layers = int64_t(size(description.getString("layer_count").value_or("")));
  readLists(layers);
  const json::Object &activations = object(description, "activations");
  for (StringRef key : keysOf(activations))
    words[key] =
        xf::stringifyActivationKind(
            readActivation(config, key, activations.getString(key).value_or("")))
            .str();
  checkFixed();
  for (const json::Value &pair : array(description, "equal")) {
    StringRef a = *(*pair.getAsArray())[0].getAsString(), b = *(*pair.getAsArray())[1].getAsString();
    if (value(a) != value(b) && !failed)
      config.problem(a, "is not what the description of '" + Twine(type) + "' holds for; expected " +
                            b + " = " + Twine(int64_t(value(b))) + wayOut);
  }
  for (const json::Value &key : array(description, "unread"))
    config.unread({{*key.getAsString()}});
  if (failed || !problems.empty())
    return "";

  const json::Array &blocks = array(description, "blocks");
  std::string name = type, calls;
  llvm::replace(name, '-', '_');
  DenseMap<int64_t, std::string> names; // of blocks that are written
  std::string last = description.getString("entry").value_or("").str(), model;
  std::swap(out, model);
  for (int64_t i = 0; i < layers && !failed; ++i) {
    const json::Object *layer = choose(array(description, "layers"), i, "layer " + Twine(i));
    if (!layer)
      return "";
    int64_t block = layer->getInteger("block").value_or(0);
    auto [known, isNew] = names.try_emplace(block, name);
    if (isNew) {
      if (names.size() > 1)
        known->second += "_" + std::to_string(names.size());
      writeLines(*blocks[block].getAsArray(), {{"@BLOCK", "@" + known->second}}, "  ");
    }
    std::string result = "%layer_" + std::to_string(i);
    std::swap(out, model);
    writeLine(result + " = " + layer->getString("call").value_or("").str(),
              {{"@BLOCK", "@" + known->second}, {"%in", last}}, i);
    std::swap(out, model);
    last = result;
  }
  calls = std::move(model);
  out += "  xf.model @model {\n";
  const json::Object *before = choose(array(description, "before"), std::nullopt, "embedding");
  const json::Object *behind = choose(array(description, "behind"), std::nullopt, "head");
  if (!before || !behind)
    return "";
  writeLines(array(*before, "lines"), {}, "    ");
  out += calls;
  writeLines(array(*behind, "lines"), {{"%last", last}}, "    ");
  out += "  }\n";
  return failed ? "" : "module {\n" + out + "}\n";
}

std::string described::programOf(StringRef description, ConfigReader &config, Problems &problems) {
  Expected<json::Value> read = json::parse(description);
  if (!read || !read->getAsObject()) {
    consumeError(read.takeError());
    problems.add("a description is no JSON object");
    return "";
  }
  std::string program = Instance(*read->getAsObject(), config, problems).program();
  config.finish();
  return problems.empty() ? program : "";
}
