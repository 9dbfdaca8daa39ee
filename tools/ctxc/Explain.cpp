// ctxc explain
#include "Commands.h"
#include "ctxc/Report/Rules.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Support/Suggestion.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::StringRef;

static std::string pathIn(StringRef folder, StringRef name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

/// Writes the pages. Pages whose text would not change are not written.
static llvm::Expected<int> writePages(StringRef folder) {
  if (std::error_code error = llvm::sys::fs::create_directories(folder))
    return makeError(folder + ": " + error.message());
  for (auto &[name, text] : rulePages())
    if (llvm::Error error =
            writeFileAtomically(pathIn(folder, name), [&text = text](llvm::raw_pwrite_stream &os) {
              os << text;
              return llvm::Error::success();
            }))
      return std::move(error);
  return ExitGood;
}

/// Reports every page that is missing, out of date, or belongs to no rule.
static llvm::Expected<int> checkPages(StringRef folder) {
  int code = ExitGood;
  auto complain = [&](StringRef name, StringRef what) {
    err() << printableLine(pathIn(folder, name)) << ": " << what << "; run `ctxc explain --pages "
          << printableLine(folder) << "`\n";
    code = ExitAgainst;
  };
  auto pages = rulePages();
  for (auto &[name, text] : pages) {
    llvm::Expected<std::string> found = readSmallFile(pathIn(folder, name), 1 << 20);
    if (!found)
      complain(name, "is missing");
    else if (*found != text)
      complain(name, "is out of date");
    llvm::consumeError(found.takeError());
  }
  std::error_code error;
  for (llvm::sys::fs::directory_iterator i(folder, error), end; i != end && !error;
       i.increment(error)) {
    StringRef name = llvm::sys::path::filename(i->path());
    if (llvm::none_of(pages, [&](auto &page) { return page.first == name; }))
      complain(name, "belongs to no rule");
  }
  return code;
}

static llvm::json::Object exampleJson(const Rule &rule, const RuleExample &example) {
  return llvm::json::Object{{"text", example.text.trim('\n')},
                            {"verdict", stringify(example.verdict)},
                            {"names", example.names.empty() ? rule.id : example.names},
                            {"options", example.options}};
}

static void printJson() {
  llvm::json::Array rules;
  for (const Rule &rule : allRules())
    rules.push_back(llvm::json::Object{{"id", rule.id},
                                       {"title", rule.title},
                                       {"kind", stringify(rule.kind)},
                                       {"lemma", rule.lemma},
                                       {"statement", rule.statement},
                                       {"help", rule.help},
                                       {"passes", exampleJson(rule, rule.passes)},
                                       {"fails", exampleJson(rule, rule.fails)}});
  printJson(std::move(rules));
}

static llvm::Expected<int> runExplain(const Arguments &arguments) {
  if (auto folder = arguments.get("--pages"))
    return writePages(*folder);
  if (auto folder = arguments.get("--check-pages"))
    return checkPages(*folder);
  if (arguments.get("--format", "text") == "json") {
    printJson();
    return ExitGood;
  }
  if (!arguments.count()) {
    printRules(out());
    return ExitGood;
  }
  StringRef id = arguments.positional(0);
  const Rule *rule = findRule(id);
  if (!rule) {
    std::vector<StringRef> ids;
    for (const Rule &known : allRules())
      ids.push_back(known.id);
    std::string hint = suggestion(id, ids);
    return makeError("explain: there is no rule '" + id + "'" +
                     (hint.empty() ? "; 'ctxc explain' lists them" : hint));
  }
  std::optional<StringRef> example = arguments.get("--example");
  if (!example)
    printRule(out(), *rule);
  else
    out() << (*example == "passes" ? rule->passes : rule->fails).text.ltrim('\n');
  return ExitGood;
}

Command driver::explainCommand() {
  Command command{
      "explain",
      "say what a rule means, in the paper's notation, with a block that passes and one that fails",
      {"[RULE]"},
      {
          {"--example",
           "WHICH",
           "print only the block that passes or the one that fails, to check it",
           {"passes", "fails"}},
          {"--format", "NAME", "text (default), or json: the whole table", {"text", "json"}},
          writesInto({"--pages", "DIR", "write the documentation's pages, one for each rule"}),
          reads({"--check-pages", "DIR", "list the pages that are missing or out of date"}),
      },
      "The rules are the theorems and lemmas that a verdict rests on, and the reasons that `ctxc\n"
      "check` gives: the word in brackets at the end of a diagnostic. Without RULE, the command\n"
      "lists all rules.",
      "  ctxc explain\n"
      "  ctxc explain bounded-output\n"
      "  ctxc explain bounded-output --example fails > block.mlir; ctxc check block.mlir\n",
      runExplain};
  return command;
}
