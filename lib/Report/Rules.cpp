// The rules, as the pages of docs/rules have them, and how they are shown.
#include "ctxc/Report/Rules.h"
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

/// The pages of docs/rules, which are a part of the library.
static constexpr struct {
  StringRef name, text;
} pages[] = {
#include "RulePages.inc"
};

namespace {

/// What of a page is still to be read.
class Page {
public:
  explicit Page(const llvm::Twine &file) : name(file.str()) {
    for (auto &page : pages)
      if (page.name == name)
        rest = page.text;
  }

  bool readsPast(StringRef text) { return rest.consume_front(text); }
  void past(const llvm::Twine &text) {
    if (!readsPast(text.str()))
      stop(text);
  }
  /// What stands before `mark`; reading goes on behind it.
  StringRef until(const llvm::Twine &mark) {
    std::string text = mark.str();
    size_t at = rest.find(text);
    if (at == StringRef::npos)
      stop(mark);
    StringRef found = rest.take_front(at);
    rest = rest.drop_front(at + text.size());
    return found;
  }
  /// The kind of this name, of those up to `last`.
  template <typename Kind> Kind named(StringRef found, Kind last) {
    for (int i = 0; i <= int(last); ++i)
      if (stringify(Kind(i)) == found)
        return Kind(i);
    stop("a kind in place of '" + found + "'");
  }
  bool isAtEnd() const { return rest.empty(); }
  [[noreturn]] void stop(const llvm::Twine &expected) {
    llvm::reportFatalInternalError("docs/rules/" + name + ".md: expected " + expected +
                                   ", found '" + rest.take_front(60) + "'");
  }

private:
  std::string name;
  StringRef rest;
};

} // namespace

static RuleExample readExample(Page &page) {
  page.past("`ctxc check` says *");
  RuleExample example{{}, page.named(page.until("*"), VerdictKind::Undecided)};
  if (page.readsPast(" with `"))
    example.options = page.until("`");
  if (page.readsPast(", by [")) {
    example.names = page.until("](");
    page.past(example.names + ".md)");
  }
  page.past(".\n\n```mlir\n");
  example.text = page.until("```\n");
  return example;
}

static Rule readRule(StringRef group, StringRef id, StringRef title) {
  Page page(id);
  Rule rule;
  rule.group = group;
  rule.id = id;
  rule.title = title;
  page.past("# " + title + "\n\nRule `" + id + "` (");
  auto [kind, lemma] = page.until("), as `ctxc explain " + id + "` prints it. ").split("; ");
  rule.kind = page.named(kind, RuleKind::Warning);
  if (lemma.consume_front("reports say *"))
    rule.lemma = lemma.drop_back();
  page.past("[All rules](README.md)\n\n```text\n");
  rule.statement = page.until("\n```\n\n");
  rule.help = page.until("\n\n## A block that passes\n\n");
  rule.passes = readExample(page);
  page.past("\n## A block that fails\n\n");
  rule.fails = readExample(page);
  if (!page.isAtEnd())
    page.stop("its end");
  return rule;
}

llvm::ArrayRef<Rule> ctxc::allRules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> rules;
    Page index("README");
    index.until("\n## ");
    while (!index.isAtEnd()) {
      StringRef group = index.until("\n\n");
      while (index.readsPast("- [`")) {
        StringRef id = index.until("`](");
        index.past(id + ".md): ");
        rules.push_back(readRule(group, id, index.until("\n")));
      }
      if (!index.isAtEnd())
        index.past("\n## ");
    }
    if (rules.size() + 1 != std::size(pages))
      index.stop("a line for each page");
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
  StringRef group;
  for (const Rule &rule : allRules()) {
    if (group != rule.group)
      os << (group.empty() ? "" : "\n") << rule.group << "\n";
    group = rule.group;
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

std::vector<std::pair<std::string, std::string>> ctxc::rulePages() {
  std::vector<std::pair<std::string, std::string>> written;
  for (auto &page : pages)
    written.emplace_back((page.name + ".md").str(),
                         ("<!-- " + ownMark + " explain --pages. -->\n\n" + page.text).str());
  return written;
}
