// Every field of a right proof is changed in every sensible way, and the changed proof must be
// refused: no field of the format is without effect.
#include "Fixture.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using namespace ctxc;
using namespace ctxc::test;
using llvm::StringRef;
namespace json = llvm::json;

namespace {

class Mutator {
public:
  Mutator(Model &model, const proof::Proof &proof) : model(model) {
    std::string text;
    llvm::raw_string_ostream os(text);
    proof::writeProof(proof, os);
    root = std::make_unique<json::Value>(llvm::cantFail(json::parse(text)));
    for (const proof::Structure &structure :
         proof::structuresOf(model.module(), proof.startLayer)) {
      xf::BlockOp block = structure.block;
      proof::BlockText names(block);
      for (mlir::Value argument : block.getBody().getArguments())
        values.push_back(names.name(argument).str());
      for (mlir::Operation &op : block.getBody().front())
        for (mlir::Value result : op.getResults()) {
          values.push_back(names.name(result).str());
          if (auto param = llvm::dyn_cast<xf::ParamOp>(op))
            parameters.push_back(param.getName().str());
        }
    }
  }

  /// Changes every field, one at a time.
  void run() { visit(*root, "", ""); }

  unsigned tried = 0;
  std::vector<std::string> accepted;

private:
  void visit(json::Value &value, StringRef key, const std::string &path);
  void visitArray(json::Array &array, StringRef key, const std::string &path);
  void visitObject(json::Object &object, const std::string &path);
  void expectRefused(const std::string &what);
  std::vector<json::Value> othersOf(const json::Value &value, StringRef key) const;
  bool isHarmless(const std::string &what) const;

  Model &model;
  std::unique_ptr<json::Value> root;
  std::vector<std::string> values, parameters;
};

} // namespace

/// Whether the changed proof is still true.
bool Mutator::isHarmless(const std::string &what) const {
  // More ops may be patched than necessary.
  if (StringRef(what).starts_with(".sites: \"mlp\" to \"all\""))
    return true;
  // Barriers may hold everything that patches move as well; the distance is measured again.
  if (StringRef(what).contains(".behind[") && StringRef(what).contains("].value: "))
    return true;
  // Two independent outputs may come in either order, and so may two claims.
  return StringRef(what).contains(".outputs: swap") || StringRef(what).contains("blocks: swap");
}

void Mutator::expectRefused(const std::string &what) {
  ++tried;
  std::string text;
  llvm::raw_string_ostream(text) << *root;
  auto proof = proof::parseProof(text, "proof");
  if (!proof) {
    llvm::consumeError(proof.takeError());
    return;
  }
  // Structure first, since numbers take longer.
  if (!model.problems(*proof, /*replay=*/false).empty() || !model.problems(*proof).empty())
    return;
  if (!isHarmless(what))
    accepted.push_back(what);
}

std::vector<json::Value> Mutator::othersOf(const json::Value &value, StringRef key) const {
  std::vector<json::Value> others;
  if (std::optional<bool> flag = value.getAsBoolean())
    return {json::Value(!*flag), json::Value(nullptr)};
  if (std::optional<int64_t> number = value.getAsInteger(); number && key != "distance")
    return {json::Value(*number + 1), json::Value(-1), json::Value("1"), json::Value(nullptr)};
  if (std::optional<double> number = value.getAsNumber())
    return {json::Value(*number * 1.01), json::Value(*number * 0.99),
            json::Value(-*number),       json::Value(0),
            json::Value(1e300),          json::Value("1")};
  std::string text = value.getAsString().value_or("").str();
  auto add = [&](StringRef other) {
    if (other != text)
      others.push_back(other.str());
  };
  auto addAll = [&](llvm::ArrayRef<std::string> list) {
    for (const std::string &other : list)
      add(other);
  };
  static const std::pair<StringRef, std::vector<std::string>> choices[] = {
      {"verdict", {"controllable", "output-only", "rejected", "undecided"}},
      {"theorem", {"unified", "parallel-block", "one-patch-block", "nothing-to-absorb"}},
      {"change", {"rank1", "delta"}},
      {"needs", {"nothing", "nonzero-vector", "nonzero-elements", "nonzero-sum", "finite-elements", "same-selection"}},
      {"fails", {"never", "null-set", "open-set"}},
      {"lemma",
       {"input-mlp", "input-pre-norm", "output-matrix", "output-bias", "output-scale", "mixture",
        "known-factor", "norm-bias-input", "norm-scale-input", "unified"}},
      {"image", {"anything", "ball", "box", "plane", "half-space"}},
      {"rule",
       {"bounded-output", "thin-output", "one-sided-output", "nothing-reaches-output",
        "counterexample", "no-solvable-chain"}},
      {"missing", {"no-solvable-chain", "several-outputs", "no-such-plan", "bounded-output"}},
      {"sites", {"mlp", "all"}},
      {"split", {"even", "least-norm"}},
      {"scaled", {"context"}},
      {"layers", {"0", "1", "0-1", "0-7"}}};
  for (const auto &[known, list] : choices)
    if (known == key)
      addAll(list);
  // What no numbers confirm has no chain that can be solved either: it is the weaker reason.
  if (text == rules::UnconfirmedRejection)
    llvm::erase(others, json::Value("no-solvable-chain"));
  if (key == "op" || key == "of" || key == "chain" || key == "open" || key == "value" ||
      key == "stops" || key == "goal")
    addAll(values);
  if (key == "parameter" || key == "patchable" || key == "frozen" || key == "shared" ||
      key == "scaled" || key == "parameters")
    addAll(parameters);
  add("");
  add(text + "x");
  others.push_back(1);
  return others;
}

void Mutator::visitArray(json::Array &array, StringRef key, const std::string &path) {
  for (size_t i = 0; i < array.size(); ++i) {
    json::Array before = array;
    array.erase(array.begin() + i);
    expectRefused(path + ": drop " + std::to_string(i));
    array = before;
    array.insert(array.begin() + i, before[i]);
    expectRefused(path + ": double " + std::to_string(i));
    array = before;
    if (i + 1 < array.size() && array[i] != array[i + 1]) {
      std::swap(array[i], array[i + 1]);
      expectRefused(path + ": swap " + std::to_string(i));
      array = before;
    }
    visit(array[i], key, path + "[" + std::to_string(i) + "]");
  }
}

void Mutator::visitObject(json::Object &object, const std::string &path) {
  std::vector<std::string> keys;
  for (auto &field : object)
    keys.push_back(StringRef(field.first).str());
  for (const std::string &key : keys) {
    json::Value before = *object.get(key);
    object.erase(key);
    expectRefused(path + ": drop " + key);
    object[key] = before;
    visit(*object.get(key), key, path + "." + key);
  }
  object["note"] = "x";
  expectRefused(path + ": add a field");
  object.erase("note");
}

void Mutator::visit(json::Value &value, StringRef key, const std::string &path) {
  if (json::Array *array = value.getAsArray())
    return visitArray(*array, key, path);
  if (json::Object *object = value.getAsObject())
    return visitObject(*object, path);
  json::Value before = value;
  for (json::Value &other : othersOf(before, key)) {
    if (other == before)
      continue;
    std::string what;
    llvm::raw_string_ostream(what) << path << ": " << before << " to " << other;
    value = other;
    expectRefused(what);
  }
  value = before;
}

static void expectNothingIdle(Model &model) {
  Mutator mutator(model, model.prove());
  mutator.run();
  EXPECT_GT(mutator.tried, 50u);
  EXPECT_EQ(llvm::join(mutator.accepted, "\n"), "");
}

// One golden of each kind; the others differ only in size.
class MutatedGoldens : public testing::TestWithParam<std::string> {};
TEST_P(MutatedGoldens, AreRefused) {
  Model model(golden(GetParam()));
  expectNothingIdle(model);
}
INSTANTIATE_TEST_SUITE_P(Proof, MutatedGoldens,
                         testing::Values("llama", "gemma3", "gpt2", "gptj", "falcon"),
                         goldenTestName);

class MutatedRules : public testing::TestWithParam<std::string> {};
TEST_P(MutatedRules, AreRefused) {
  Model model(ruleFile(GetParam()), ruleOptions(GetParam()));
  expectNothingIdle(model);
}
INSTANTIATE_TEST_SUITE_P(Proof, MutatedRules, testing::ValuesIn(allRuleFiles()), goldenTestName);
