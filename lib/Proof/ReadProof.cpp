// Reads a proof.
#include "ProofFormat.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Proof/Proof.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace ctxc;
using namespace ctxc::proof;
using llvm::StringRef;
namespace json = llvm::json;

namespace {
/// Reads one object: every field must be read once, and none may be left.
class Reader {
public:
  Reader(const json::Value &value, std::string where, std::vector<std::string> &problems)
      : object(value.getAsObject()), where(std::move(where)), problems(problems) {
    if (!object)
      wrong("is no object");
  }
  ~Reader() {
    if (object)
      for (const auto &field : *object)
        if (!asked.contains(StringRef(field.first)))
          wrong("unknown field " + quoted(StringRef(field.first)));
  }

  void wrong(const llvm::Twine &what) { problems.push_back((where + ": " + what).str()); }
  const json::Value *get(StringRef key, bool required) {
    asked.insert(key);
    const json::Value *value = object ? object->get(key) : nullptr;
    if (object && !value && required)
      wrong("there is no field '" + key + "'");
    return value;
  }
  bool has(StringRef key) const { return object && object->get(key); }
  std::string text(StringRef key, bool required = true) {
    const json::Value *value = get(key, required);
    if (value && !value->getAsString())
      wrong("'" + key + "' is no text");
    return value && value->getAsString() ? value->getAsString()->str() : "";
  }
  /// A text among `choices`.
  std::string choice(StringRef key, std::initializer_list<StringRef> choices) {
    std::string found = text(key);
    if (object && object->get(key) && !llvm::is_contained(choices, StringRef(found)))
      wrong("'" + key + "': found " + quoted(found) + ", expected " + llvm::join(choices, " or "));
    return found;
  }
  int64_t integer(StringRef key) {
    const json::Value *value = get(key, true);
    std::optional<int64_t> number = value ? value->getAsInteger() : std::nullopt;
    if (value && (!number || *number < 0))
      wrong("'" + key + "' is no integer from 0 on");
    return number && *number >= 0 ? *number : 0;
  }
  std::optional<double> number(StringRef key, bool required) {
    const json::Value *value = get(key, required);
    std::optional<double> number = value ? value->getAsNumber() : std::nullopt;
    if (value && !(number && std::isfinite(*number))) {
      wrong("'" + key + "' is no finite number");
      number.reset();
    }
    return number;
  }
  bool boolean(StringRef key) {
    const json::Value *value = get(key, true);
    if (value && !value->getAsBoolean())
      wrong("'" + key + "' is neither true nor false");
    return value && value->getAsBoolean().value_or(false);
  }
  /// Calls `each` with every element and where it is.
  void array(StringRef key, llvm::function_ref<void(const json::Value &, std::string)> each) {
    const json::Value *value = get(key, true);
    const json::Array *list = value ? value->getAsArray() : nullptr;
    if (value && !list)
      wrong("'" + key + "' is no array");
    for (size_t i = 0; list && i < list->size(); ++i)
      each((*list)[i], where + "." + key.str() + "[" + std::to_string(i) + "]");
  }
  Names names(StringRef key) {
    Names result;
    array(key, [&](const json::Value &value, const std::string &) {
      if (std::optional<StringRef> text = value.getAsString())
        result.push_back(text->str());
      else
        wrong("'" + key + "' holds something that is no text");
    });
    return result;
  }
  template <typename T> std::vector<T> list(StringRef key, T (*read)(Reader &reader)) {
    std::vector<T> result;
    array(key, [&](const json::Value &value, std::string at) {
      Reader reader(value, std::move(at), problems);
      result.push_back(read(reader));
    });
    return result;
  }

private:
  const json::Object *object;
  std::string where;
  std::vector<std::string> &problems;
  llvm::StringSet<> asked;
};
} // namespace

static Instance readInstance(Reader &r) {
  Instance i;
  i.op = r.text("op");
  i.parameter = r.text("parameter", /*required=*/false);
  i.change = r.text("change", /*required=*/false);
  i.lemma = r.text("lemma");
  i.needs = r.text("needs");
  i.of = r.text("of", /*required=*/false);
  i.fails = r.text("fails", /*required=*/false);
  return i;
}

static Output readOutput(Reader &r) {
  Output output;
  output.goal = r.text("goal");
  output.chain = r.names("chain");
  output.patches = r.list<Instance>("patches", readInstance);
  output.divisors = r.list<Instance>("divisors", readInstance);
  if (r.has("split"))
    output.split = r.choice("split", {"even", "least-norm"});
  return output;
}

static Barrier readBarrier(Reader &r) {
  Barrier barrier;
  barrier.value = r.text("value");
  barrier.image = r.choice("image", {"anything", "ball", "box", "plane", "half-space"});
  barrier.radius = r.number("radius", /*required=*/false);
  barrier.low = r.number("low", /*required=*/false);
  barrier.high = r.number("high", /*required=*/false);
  barrier.total = r.number("total", /*required=*/false);
  if (r.has("normal"))
    barrier.normal = r.text("normal");
  return barrier;
}

static Cause readCause(Reader &r) {
  Cause cause;
  cause.rule = r.text("rule");
  r.array("outputs", [&](const json::Value &value, const std::string &) {
    std::optional<int64_t> number = value.getAsInteger();
    if (number && *number >= 0)
      cause.outputs.push_back(*number);
    else
      r.wrong("'outputs' holds something that is no integer from 0 on");
  });
  cause.target.seed = r.integer("seed");
  cause.target.scaled = r.text("scaled", /*required=*/false);
  cause.target.factor = r.number("factor", /*required=*/!cause.target.scaled.empty()).value_or(1);
  cause.target.distance = r.number("distance", /*required=*/true).value_or(0);
  return cause;
}

static Claim readClaim(Reader &r) {
  Claim c;
  c.block = r.text("block");
  c.layers = r.text("layers");
  c.digest = r.text("digest");
  c.text = r.names("text");
  c.frozen = r.names("frozen");
  c.shared = r.names("shared");
  c.inputsDepend = r.boolean("inputsDepend");
  if (r.has("equalInputs"))
    c.equalInputs = r.names("equalInputs");
  c.verdict = r.choice("verdict", {"controllable", "output-only", "rejected", "undecided"});
  if (c.verdict == "controllable" || c.verdict == "output-only") {
    c.theorem = r.text("theorem");
    c.parameters = r.names("parameters");
    c.cut = r.list<Instance>("cut", readInstance);
    c.outputs = r.list<Output>("outputs", readOutput);
    c.selections = r.list<Instance>("selections", readInstance);
    if (c.verdict == "output-only")
      c.open = r.names("open");
  } else if (c.verdict == "rejected") {
    c.patchable = r.names("patchable");
    c.behind = r.list<Barrier>("behind", readBarrier);
    c.causes = r.list<Cause>("causes", readCause);
  } else if (c.verdict == "undecided") {
    c.missing = r.text("missing");
    c.stops = r.names("stops");
  }
  return c;
}

llvm::Expected<Proof> proof::parseProof(StringRef text, StringRef name) {
  auto value = parseStrictJson(text, name);
  if (!value)
    return value.takeError();
  const json::Object *object = value->getAsObject();
  if (!object || object->getString("format") != std::optional<StringRef>(proofFormat))
    return makeError(name + ": found no \"format\": \"" + proofFormat +
                     "\"; expected a proof file");
  if (object->getInteger("version") != std::optional<int64_t>(proofVersion))
    return makeError(name + ": is of another version; expected version " +
                     llvm::Twine(proofVersion));
  Proof proof;
  std::vector<std::string> problems;
  {
    Reader r(*value, name.str(), problems);
    r.text("format");
    r.integer("version");
    proof.startLayer = r.integer("startLayer");
    proof.sites = r.choice("sites", {"mlp", "all"});
    if (r.has("past"))
      proof.past = r.names("past");
    proof.claims = r.list<Claim>("blocks", readClaim);
  }
  llvm::Error errors = llvm::Error::success();
  for (const std::string &problem : problems)
    errors = llvm::joinErrors(std::move(errors), makeError(problem));
  if (errors)
    return std::move(errors);
  return proof;
}
