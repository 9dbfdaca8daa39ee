// The proof as JSON: one line for each instance, in the order of the theorem's proof.
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Proof/Proof.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace ctxc;
using namespace ctxc::proof;
using llvm::StringRef;
namespace json = llvm::json;

static constexpr StringRef format = "ctxc-proof";
static constexpr int64_t version = 1;

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Writes a number with the fewest digits that identify it.
static std::string shortest(double x) {
  char text[32];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, x);
    if (std::strtod(text, nullptr) == x)
      break;
  }
  return text;
}

namespace {
class Writer {
public:
  explicit Writer(llvm::raw_ostream &os) : os(os) {}
  void write(const Proof &proof);

private:
  void write(const Claim &claim);
  void write(const Output &output);
  void field(StringRef key);
  void text(StringRef key, StringRef value) {
    field(key);
    os << json::Value(value);
  }
  void open(char bracket) {
    os << bracket;
    indent += 2;
    first = true;
  }
  void close(char bracket) {
    indent -= 2;
    newLine();
    os << bracket;
    first = false;
  }
  void newLine() {
    os << "\n";
    os.indent(indent);
  }
  void item() {
    os << (first ? "" : ",");
    newLine();
    first = false;
  }
  /// All on one line.
  void names(StringRef key, const Names &list) {
    field(key);
    inLine(list);
  }
  template <typename List> void inLine(const List &list) {
    os << "[";
    llvm::interleaveComma(list, os, [&](const auto &x) { os << json::Value(x); });
    os << "]";
  }
  /// One line each.
  template <typename List, typename Write> void lines(StringRef key, const List &list, Write each) {
    field(key);
    if (list.empty()) {
      os << "[]";
      return;
    }
    open('[');
    for (const auto &x : list) {
      item();
      each(x);
    }
    close(']');
  }
  void instance(const Instance &instance);
  void barrier(const Barrier &barrier);
  void cause(const Cause &cause);
  void pair(StringRef key, const json::Value &value, bool isFirst = false) {
    os << (isFirst ? "" : ", ") << json::Value(key) << ": " << value;
  }

  void number(StringRef key, double value) {
    os << ", " << json::Value(key) << ": " << shortest(value);
  }

  llvm::raw_ostream &os;
  unsigned indent = 0;
  bool first = true;
};
} // namespace

void Writer::field(StringRef key) {
  item();
  os << json::Value(key) << ": ";
}

void Writer::instance(const Instance &i) {
  os << "{";
  pair("op", i.op, true);
  if (!i.parameter.empty()) {
    pair("parameter", i.parameter);
    pair("change", i.change);
  }
  pair("lemma", i.lemma);
  pair("needs", i.needs);
  if (!i.of.empty()) {
    pair("of", i.of);
    pair("fails", i.fails);
  }
  os << "}";
}

void Writer::barrier(const Barrier &b) {
  os << "{";
  pair("value", b.value, true);
  pair("image", b.image);
  for (auto [key, number] : {std::pair<StringRef, std::optional<double>>{"radius", b.radius},
                             {"low", b.low},
                             {"high", b.high}})
    if (number)
      this->number(key, *number);
  os << "}";
}

void Writer::cause(const Cause &c) {
  os << "{";
  pair("rule", c.rule, true);
  os << ", \"outputs\": ";
  inLine(c.outputs);
  pair("seed", c.target.seed);
  if (!c.target.scaled.empty()) {
    pair("scaled", c.target.scaled);
    number("factor", c.target.factor);
  }
  number("distance", c.target.distance);
  os << "}";
}

void Writer::write(const Output &output) {
  open('{');
  text("goal", output.goal);
  names("chain", output.chain);
  lines("patches", output.patches, [&](const Instance &i) { instance(i); });
  lines("divisors", output.divisors, [&](const Instance &i) { instance(i); });
  if (!output.split.empty())
    text("split", output.split);
  close('}');
}

void Writer::write(const Claim &c) {
  open('{');
  text("block", c.block);
  text("layers", c.layers);
  text("digest", c.digest);
  lines("text", c.text, [&](const std::string &line) { os << json::Value(line); });
  names("frozen", c.frozen);
  names("shared", c.shared);
  field("inputsDepend");
  os << json::Value(c.inputsDepend);
  if (!c.equalInputs.empty())
    names("equalInputs", c.equalInputs);
  text("verdict", c.verdict);
  auto asInstance = [&](const Instance &i) { instance(i); };
  if (c.verdict == "controllable" || c.verdict == "output-only") {
    text("theorem", c.theorem);
    names("parameters", c.parameters);
    lines("cut", c.cut, asInstance);
    lines("outputs", c.outputs, [&](const Output &output) { write(output); });
    lines("selections", c.selections, asInstance);
    if (c.verdict == "output-only")
      names("open", c.open);
  } else if (c.verdict == "rejected") {
    names("patchable", c.patchable);
    lines("behind", c.behind, [&](const Barrier &b) { barrier(b); });
    lines("causes", c.causes, [&](const Cause &x) { cause(x); });
  } else {
    text("missing", c.missing);
    names("stops", c.stops);
  }
  close('}');
}

void Writer::write(const Proof &proof) {
  open('{');
  text("format", format);
  field("version");
  os << version;
  field("startLayer");
  os << proof.startLayer;
  text("sites", proof.sites);
  if (!proof.past.empty())
    names("past", proof.past);
  lines("blocks", proof.claims, [&](const Claim &claim) { write(claim); });
  close('}');
  os << "\n";
}

void proof::writeProof(const Proof &proof, llvm::raw_ostream &os) { Writer(os).write(proof); }

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

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
  barrier.image = r.choice("image", {"anything", "ball", "box"});
  barrier.radius = r.number("radius", /*required=*/false);
  barrier.low = r.number("low", /*required=*/false);
  barrier.high = r.number("high", /*required=*/false);
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
  if (!object || object->getString("format") != std::optional<StringRef>(format))
    return makeError(name + ": found no \"format\": \"" + format +
                     "\"; expected a file that 'ctxc check --proof FILE' wrote");
  if (object->getInteger("version") != std::optional<int64_t>(version))
    return makeError(name + ": is of another version; expected version " + llvm::Twine(version));
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
