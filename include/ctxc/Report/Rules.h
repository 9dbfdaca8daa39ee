//===- Rules.h - what each rule of a check means ---------------------------===//
//
// Every theorem, lemma and reason that a verdict can name has a page in docs/rules, with its
// statement in the paper's notation and two small blocks: one that passes and one that
// fails. The pages are a part of the library; `ctxc explain` and the rules of a SARIF log are
// printed from them; a test checks every block for its verdict.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_REPORT_RULES_H
#define CTXC_REPORT_RULES_H

#include "ctxc/Planning/ModelCheck.h"
#include "llvm/Support/raw_ostream.h"

namespace ctxc {

enum class RuleKind {
  Theorem,   ///< of the paper
  Lemma,     ///< of the paper
  Extension, ///< exact, and not in the paper
  Rejection, ///< a reason why no patch can exist
  Undecided, ///< a reason why neither is shown
  Warning    ///< about a plan that exists
};
llvm::StringRef stringify(RuleKind kind);

/// A block, or a model, in the dialect.
struct RuleExample {
  llvm::StringRef text;
  VerdictKind verdict;
  llvm::StringRef names = "";   ///< the rule that the verdict names; empty: the example's own
  llvm::StringRef options = ""; ///< for `ctxc check`, such as "--sites all"
};

struct Rule {
  llvm::StringRef group; ///< what the rules of a kind have in common
  llvm::StringRef id;    ///< stable; RuleIds.h for those that findings name
  llvm::StringRef title;
  RuleKind kind;
  llvm::StringRef lemma;     ///< the name that ops use (AssignableOpInterface::getLemma), or empty
  llvm::StringRef statement; ///< in the paper's notation, may have several lines
  llvm::StringRef help;      ///< when it matters and what to do; a blank line between paragraphs
  RuleExample passes, fails;
};

/// In the order of docs/rules/README.md.
llvm::ArrayRef<Rule> allRules();
/// Null if there is none.
const Rule *findRule(llvm::StringRef id);
const Rule *findRuleOfLemma(llvm::StringRef lemma);
/// The rule that a success as a whole rests on: unified, parallel-block (F = ∅), one-patch-block
/// (only the output) or nothing-to-absorb (no plan is needed); null if the verdict is no success.
const Rule *findTheorem(const Verdict &verdict);

/// `ctxc explain`: one line for each rule, in groups.
void printRules(llvm::raw_ostream &os);
/// `ctxc explain RULE`.
void printRule(llvm::raw_ostream &os, const Rule &rule);

/// README.md, and a page for each rule ("bounded-output.md"), as files that ctxc writes.
std::vector<std::pair<std::string, std::string>> rulePages();

} // namespace ctxc

#endif // CTXC_REPORT_RULES_H
