// The check report as a page.
#include "ctxc/Report/CheckPage.h"
#include "CheckRows.h"
#include "GraphStyle.h"
#include "ctxc/Report/Graph.h"
#include "ctxc/Report/Rules.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;
using llvm::Error;
using llvm::StringRef;

static constexpr StringRef head = R"(<!doctype html>
<!-- Written by ctxc check. -->
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="color-scheme" content="light dark">
<style>
:root { --paper: #fcfbf8; --ink: #1d1c1a; --soft: #5b5953; --line: #dfdbd2; --lo: #f0ede6; --good: #1b6b31; --bad: #a4001c; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #15161a; --ink: #ecebe6; --soft: #aeaba3; --line: #34363d; --lo: #24262d; --good: #6fce86; --bad: #ff8c99; }
}
html { background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 64rem; padding: 1.5rem 1rem 4rem; overflow-wrap: anywhere; }
h1, h2 { line-height: 1.25; }
section { border-top: 1px solid var(--line); margin-top: 2.5rem; }
.good { color: var(--good); } .bad { color: var(--bad); }
.columns { display: flex; flex-wrap: wrap; gap: 2rem; align-items: flex-start; }
.columns > * { min-width: 0; flex: 1 1 20rem; }
.columns > .drawing { flex: 0 1 auto; max-width: 100%; overflow-x: auto; }
.drawing svg { display: block; }
.scroll { overflow-x: auto; }
table { overflow-wrap: normal; border-collapse: collapse; margin: .5rem 0 1.5rem; font-size: .92rem; }
caption { text-align: left; font-weight: 600; padding: .2rem 0; }
th, td { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); font-weight: normal; }
thead th, footer, .soft { color: var(--soft); }
mark { background: none; color: var(--bad); font-weight: 600; }
pre { background: var(--lo); padding: .6rem .8rem; white-space: pre-wrap; font-size: .85rem; }
code { font-size: .92em; overflow-wrap: anywhere; }
</style>
)";

/// A model's words, as text of the page.
static std::string escaped(StringRef words) { return graph::escape(printable(words)); }

static void printTable(llvm::raw_ostream &os, StringRef caption, llvm::ArrayRef<StringRef> columns,
                       llvm::ArrayRef<std::vector<std::string>> rows) {
  if (rows.empty())
    return;
  os << "<div class=\"scroll\"><table><caption>" << caption << "</caption><thead><tr>";
  for (StringRef column : columns)
    os << "<th scope=\"col\">" << column << "</th>";
  os << "</tr></thead><tbody>\n";
  for (const std::vector<std::string> &row : rows) {
    os << "<tr>";
    for (const std::string &cell : row)
      os << "<td>" << cell << "</td>";
    os << "</tr>\n";
  }
  os << "</tbody></table></div>\n";
}

/// The statement of a rule, as `ctxc explain` prints it.
static void printRuleOf(llvm::raw_ostream &os, const Rule *rule) {
  if (rule)
    os << "<p><b>" << escaped(rule->title) << "</b> <code class=\"soft\">" << escaped(rule->id)
       << "</code></p>\n<pre>" << escaped(StringRef(rule->statement).trim('\n')) << "</pre>\n";
}

static void printPlan(llvm::raw_ostream &os, const VerdictGroup &group) {
  CheckRows rows = checkRows(*group.verdict);
  std::vector<std::vector<std::string>> patched, needed, plans;
  llvm::SetVector<const Rule *> rules;
  if (const Rule *theorem = findTheorem(*group.verdict))
    rules.insert(theorem);
  for (auto [side, list] : {std::pair("input", &rows.input), {"output", &rows.output}})
    for (const PatchRow &row : *list) {
      patched.push_back(
          {side, "<code>" + escaped(row.parameter) + "</code>", row.change, escaped(row.lemma)});
      if (const Rule *rule = findRuleOfLemma(row.lemma))
        rules.insert(rule);
    }
  for (const ObligationRow &row : rows.obligations)
    if (row.condition != "nothing")
      needed.push_back({"<code>" + escaped(row.parameter) + "</code>", row.condition, row.holds});
  for (const PlanRow &row : planRows(group))
    plans.push_back({row.chosen ? "chosen" : "",
                     "<code>" + escaped(llvm::join(row.parameters, ", ")) + "</code>",
                     stringify(row.kind).str(), escaped(costText(row))});
  printTable(os, "What is patched", {"side", "parameter", "change", "lemma"}, patched);
  printTable(os, "What must hold of the data", {"parameter", "condition", "holds"}, needed);
  printTable(os, "All plans, and what they cost", {"", "parameters", "verdict", "cost"}, plans);
  os << "<h3>What it rests on</h3>\n";
  for (const Rule *rule : rules)
    printRuleOf(os, rule);
}

/// The block as graphviz draws it, to stand in a page.
static llvm::Expected<std::string> inlineDrawing(const VerdictGroup &group) {
  auto picture = drawGraph(group);
  if (!picture)
    return picture.takeError();
  std::string drawing = picture->substr(std::min(picture->find("<svg"), picture->size()));
  if (StringRef(drawing).starts_with("<svg"))
    drawing.insert(4, " role=\"img\" aria-label=\"The block " +
                          escaped(xf::BlockOp(group.block).getSymName()) + ", op by op\"");
  return drawing;
}

/// Where an op is: its place, the line there with the expression marked, and its module.
static void printPlace(llvm::raw_ostream &os, mlir::Operation *op,
                       const CheckReportOptions &options) {
  Place place = op ? placeOf(op) : Place();
  if (!place.isKnown())
    return;
  os << "<p class=\"soft\"><code>" << escaped(text(place)) << "</code>";
  if (place.line && !place.module.empty())
    os << " in module <code>" << escaped(place.module) << "</code>";
  os << "</p>\n";
  std::string line = place.line && options.lineOf ? options.lineOf(place) : "";
  if (line.empty())
    return;
  size_t first = std::min<size_t>(std::max(place.column, 1u) - 1, line.size());
  StringRef before = StringRef(line).take_front(first), marked = StringRef(line).substr(first);
  StringRef after = marked.substr(std::min<size_t>(place.width, marked.size()));
  os << "<pre>" << escaped(before.ltrim()) << "<mark>" << escaped(marked.drop_back(after.size()))
     << "</mark>" << escaped(after) << "</pre>\n";
}

static void printCauses(llvm::raw_ostream &os, llvm::ArrayRef<Finding> causes,
                        const CheckReportOptions &options) {
  for (const Finding &cause : causes) {
    os << "<p>" << escaped(cause.message) << ".</p>\n";
    printPlace(os, cause.op, options);
    if (!cause.notes.empty()) {
      os << "<ul>\n";
      for (const Remark &note : cause.notes) {
        Place place = note.op ? placeOf(note.op) : Place();
        os << "<li>" << escaped(note.message);
        if (place.isKnown())
          os << " <code class=\"soft\">" << escaped(text(place)) << "</code>";
        os << "</li>\n";
      }
      os << "</ul>\n";
    }
    if (!cause.advice.empty())
      os << "<p><b>Way out:</b> " << escaped(cause.advice) << ".</p>\n";
    printRuleOf(os, findRule(cause.rule));
  }
}

/// A kind of verdict, in its colour.
static void printKind(llvm::raw_ostream &os, VerdictKind kind, bool isSuccess) {
  os << "<span class=\"" << (isSuccess ? "good" : "bad") << "\">" << stringify(kind) << "</span>";
}

static Error printSection(llvm::raw_ostream &os, const VerdictGroup &group,
                          const CheckReportOptions &options) {
  const Verdict &verdict = *group.verdict;
  xf::BlockOp block = group.block;
  os << "<section>\n<h2>";
  if (!group.ops.empty())
    os << (group.layers.size() == 1 ? "Layer " : "Layers ") << formatRanges(group.layers)
       << ", block ";
  else
    os << "Block ";
  os << "<code>" << escaped(block.getSymName()) << "</code>: ";
  printKind(os, verdict.kind, verdict.isSuccess());
  os << "</h2>\n<div class=\"columns\"><div>\n";
  printCauses(os, verdict.causes, options);
  if (!verdict.remark.empty())
    os << "<p>" << escaped(verdict.remark) << ".</p>\n";
  if (!verdict.plan.isEmpty())
    printPlan(os, group);
  auto drawing = inlineDrawing(group);
  if (!drawing)
    return drawing.takeError();
  os << "</div><div class=\"drawing\" tabindex=\"0\" role=\"region\" aria-label=\"The drawing of "
        "block "
     << escaped(block.getSymName()) << "\">\n"
     << *drawing << "</div></div>\n</section>\n";
  return Error::success();
}

Error ctxc::writeCheckPage(StringRef path, StringRef model, llvm::ArrayRef<VerdictGroup> groups,
                           const CheckReportOptions &options) {
  std::string page;
  llvm::raw_string_ostream os(page);
  os << head << "<title>Verdicts: " << escaped(model) << "</title>\n</head>\n<body>\n<header><p "
     << "class=\"soft\">ctxc check</p>\n<h1>Can a context go into the weights of <code>"
     << escaped(model) << "</code>?</h1></header>\n<main>\n";
  size_t total = 0, good = 0;
  for (const VerdictGroup &group : groups) {
    total += group.layers.size();
    good += group.verdict->isSuccess() ? group.layers.size() : 0;
  }
  bool isModel = !groups.empty() && !groups.front().ops.empty();
  os << "<p>" << good << " of " << total << (isModel ? " layers" : " blocks")
     << " can take the context into their parameters.</p>\n";
  if (!options.notCompared.empty())
    os << "<p><b>Not compared with its source:</b> " << escaped(options.notCompared) << ".</p>\n";
  if (options.model && !options.model->causes.empty()) {
    os << "<section>\n<h2>The whole model: ";
    printKind(os, options.model->kind, options.model->isSuccess());
    os << "</h2>\n";
    printCauses(os, options.model->causes, options);
    os << "</section>\n";
  }
  for (const VerdictGroup &group : groups)
    if (Error error = printSection(os, group, options))
      return makeError(path + ": " + llvm::toString(std::move(error)));
  os << "</main>\n<footer><p>ctxc " CTXC_VERSION ". A patch is exact for one token at its position "
        "(<i>Equivalence of Context and Parameter Updates in Modern Transformer Blocks</i>, arXiv "
        "2511.17864).</p></footer>\n</body>\n</html>\n";
  return writeFileAtomically(path, [&](llvm::raw_pwrite_stream &file) {
    file << page;
    return Error::success();
  });
}
