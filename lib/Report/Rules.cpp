// The table of rules as a whole, and how it is shown.
#include "ctxc/Report/Rules.h"
#include "RuleTable.h"
#include "ctxc/Support/OwnFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace ctxc;
using llvm::StringRef;

StringRef ctxc::stringify(RuleKind kind) {
  switch (kind) {
  case RuleKind::Theorem:
    return "theorem";
  case RuleKind::Lemma:
    return "lemma";
  case RuleKind::Extension:
    return "extension";
  case RuleKind::Rejection:
    return "rejection";
  case RuleKind::Undecided:
    return "undecided";
  case RuleKind::Warning:
    return "warning";
  }
  llvm_unreachable("a rule of no known kind");
}

/// What the rules of a kind have in common.
static StringRef heading(RuleKind kind) {
  switch (kind) {
  case RuleKind::Theorem:
    return "Theorems of the paper";
  case RuleKind::Lemma:
    return "Lemmas of the paper: what one parameter can absorb";
  case RuleKind::Extension:
    return "Extensions: exact too, and not in the paper";
  case RuleKind::Rejection:
    return "Rejected: why no patch can exist";
  case RuleKind::Undecided:
    return "Undecided: why neither is shown";
  case RuleKind::Warning:
    return "Warnings: what a plan has to be watched for";
  }
  llvm_unreachable("a rule of no known kind");
}

llvm::ArrayRef<Rule> ctxc::allRules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> rules;
    for (llvm::ArrayRef<Rule> part :
         {theoremRules(), lemmaRules(), extensionRules(), rejectionRules(), planRules()})
      llvm::append_range(rules, part);
    return rules;
  }();
  return all;
}

const Rule *ctxc::findRule(StringRef id) {
  auto found = llvm::find_if(allRules(), [&](const Rule &rule) { return rule.id == id; });
  return found == allRules().end() ? nullptr : &*found;
}

const Rule *ctxc::findRuleOfLemma(StringRef lemma) {
  auto found = llvm::find_if(
      allRules(), [&](const Rule &rule) { return !lemma.empty() && rule.lemma == lemma; });
  return found == allRules().end() ? nullptr : &*found;
}

const Rule *ctxc::findTheorem(const Verdict &verdict) {
  if (!verdict.isSuccess())
    return nullptr;
  if (verdict.plan.isEmpty())
    return findRule("nothing-to-absorb");
  if (verdict.kind == VerdictKind::OutputOnly)
    return findRule("one-patch-block");
  return findRule(verdict.plan.inputSites.empty() ? "parallel-block" : "unified");
}

//===----------------------------------------------------------------------===//
// ctxc explain
//===----------------------------------------------------------------------===//

void ctxc::printRules(llvm::raw_ostream &os) {
  std::optional<RuleKind> kind;
  for (const Rule &rule : allRules()) {
    if (kind != rule.kind)
      os << (kind ? "\n" : "") << heading(rule.kind) << "\n";
    kind = rule.kind;
    os << "  " << llvm::left_justify(rule.id, 24) << rule.title << "\n";
  }
  os << "\n'ctxc explain RULE' says what a rule means, with a block that passes and one that "
        "fails\n";
}

/// Paragraphs of `text` in lines of at most 96 columns.
static void printParagraphs(llvm::raw_ostream &os, StringRef text) {
  constexpr size_t width = 96;
  llvm::SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines) {
    size_t column = 0;
    llvm::SmallVector<StringRef> words;
    line.split(words, ' ');
    for (StringRef word : words) {
      if (column && column + 1 + word.size() > width) {
        os << "\n";
        column = 0;
      }
      os << (column ? " " : "") << word;
      column += (column ? 1 : 0) + word.size();
    }
    os << "\n";
  }
}

static void printExample(llvm::raw_ostream &os, StringRef label, const RuleExample &example) {
  os << "\n" << label << ": " << stringify(example.verdict);
  if (!example.options.empty())
    os << ", with " << example.options;
  os << "\n\n";
  llvm::SmallVector<StringRef> lines;
  example.text.trim('\n').split(lines, '\n');
  for (StringRef line : lines)
    os << "  " << line << "\n";
}

void ctxc::printRule(llvm::raw_ostream &os, const Rule &rule) {
  os << rule.id << ": " << rule.title << " (" << stringify(rule.kind) << ")\n\n";
  llvm::SmallVector<StringRef> lines;
  rule.statement.split(lines, '\n');
  for (StringRef line : lines)
    os << "  " << line << "\n";
  os << "\n";
  printParagraphs(os, rule.help);
  printExample(os, "passes", rule.passes);
  printExample(os, "fails", rule.fails);
}

//===----------------------------------------------------------------------===//
// docs/rules
//===----------------------------------------------------------------------===//

static void writeExample(llvm::raw_ostream &os, StringRef which, const Rule &rule,
                         const RuleExample &example) {
  os << "\n## A block that " << which << "\n\n`ctxc check` says *" << stringify(example.verdict)
     << "*";
  if (!example.options.empty())
    os << " with `" << example.options << "`";
  StringRef names = example.names.empty() ? rule.id : example.names;
  if (names != rule.id)
    os << ", by [" << names << "](" << names << ".md)";
  os << ".\n\n```mlir\n" << example.text.trim('\n') << "\n```\n";
}

static std::string rulePage(const Rule &rule) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "# " << rule.title << "\n\nRule `" << rule.id << "` (" << stringify(rule.kind)
     << "), as `ctxc explain " << rule.id << "` prints it. [All rules](README.md)\n\n```text\n"
     << rule.statement << "\n```\n\n"
     << rule.help << "\n";
  writeExample(os, "passes", rule, rule.passes);
  writeExample(os, "fails", rule, rule.fails);
  return text;
}

std::vector<std::pair<std::string, std::string>> ctxc::rulePages() {
  std::vector<std::pair<std::string, std::string>> pages;
  std::string index;
  llvm::raw_string_ostream os(index);
  os << "# Rules\n\nWhat a verdict rests on, and what `ctxc check` can say. Made from the table in "
        "`lib/Report`\nby `ctxc explain --pages docs/rules`; do not edit.\n";
  std::optional<RuleKind> kind;
  for (const Rule &rule : allRules()) {
    if (kind != rule.kind)
      os << "\n## " << heading(rule.kind) << "\n\n";
    kind = rule.kind;
    os << "- [`" << rule.id << "`](" << rule.id << ".md): " << rule.title << "\n";
    pages.emplace_back(rule.id.str() + ".md", rulePage(rule));
  }
  pages.emplace(pages.begin(), "README.md", index);
  for (auto &[name, text] : pages)
    text.insert(0, ("<!-- " + ownMark + " explain --pages. -->\n\n").str());
  return pages;
}
