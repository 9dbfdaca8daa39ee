// Writes a proof.
#include "ProofFormat.h"
#include "ctxc/Proof/Proof.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

using namespace ctxc;
using namespace ctxc::proof;
using llvm::StringRef;
namespace json = llvm::json;

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
                             {"high", b.high},
                             {"total", b.total}})
    if (number)
      this->number(key, *number);
  if (!b.normal.empty())
    pair("normal", b.normal);
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
  text("format", proofFormat);
  field("version");
  os << proofVersion;
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
