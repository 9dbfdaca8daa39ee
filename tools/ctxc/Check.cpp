// ctxc check
#include "CheckEvidence.h"
#include "Commands.h"
#include "Exported.h"
#include "ctxc/Evidence/JointVerdict.h"
#include "ctxc/Evidence/MakeProof.h"
#include "ctxc/Report/CheckPage.h"
#include "ctxc/Report/CheckReport.h"
#include "ctxc/Report/Graph.h"
#include "ctxc/Report/Sarif.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/ModelArguments.h"
#include "tools/CommandLine/Streams.h"
#include "tools/CommandLine/Values.h"

using namespace ctxc;
using namespace ctxc::driver;

static llvm::Error writeProof(llvm::StringRef path, Model &model,
                              llvm::ArrayRef<VerdictGroup> groups) {
  auto options = model.planning();
  if (!options)
    return options.takeError();
  auto proof = makeProof(model.module(), groups, *options);
  if (!proof)
    return proof.takeError();
  return writeFileAtomically(path, [&](llvm::raw_pwrite_stream &os) {
    proof::writeProof(*proof, os);
    return llvm::Error::success();
  });
}

/// Which files were written, and what they are.
static void sayWritten(const Arguments &arguments) {
  for (auto [flag, what] : {std::pair("--graph", "the blocks, drawn with their verdicts"),
                            {"--html", "a page of the verdicts"},
                            {"--proof", "what the verdicts rest on, for `ctxc check-proof`"}})
    if (auto path = arguments.get(flag))
      out() << *path << ": " << what << "\n";
}

/// Checks the model at `path`, which the caller calls `name`, and writes and prints what was found.
static llvm::Expected<int> check(const Arguments &arguments, llvm::StringRef path,
                                 llvm::StringRef name) {
  auto options = loadOptions(arguments);
  if (!options)
    return options.takeError();
  auto severities = Severities::parse(arguments.all("-W"));
  if (!severities)
    return severities.takeError();
  options->needWeights = false;
  auto model = openModel(path, std::move(*options));
  if (!model)
    return model.takeError();
  if (llvm::Error error = checkPlanArguments(arguments, **model))
    return std::move(error);
  auto verdicts = (*model)->check();
  if (!verdicts)
    return verdicts.takeError();
  std::vector<VerdictGroup> groups(verdicts->begin(), verdicts->end());
  if (groups.empty())
    return makeError(path + ": has no block that can be judged; expected at least one whose layer "
                            "is a part of the model");
  auto tokens = arguments.integer("--joint", 1, 1 << 20, 1);
  if (!tokens)
    return tokens.takeError();
  for (VerdictGroup &group : groups)
    judgeJointly(group, *tokens);
  auto whole = (*model)->judge(groups);
  if (!whole)
    return whole.takeError();
  auto evidence = CheckEvidence::gather(arguments, **model, groups);
  if (!evidence)
    return evidence.takeError();
  std::vector<GroupFinding> findings = collectFindings(groups, *severities);
  if (auto path = arguments.get("--graph"))
    if (llvm::Error error = writeGraph(*path, groups))
      return std::move(error);
  bool hasErrors =
      llvm::any_of(findings, [](const GroupFinding &f) { return f.severity == Severity::Error; });
  bool isPatchable = ctxc::isPatchable(groups) && (!*whole || (*whole)->isSuccess());
  ExitCode code = isPatchable && !hasErrors && evidence->isGood() ? ExitGood : ExitAgainst;

  CheckReportOptions shown;
  shown.model = *whole ? &**whole : nullptr;
  shown.plans = arguments.has("--plans");
  shown.notCompared = (*model)->notCompared();
  shown.lineOf = [&](const Place &place) { return (*model)->lineOf(place); };
  if (auto page = arguments.get("--html"))
    if (llvm::Error error = writeCheckPage(*page, name, groups, shown))
      return std::move(error);
  llvm::StringRef format = arguments.get("--format", "text");
  if (format == "json") {
    llvm::json::Value report = checkReportJson(groups, findings, shown);
    evidence->addTo(report);
    printJson(report);
  } else if (format == "sarif") {
    printJson(sarifLog(groups, findings, code, shown));
  } else {
    emitFindings(groups, findings);
    if (shown.model)
      (void)emitVerdict(*shown.model); // its causes are in the exit code
    printCheckReport(out(), groups, shown);
    evidence->print(out(), groups);
  }
  if (auto path = arguments.get("--proof"))
    if (llvm::Error error = writeProof(*path, **model, groups))
      return std::move(error);
  if (format == "text")
    sayWritten(arguments);
  return code;
}

static llvm::Error watch(const Arguments &arguments) {
  return watchFunction(arguments, [&](llvm::StringRef path) -> llvm::Error {
    char now[16];
    time_t seconds = time(nullptr);
    strftime(now, sizeof(now), "%H:%M:%S", localtime(&seconds));
    out() << "== " << arguments.positional(0) << " at " << now << "\n";
    auto code = check(arguments, path, arguments.positional(0));
    if (!code) // the next save may mend it
      reportError(code.takeError());
    out() << "\n";
    return llvm::Error::success();
  });
}

static llvm::Expected<int> runCheck(const Arguments &arguments) {
  if (auto file = arguments.get("--replay"))
    return replayWitnesses(*file);
  if (arguments.has("--joint"))
    for (llvm::StringRef option : {"--proof", "--witness", "--try"})
      if (arguments.has(option))
        return makeError(option + ": is about patches for one token; leave --joint out");
  if (arguments.has("--watch"))
    return watch(arguments);
  if (!isExported(arguments)) {
    if (arguments.has("--python"))
      return makeError("--python is for --transformers and for FILE.py:FUNCTION");
    return check(arguments, arguments.positional(0), arguments.positional(0));
  }
  auto exported = Exported::make(arguments);
  if (!exported)
    return exported.takeError();
  auto type = arguments.get("--transformers");
  return check(arguments, exported->path(), type ? *type : arguments.positional(0));
}

static std::vector<OptionSpec> options() {
  std::vector<OptionSpec> options = {
      {"--format",
       "NAME",
       "text (default), json, or sarif: SARIF 2.1.0, for editors and CI",
       {"text", "json", "sarif"}},
      writes({"--graph", "FILE",
              "draw the blocks with their verdicts: a .dot file, or an .svg drawn by graphviz"}),
      writes(
          {"--html", "FILE",
           "write a page with the verdicts, drawn blocks (needs graphviz), plans, costs, lemmas"}),
      writes({"--proof", "FILE",
              "write what each verdict rests on, as a proof (JSON) for `ctxc check-proof`"}),
      updateOption(),
      {"--start-layer", "L", "judge as if the layers before layer L (from 0) stay unpatched"},
      {"--plans", "", "list every plan of every block, with its cost"},
      {"--joint", "K", "judge whether one change of each layer can serve K tokens at once"},
  };
  OptionSpec warnings{"-W", "RULE",
                      "-WRULE turns a rule's warnings on, -Wno-RULE turns them off; -Werror makes\n"
                      "all warnings errors, -Werror=RULE those of one rule, -Wno-error=RULE not.\n"
                      "Rules: conditional-obligation, fragile-plan, output-only (off)"};
  warnings.joined = warnings.repeatable = true;
  options.push_back(warnings);
  llvm::append_range(options, exportOptions());
  llvm::append_range(options, planOptions());
  return options;
}

Command driver::checkCommand() {
  Command command{
      "check",
      "say for every block whether a patch can replace a context, and why",
      {"MODEL"},
      options(),
      "Each block is controllable (Theorem 3), output-only (an exact patch exists, and the MLP's\n"
      "internals differ), rejected (no patch can exist; the message says where, why and by which\n"
      "bound, and proposes a change) or undecided. Identical layers are shown once. Weights are\n"
      "not needed. The word in brackets at the end of a diagnostic is its rule:\n"
      "`ctxc explain RULE` explains it. MODEL may be FILE.py:FUNCTION, where FUNCTION returns a\n"
      "module of PyTorch, or a module and an example of its input: a Python exports it first. The\n"
      "exit code is 0 if every block is controllable or output-only, every plan was exact (with\n"
      "--try), and no warning is an error; otherwise 1.",
      "  ctxc check examples/models/gemma3-kjv-1m\n"
      "  ctxc check block.mlir --try\n"
      "  ctxc check rejected.mlir --witness=witness.json\n"
      "  ctxc check --replay witness.json\n"
      "  ctxc check --transformers qwen3\n"
      "  ctxc check mine.py:build; ctxc check --watch mine.py:build\n"
      "  ctxc check gemma-3-270m --format json\n"
      "  ctxc check block.mlir -Werror --format sarif > check.sarif\n"
      "  ctxc check block.mlir --graph block.svg --html block.html\n"
      "  ctxc check block.mlir --proof proof.json; ctxc check-proof block.mlir proof.json\n",
      runCheck};
  llvm::append_range(command.options, evidenceOptions());
  return command;
}
