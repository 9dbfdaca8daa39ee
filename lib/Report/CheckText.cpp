// The check report for people:
//
//   layers 0-25, block 'gemma3': controllable
//     input   mlp.gate_proj.weight               rank 1  input controllability of pre-norm MLPs
//     …
#include "CheckRows.h"
#include "ctxc/Report/CheckReport.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Unicode.h"

using namespace mlir;
using namespace ctxc;

static constexpr unsigned pageWidth = 100, labelWidth = 9;

/// Writes the words of `text` in lines that fit the page, the first after `label`.
static void printWrapped(llvm::raw_ostream &os, StringRef label, const Twine &words,
                         unsigned hang = 0) {
  std::string text = words.str();
  os << "  " << llvm::left_justify(label, labelWidth);
  unsigned column = 2 + labelWidth;
  for (StringRef rest = text; !rest.empty();) {
    auto [word, after] = rest.split(' ');
    unsigned width = std::max(0, llvm::sys::unicode::columnWidthUTF8(word));
    if (column > 2 + labelWidth && column + 1 + width > pageWidth) {
      os << "\n" << std::string(2 + labelWidth + hang, ' ');
      column = 2 + labelWidth + hang;
    } else if (column > 2 + labelWidth) {
      os << " ";
      ++column;
    }
    os << word;
    column += width;
    rest = after;
  }
  os << "\n";
}

namespace {
/// Rows of three cells under a label in the margin.
class Table {
public:
  explicit Table(const CheckRows &rows) {
    for (const auto *list : {&rows.input, &rows.output})
      for (const PatchRow &row : *list)
        measure(row.parameter, row.change);
    for (const ObligationRow &row : rows.obligations)
      parameterWidth = std::max(parameterWidth, row.parameter.size());
  }

  void print(llvm::raw_ostream &os, StringRef label, StringRef a, StringRef b, StringRef c,
             size_t middle) const {
    os << "  " << llvm::left_justify(label, labelWidth) << llvm::left_justify(a, parameterWidth)
       << "  " << llvm::left_justify(b, middle) << "  " << c << "\n";
  }

  size_t changeWidth = 0;

private:
  void measure(StringRef parameter, StringRef change) {
    parameterWidth = std::max(parameterWidth, parameter.size());
    changeWidth = std::max(changeWidth, change.size());
  }
  size_t parameterWidth = 0;
};
} // namespace

static void printPlan(llvm::raw_ostream &os, const Verdict &verdict) {
  CheckRows rows = checkRows(verdict);
  Table table(rows);
  auto printPatches = [&](StringRef label, ArrayRef<PatchRow> list) {
    for (const PatchRow &row : list) {
      table.print(os, label, row.parameter, row.change, row.lemma, table.changeWidth);
      label = "";
    }
  };
  if (rows.input.empty() && verdict.kind == VerdictKind::Controllable)
    printWrapped(os, "input",
                 "nothing to patch: what the output patch reads does not depend on "
                 "the context");
  printPatches("input", rows.input);
  printPatches("output", rows.output);
  size_t conditionWidth = 0;
  for (const ObligationRow &row : rows.obligations)
    conditionWidth = std::max(conditionWidth, row.condition.size());
  StringRef label = "needs";
  for (const ObligationRow &row : rows.obligations) {
    if (row.condition == "nothing")
      continue;
    table.print(os, label, row.parameter, row.condition, row.holds, conditionWidth);
    label = "";
  }
  if (label == "needs")
    printWrapped(os, "needs", "nothing: the patch exists for all activations");
}

/// Writes every plan on one or two lines; the chosen one has a star.
static void printPlans(llvm::raw_ostream &os, const VerdictGroup &group) {
  StringRef label = "plans";
  for (const PlanRow &row : planRows(group)) {
    printWrapped(os, label, (row.chosen ? "* " : "- ") + llvm::join(row.parameters, ", ") + ":", 2);
    os << std::string(2 + labelWidth + 2, ' ') << costText(row) << "\n";
    label = "";
  }
}

/// " [bounded-output]": the rules of the messages that say why.
static std::string rulesOf(ArrayRef<Finding> causes) {
  llvm::SmallVector<StringRef> rules;
  for (const Finding &cause : causes)
    if (!llvm::is_contained(rules, cause.rule))
      rules.push_back(cause.rule);
  return rules.empty() ? "" : " [" + llvm::join(rules, ", ") + "]";
}

static void printGroup(llvm::raw_ostream &os, const VerdictGroup &group,
                       const CheckReportOptions &options) {
  const Verdict &verdict = *group.verdict;
  xf::BlockOp block = group.block;
  if (!group.ops.empty())
    os << (group.layers.size() == 1 ? "layer " : "layers ") << formatRanges(group.layers) << ", ";
  os << "block '" << block.getSymName() << "': " << stringify(verdict.kind)
     << rulesOf(verdict.causes) << "\n";
  if (!verdict.plan.isEmpty())
    printPlan(os, verdict);
  if (!verdict.remark.empty())
    printWrapped(os, "note", verdict.remark);
  if (!options.plans)
    return;
  printPlans(os, group);
  for (auto [i, joint] : llvm::enumerate(jointMatricesOf(group)))
    printWrapped(os, i == 0 ? "joint" : "or",
                 joint.parameter + ": one change for up to " + std::to_string(joint.tokens) +
                     " tokens at once, if what it reads for them is independent");
}

bool ctxc::isPatchable(ArrayRef<VerdictGroup> groups) {
  return llvm::all_of(groups, [](const VerdictGroup &g) { return g.verdict->isSuccess(); });
}

void ctxc::printCheckReport(llvm::raw_ostream &os, ArrayRef<VerdictGroup> groups,
                            const CheckReportOptions &options) {
  size_t total = 0, good = 0;
  bool isModel = false;
  for (const VerdictGroup &group : groups) {
    printGroup(os, group, options);
    os << "\n";
    total += group.layers.size();
    good += group.verdict->isSuccess() ? group.layers.size() : 0;
    isModel |= !group.ops.empty();
  }
  if (options.model && !options.model->causes.empty()) {
    xf::ModelOp model = options.model->model;
    os << "model '" << model.getSymName() << "': " << stringify(options.model->kind)
       << rulesOf(options.model->causes) << "\n\n";
  }
  os << good << " of " << total << (isModel ? " layers" : " blocks")
     << " can take the context into their parameters\n";
  if (!options.notCompared.empty())
    os << "not compared with its source: " << options.notCompared << "\n";
}
