// docs/families.md says what ctxc finds in every importer's block, and this agrees with what is
// known of the family. CTXC_WRITE_DOCS=1 unit-Families writes the page.
#include "Expectations.h"
#include "ctxc/Import/Import.h"
#include "ctxc/Report/CheckReport.h"
#include "test/unit/Goldens.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdlib>
#include <fstream>
#include <set>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::test;

namespace {

constexpr const char *page = CTXC_SOURCE_DIR "/docs/families.md";

/// What the table says about a block.
struct Row {
  std::string form, before, after, heads, mixer, input, output, needs, verdict;
  bool operator==(const Row &o) const {
    return std::tie(form, before, after, heads, mixer, input, output, needs, verdict) ==
           std::tie(o.form, o.before, o.after, o.heads, o.mixer, o.input, o.output, o.needs,
                    o.verdict);
  }
};

std::ostream &operator<<(std::ostream &os, const Row &row) {
  return os << row.form << " | " << row.before << " | " << row.after << " | " << row.heads << " | "
            << row.mixer << " | " << row.input << " | " << row.output << " | " << row.needs << " | "
            << row.verdict;
}

//===----------------------------------------------------------------------===//
// Norms, found among the block's ops
//===----------------------------------------------------------------------===//

enum class Place { Before, After, Heads, Mixer };

/// Whether `value` depends on what a mixer other than attention reads of the context, not counting
/// the sum that the mixer's result is added to.
bool isInsideMixer(mlir::Value value) {
  mlir::Operation *op = value.getDefiningOp();
  bool isResidual = isa_and_nonnull<xf::AddOp>(op) && any_of(op->getOperands(), [](mlir::Value v) {
                      return isa<mlir::BlockArgument>(v);
                    });
  if (!op || isResidual)
    return false;
  return (isa<xf::ContextualOpInterface>(op) && !isa<xf::AttentionOp>(op)) ||
         any_of(op->getOperands(), isInsideMixer);
}

/// Where the result of a norm goes, through its scale, its bias, factors and reshapes: to linears,
/// to the residual stream, or to the scores.
Place placeOf(mlir::Value value) {
  bool linear = false, sum = false;
  for (mlir::Operation *user : value.getUsers()) {
    if (isa<xf::ScaleOp, xf::BiasOp, xf::ReshapeOp, xf::TimesOp>(user))
      return placeOf(user->getResult(0));
    linear |= isa<xf::LinearOp>(user);
    sum |= isa<xf::AddOp, xf::YieldOp>(user);
  }
  return sum ? Place::After : linear ? Place::Before : Place::Heads;
}

std::string nameOf(xf::NormalizeOp norm) {
  mlir::Operation *user = *norm->getUsers().begin();
  if (isa<xf::ReshapeOp>(user)) // a norm of groups is scaled as one row
    user = *user->getUsers().begin();
  if (norm.getKind() == xf::NormKind::l2)
    return "L2";
  auto scale = dyn_cast<xf::ScaleOp>(user);
  if (norm.getKind() == xf::NormKind::rms)
    return !scale ? "RMS without weight" : scale.getOffset().isZero() ? "RMS w" : "RMS (1+w)";
  if (!scale)
    return "LN without weight";
  bool biased = any_of(scale->getUsers(), [](mlir::Operation *op) { return isa<xf::BiasOp>(op); });
  if (!scale.getOffset().isZero())
    return "LN (1+w)";
  return biased ? "LN" : "LN without bias";
}

std::string normsAt(xf::BlockOp block, Place place) {
  std::map<std::string, int> found;
  block.walk([&](xf::NormalizeOp norm) {
    // Normalising the weights of a mixture is not a norm of the block.
    if (norm.getKind() == xf::NormKind::sum)
      return;
    if ((isInsideMixer(norm.getData()) ? Place::Mixer : placeOf(norm.getResult())) == place)
      ++found[nameOf(norm)];
  });
  std::vector<std::string> parts;
  for (const auto &[name, count] : found)
    parts.push_back(std::to_string(count) + " " + name);
  return parts.empty() ? "none" : join(parts, ", ");
}

//===----------------------------------------------------------------------===//
// Rows, made from the check's report
//===----------------------------------------------------------------------===//

std::string parameters(const json::Array &patches) {
  std::vector<std::string> names;
  for (const json::Value &patch : patches)
    names.push_back("`" + patch.getAsObject()->getString("parameter")->str() + "`");
  return names.empty() ? "none" : join(names, ", ");
}

/// "its input is not zero almost everywhere (`a`, `b`)", once for each condition.
std::string obligations(const json::Array &list) {
  std::vector<std::pair<std::string, std::vector<std::string>>> byCondition; // in their order
  for (const json::Value &value : list) {
    const json::Object &o = *value.getAsObject();
    std::string text = (*o.getString("condition") + ", " + *o.getString("holds")).str();
    auto it = find_if(byCondition, [&](const auto &entry) { return entry.first == text; });
    if (it == byCondition.end())
      it = byCondition.insert(it, {text, {}});
    it->second.push_back("`" + o.getString("parameter")->str() + "`");
  }
  std::vector<std::string> parts;
  for (const auto &[condition, names] : byCondition)
    if (!StringRef(condition).starts_with("nothing"))
      parts.push_back(join(names, ", ") + ": " + condition);
  return parts.empty() ? "none" : join(parts, "; ");
}

/// How many structures of a golden's layers have rows.
size_t structuresWithRow(const std::string &name) {
  std::set<size_t> found;
  for (const Expectation &e : expectations())
    for (const Layers &layers : e.layers)
      if (layers.golden == name)
        found.insert(layers.structure);
  return found.size();
}

class Families : public testing::Test {
protected:
  /// The row for the layers of one structure of a golden.
  Row rowOf(const Layers &layers) {
    const auto &[name, structure] = layers;
    mlir::MLIRContext context;
    ImportOptions options;
    options.needWeights = false;
    Expected<ImportedModel> model = importModel(golden(name), context, options);
    if (!model) {
      ADD_FAILURE() << toString(model.takeError());
      return {};
    }
    std::vector<VerdictGroup> groups = groupVerdicts(checkModel(*model->module));
    EXPECT_EQ(groups.size(), structuresWithRow(name)) << name << ": each structure needs a row";
    if (structure >= groups.size()) {
      ADD_FAILURE() << name << ": has no structure " << structure;
      return {};
    }
    json::Value report = checkReportJson(groups, /*findings=*/{});
    const json::Object &group =
        *(*report.getAsObject()->getArray("groups"))[structure].getAsObject();
    Row row;
    row.before = normsAt(groups[structure].block, Place::Before);
    row.after = normsAt(groups[structure].block, Place::After);
    row.heads = normsAt(groups[structure].block, Place::Heads);
    row.mixer = normsAt(groups[structure].block, Place::Mixer);
    row.input = parameters(*group.getArray("input"));
    row.output = parameters(*group.getArray("output"));
    // If what the output patch reads does not depend on the context, the MLP is parallel to the
    // attention.
    row.form = row.input != "none"    ? "sequential"
               : row.output == "none" ? "mixer alone"
                                      : "parallel";
    row.needs = obligations(*group.getArray("obligations"));
    row.verdict = *group.getString("verdict");
    return row;
  }
};

std::string normsText(const Row &row) {
  std::string text;
  for (auto [place, norms] : {std::pair("before", row.before),
                              {"after", row.after},
                              {"q, k", row.heads},
                              {"mixer", row.mixer}})
    if (norms != "none")
      text += (text.empty() ? "" : "; ") + std::string(place) + ": " + norms;
  return text;
}

TEST_F(Families, EveryGoldenAndEveryImporterHasARow) {
  StringSet<> types;
  std::set<std::string> listed;
  for (const Expectation &e : expectations()) {
    types.insert(e.modelType);
    for (const auto &[name, structure] : e.layers) {
      listed.insert(name);
      auto text = MemoryBuffer::getFile(golden(name) + "/config.json");
      ASSERT_TRUE(bool(text)) << name;
      json::Value config = cantFail(json::parse((*text)->getBuffer()));
      EXPECT_EQ(config.getAsObject()->getString("model_type"), StringRef(e.modelType)) << name;
    }
  }
  for (const Alias &alias : aliases)
    types.insert(alias.modelType);
  std::vector<std::string> all = allGoldens();
  llvm::append_range(all, allMixers());
  llvm::sort(all);
  EXPECT_EQ(std::vector<std::string>(listed.begin(), listed.end()), all);
  for (StringRef type : supportedModelTypes())
    EXPECT_TRUE(types.contains(type)) << type.str() << ": no row in Expectations.h";
  std::vector<StringRef> read = supportedModelTypes(), described = describedModelTypes();
  llvm::append_range(read, described);
  for (const auto &type : types)
    EXPECT_TRUE(llvm::is_contained(read, type.getKey())) << type.getKey().str();
}

TEST_F(Families, AreWhatIsKnownOfThem) {
  for (const Expectation &e : expectations()) {
    SCOPED_TRACE(e.name);
    Row row = rowOf(e.layers.front());
    for (const Layers &layers : ArrayRef(e.layers).drop_front())
      EXPECT_EQ(rowOf(layers), row) << layers.golden;
    EXPECT_EQ(row.form, e.form);
    EXPECT_EQ(row.before, e.before);
    EXPECT_EQ(row.after, e.after);
    EXPECT_EQ(row.verdict, e.verdict);
    std::string expected =
        e.output == StringRef("none") ? "none" : "`" + std::string(e.output) + "`";
    EXPECT_TRUE(StringRef(row.output).contains(expected)) << row.output;
    // An argument where nothing differs would be wrong too.
    EXPECT_EQ(row.output != expected, e.argument != nullptr) << row.output;
  }
}

TEST_F(Families, ThePageIsTheTable) {
  std::string text = R"(# Families

Importers and families with goldens, and what `ctxc check` finds in their blocks. `unit-Families` wrote this page from
the checkpoints under `test/goldens` and `test/mixers`, which transformers' own classes made; the
same test compares each row with what is known of the family. F is patched so that the MLP's inside
is as it was with the context (the input cut), G absorbs what is left (Theorem 3); parameters are
named as in the checkpoint, without the layer's prefix. "Almost everywhere" means that the condition
fails on a null set of weights and activations only, and is checked at run time. The families'
accuracy, and its limits, are on [another page](judged-families.md). Other types of transformers are
read by [descriptions](described-types.md).

| family | `model_type` | form | norms | F | G | needs | verdict |
|---|---|---|---|---|---|---|---|
)";
  MapVector<StringRef, std::vector<std::string>> arguments;
  for (const Expectation &e : expectations()) {
    Row row = rowOf(e.layers.front());
    std::string type = "`" + std::string(e.modelType) + "`", mark;
    for (const Alias &alias : aliases)
      if (StringRef(alias.of) == e.modelType)
        type += ", `" + std::string(alias.modelType) + "`";
    if (is_contained(allMixers(), e.layers.front().golden))
      type += " \\*";
    if (e.argument)
      arguments[e.argument].push_back("`" + std::string(e.modelType) + "`");
    for (size_t i = 0; i < arguments.size(); ++i)
      if (e.argument && arguments.begin()[i].first == e.argument)
        mark = " [" + std::to_string(i + 1) + "]";
    text += "| " +
            join(ArrayRef<std::string>{e.name, type, row.form, normsText(row), row.input,
                                       row.output + mark, row.needs, row.verdict},
                 " | ") +
            " |\n";
  }
  text +=
      "\nNorms stand before the matrices of a branch, after a branch, on queries and keys, or "
      "inside\n"
      "another mixer. A parallel block has nothing to patch for its input: what G reads is the "
      "same\n"
      "without the context.\n"
      "\n\\* Its layers mix tokens by convolutions and recurrences (`xf.conv`, "
      "`xf.linear_attention`)\n"
      "too. A mixer alone has no parameters outside its contextual part; `--sites all` offers its\n"
      "last matrix. GPUs have no kernels for these ops yet.\n";
  for (auto [i, argument] : enumerate(arguments))
    text += "\n[" + std::to_string(i + 1) + "] " + join(argument.second, ", ") + ": " +
            argument.first.str() + "\n";

  if (std::getenv("CTXC_WRITE_DOCS"))
    std::ofstream(page) << text;
  auto written = MemoryBuffer::getFile(page);
  ASSERT_TRUE(bool(written)) << page;
  EXPECT_EQ((*written)->getBuffer().str(), text)
      << page << " is stale; run CTXC_WRITE_DOCS=1 unit-Families to write it anew";
}

} // namespace
