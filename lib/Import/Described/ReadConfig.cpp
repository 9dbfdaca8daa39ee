// What a description reads of a config: ropes, sizes, lists, and what must be as it is.
#include "../HuggingFace/Family.h"
#include "Expression.h"
#include "Instance.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;
using namespace ctxc::described;

namespace {

constexpr int64_t largestSize = 1 << 24, mostLayers = 10000;
constexpr double largestNumber = 1e30;

std::string text(const json::Value &value) {
  std::string result;
  raw_string_ostream(result) << value;
  return result;
}

/// An entry of a list, as descriptions write it.
std::string wordOf(const json::Value &entry) {
  if (std::optional<StringRef> word = entry.getAsString())
    return word->str();
  if (std::optional<bool> flag = entry.getAsBoolean())
    return *flag ? "True" : "False";
  return text(entry);
}

} // namespace

std::vector<StringRef> described::keysOf(const json::Object &object) {
  std::vector<StringRef> keys;
  for (const auto &entry : object)
    keys.push_back(entry.first);
  llvm::sort(keys);
  return keys;
}

/// The rope at `path`, from both generations of config.
void Instance::readRope(StringRef path, const json::Object &rule) {
  RopeForm form;
  form.mayBeLong = rule.getBoolean("long").value_or(false);
  form.mayScale = rule.getBoolean("scales").value_or(false);
  form.isProportional = rule.getBoolean("proportional").value_or(false);
  auto [first, inner] = path.split('.');
  bool older = inner.empty() && config.has("rope_scaling");
  StringRef key = older ? "rope_scaling" : first;
  ConfigReader *parameters = config.object(key);
  if (!inner.empty())
    parameters = parameters ? parameters->object(inner) : nullptr;
  if (!parameters && rule.getBoolean("required").value_or(false))
    config.problem("has no key '" + first + "', which a '" + type + "' needs");
  ConfigReader *at = parameters ? parameters : &config;
  // What neither the config nor the class says.
  auto missing = [&](StringRef name) {
    config.problem("has no key '" + name + "' in '" + key + "', which a '" + type + "' needs");
    return 1.0;
  };
  double theta = rule.getNumber("theta").value_or(1);
  if (inner.empty())
    theta = config.number("rope_theta", theta, 1e-3, largestNumber);
  if (!rule.getNumber("theta") && !at->has("rope_theta") && !config.has("rope_theta"))
    missing("rope_theta");
  for (const json::Value &name : array(rule, "numbers")) {
    StringRef number = *name.getAsString();
    bool isThere = parameters && at->has(number);
    sizes[(path + "." + number).str()] =
        isThere ? at->number(number, 1, 0, largestNumber) : missing(number);
  }
  Rope rope = readRopeParameters(config, parameters, theta, form);
  if (rope.amplitude != 1 && !rule.getBoolean("grows").value_or(false))
    config.problem(key, "scales queries and keys, which the description of '" + Twine(type) +
                            "' does not hold for; expected no factor of attention" + wayOut);
  double partial =
      config.number("partial_rotary_factor", rule.getNumber("partial").value_or(1), 0, 1);
  if (parameters && parameters->has("partial_rotary_factor"))
    partial = parameters->number("partial_rotary_factor", partial, 0, 1);
  else if (!rule.getNumber("partial") && !config.has("partial_rotary_factor"))
    missing("partial_rotary_factor");
  const bool isWhole = rule.getBoolean("whole").value_or(false);
  if (isWhole && partial != 1)
    config.problem(key, "rotates a part of a head, which the description of '" + Twine(type) +
                            "' does not hold for; expected a partial_rotary_factor of 1" + wayOut);
  if (!isWhole && sizes.try_emplace("partial_rotary_factor", partial).first->second != partial)
    config.problem(key, "rotates different parts of heads, which the description of '" +
                            Twine(type) + "' does not hold for; expected one " +
                            "partial_rotary_factor" + wayOut);
  if (rule.getBoolean("scores").value_or(false))
    rope.scores = scoreGrowth(parameters);
  ropes[path] = rope;
}

void Instance::readRopes() {
  const json::Object &described = object(description, "ropes");
  if (!described.empty())
    checkOneRopeForm(config);
  for (StringRef path : keysOf(described))
    readRope(path, object(described, path));
}

double Instance::readSize(StringRef key, const json::Object &rule) {
  std::optional<StringRef> absent = rule.getString(config.isNull(key) ? "null" : "absent");
  if (!config.has(key)) {
    config.unread({{key}});
    if (absent)
      return derived(key, *absent, rule);
    if (rule.getBoolean("optional").value_or(false))
      return NAN; // the program without it is another one
    if (config.isNull(key))
      config.problem(key, "is not what the description of '" + Twine(type) +
                              "' holds for; expected a number" + wayOut);
    else
      config.problem("has no key '" + key + "', which a '" + Twine(type) + "' needs");
    failed = true;
    return 1;
  }
  if (rule.getBoolean("integer").value_or(true))
    return double(
        config.integer(key, std::nullopt, rule.getInteger("least").value_or(1),
                       key == description.getString("layer_count") ? mostLayers : largestSize));
  bool isPositive = rule.getBoolean("positive").value_or(false);
  return config.number(key, 1, isPositive ? 0 : -largestNumber,
                       key.contains("eps") ? 1 : largestNumber);
}

/// What an absent key says.
double Instance::derived(StringRef key, StringRef expression, const json::Object &rule) {
  double found = value(expression);
  if (!rule.getBoolean("integer").value_or(true))
    return found;
  int64_t least = rule.getInteger("least").value_or(1);
  if (!(found == std::floor(found)))
    notWhole(expression, found);
  else if (found < double(least))
    fail("has no key '" + key + "', which says " + Twine(expression) + "; the description of '" +
         type + "' holds for " + Twine(least) + " and more" + wayOut);
  return found;
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

/// The number of layers, or the length of a list that has an entry for each.
int64_t Instance::layerCount() {
  StringRef key = description.getString("layer_count").value_or("");
  const json::Object *list = object(description, "lists").getObject(key);
  double count = list ? double(entriesOf(key, *list).size()) : size(key);
  return count >= 1 && count <= mostLayers ? int64_t(count) : 0;
}

/// Whether `condition` holds for a layer: arithmetic, or "i in KEY", whose key names layers.
bool Instance::holds(StringRef condition, int64_t layer) {
  if (condition.consume_front("i in "))
    return llvm::is_contained(indices[condition], layer);
  auto valueOf = [&](StringRef name) { return name == "i" ? double(layer) : size(name); };
  return condition.empty() || described::evaluate(condition, valueOf) == 1;
}

/// The lists of indices by which the rule of an absent list names layers.
void Instance::readIndices(const json::Array &rule) {
  for (const json::Value &pair : rule) {
    StringRef key = *(*pair.getAsArray())[0].getAsString();
    if (!key.consume_front("i in "))
      continue;
    indices[key] = config.integers(key, 0, mostLayers);
    const json::Object &described = object(object(description, "indices"), key);
    if (config.has(key))
      continue;
    if (!described.get("absent"))
      config.problem("has no key '" + key + "', which a '" + type + "' needs");
    for (const json::Value &layer : array(described, "absent"))
      indices[key].push_back(*layer.getAsInteger());
  }
}

std::vector<std::string> Instance::listByRule(const json::Array &rule, int64_t layers) {
  std::vector<std::string> result;
  readIndices(rule);
  for (int64_t i = 0; i < layers; ++i)
    for (const json::Value &pair : rule) {
      const json::Array &entry = *pair.getAsArray();
      if (holds(*entry[0].getAsString(), i)) {
        result.push_back(entry[1].getAsString()->str());
        break;
      }
    }
  return result;
}

/// The entries of the list `key`, or those that the letters of an older key stand for; none where
/// the config has neither.
std::vector<std::string> Instance::entriesOf(StringRef key, const json::Object &rule) {
  std::vector<std::string> given;
  auto add = [&](StringRef names, StringRef word, StringRef other) {
    given.push_back(object(rule, names).getString(word).value_or(other).str());
  };
  StringRef pattern = rule.getString("pattern").value_or("");
  const json::Value *value = config.value(key);
  const json::Value *letters = pattern.empty() ? nullptr : config.value(pattern);
  if (!value && letters)
    for (char letter : letters->getAsString().value_or(""))
      add("letters", StringRef(&letter, 1), "none");
  else if (const json::Array *entries = value ? value->getAsArray() : nullptr)
    for (const json::Value &entry : *entries)
      add("names", wordOf(entry), wordOf(entry)); // older ones
  return given;
}

/// The kind that the list `key` says of each layer. What is computed is no key of a config.
std::vector<std::string> Instance::readList(StringRef key, const json::Object &rule,
                                            int64_t layers) {
  const json::Array *absent = rule.getArray("absent");
  StringRef pattern = rule.getString("pattern").value_or("");
  StringRef said = pattern.empty() || config.has(key) || !config.has(pattern) ? key : pattern;
  bool isGiven = !rule.getBoolean("computed").value_or(false) && config.has(said);
  if (!isGiven && absent)
    return listByRule(*absent, layers);
  if (!isGiven) {
    config.problem("has no key '" + key + "', which a '" + type + "' needs");
    return {};
  }
  std::vector<std::string> given = entriesOf(key, rule);
  if (!given.empty() && int64_t(given.size()) == layers)
    return given;
  std::string count = layers ? std::to_string(layers) : "1 to " + std::to_string(mostLayers);
  config.problem(said, "is not understood; expected " +
                           StringRef(said == key ? "an array of " : "a word of ") + count +
                           (said == key ? " entries" : " letters") + ", one for each layer");
  return {};
}

void Instance::readLists() {
  int64_t layers = layerCount();
  const json::Object &described = object(description, "lists");
  for (StringRef key : keysOf(described)) {
    std::vector<std::string> kinds = readList(key, object(described, key), layers);
    failed |= int64_t(kinds.size()) != layers;
    lists[key] = std::move(kinds);
  }
}

/// Reports lists of layers whose entries are not all one number: that of a key, or a rope's base.
void Instance::checkUniform() {
  const json::Object &described = object(description, "uniform");
  for (StringRef key : keysOf(described)) {
    StringRef number = described.getString(key).value_or("");
    auto rope = ropes.find(number);
    double expected = rope != ropes.end() ? rope->second.base : size(number);
    const json::Value *given = config.value(key);
    const json::Array *entries = given ? given->getAsArray() : nullptr;
    auto isExpected = [&](const json::Value &entry) { return entry.getAsNumber() == expected; };
    if (given &&
        (!entries || int64_t(entries->size()) != layerCount() || !all_of(*entries, isExpected)))
      config.problem(key, "is not what the description of '" + Twine(type) +
                              "' holds for; expected " + text(expected) + " for each layer, as '" +
                              number + "' says" + wayOut);
  }
}

/// Whether a value is the expected one. Entries of an object may be left out.
static bool isSame(const json::Value &given, const json::Value &expected) {
  const json::Object *some = given.getAsObject(), *all = expected.getAsObject();
  if (!some || !all)
    return given == expected;
  return all_of(*some, [&](const auto &entry) {
    const json::Value *same = all->get(entry.first);
    return same && entry.second == *same;
  });
}

/// Reports the keys that do not have the one value for which the description holds.
void Instance::checkFixed(ConfigReader &reader, const json::Object &described) {
  for (StringRef key : keysOf(described)) {
    const json::Object &entry = object(described, key);
    const json::Value *expected = entry.get("value"), *absent = entry.get("absent");
    if (!expected || !absent)
      continue;
    const json::Value *given = reader.raw(key);
    if ((given ? isSame(*given, *expected) : *absent == *expected) ||
        llvm::is_contained(array(entry, "same"), given ? *given : *absent))
      continue;
    if (given)
      reader.problem(key, "is not what the description of '" + Twine(type) +
                              "' holds for; expected " + text(*expected) + wayOut);
    else
      reader.problem("has no key '" + key + "', which says " + text(*absent) +
                     "; the description of '" + type + "' holds for " + text(*expected) + wayOut);
  }
}

/// What the config says of a key that a condition names, or what its absence says.
json::Value Instance::choice(StringRef key) {
  const json::Value *given = config.raw(key);
  const json::Object *rule = object(description, "choices").getObject(key);
  const json::Value *absent = rule ? rule->get("absent") : nullptr;
  // A null is off, as it is for the code that asks.
  bool isOff = given && given->kind() == json::Value::Null && absent && *absent == false;
  return given && !isOff ? *given : absent ? *absent : json::Value(nullptr);
}

/// Reports what `around`, whose part this config is, says otherwise.
void Instance::checkAround(ConfigReader &around) {
  checkFixed(around, object(description, "around"));
  for (const json::Value &shared : array(description, "shared")) {
    StringRef key = *shared.getAsString();
    if (const json::Value *said = around.raw(key); said && *said != choice(key))
      around.problem(key, "differs from " + text(choice(key)) + ", which '" +
                              description.getString("within").value_or("") + "' says" + wayOut);
  }
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
    bool isAnyNumber = expected == "number" && given.kind() == json::Value::Number;
    if (given != expected && !isAnyNumber)
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
    std::string value = list == lists.end()                     ? text(choice(key))
                        : layer && *layer < list->second.size() ? quoted(list->second[*layer])
                                                                : "none";
    found.push_back("'" + key.str() + "' = " + value);
  }
  config.problem("the description of '" + Twine(type) + "' has no " + what + " for " +
                 join(found, ", ") + "; expected one that it has" + wayOut);
  failed = true;
  return nullptr;
}

/// Reports sizes between which the description knows a relation, and that do not have it.
void Instance::checkEqual() {
  constexpr StringLiteral queries = "num_attention_heads", keys = "num_key_value_heads";
  const double heads = size(queries), groups = size(keys);
  if (!failed && heads >= 1 && groups >= 1 && std::fmod(heads, groups) != 0)
    config.problem(queries, "is not a multiple of " + keys + " = " + Twine(int64_t(groups)));
  for (const json::Value &pair : array(description, "equal")) {
    StringRef a = *(*pair.getAsArray())[0].getAsString(),
              b = *(*pair.getAsArray())[1].getAsString();
    double expected = value(b);
    if (failed || value(a) == expected)
      continue;
    std::string number = std::to_string(expected);
    config.problem(a, "is not what the description of '" + Twine(type) + "' holds for; expected " +
                          b + " = " + StringRef(number).split('.').first + wayOut);
  }
}

void Instance::read() {
  for (const auto &[key, other] : object(description, "preferred"))
    config.prefer(key, *other.getAsString());
  readRopes();
  for (StringRef key : keysOf(object(description, "sizes")))
    size(key);
  readLists();
  checkUniform();
  const json::Object &activations = object(description, "activations");
  for (StringRef key : keysOf(activations))
    words[key] =
        xf::stringifyActivationKind(readActivation(config, key, *activations.getString(key))).str();
  checkFixed(config, object(description, "fixed"));
  checkEqual();
  for (const json::Value &key : array(description, "unread"))
    config.unread({{*key.getAsString()}});
  for (StringRef key : keysOf(object(description, "indices")))
    config.unread({{key}}); // where the list is given
  for (StringRef key : keysOf(object(description, "choices")))
    if (object(object(description, "choices"), key).getBoolean("absent"))
      config.flag(key, false); // its value is read where it decides
    else
      config.raw(key);
}
