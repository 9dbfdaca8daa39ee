// ctxc check
#include "CheckEvidence.h"
#include "Commands.h"
#include "Session.h"
#include "ctxc/Report/CheckReport.h"
#include "llvm/Support/FormatVariadic.h"

using namespace ctxc;
using namespace ctxc::driver;

static llvm::Expected<int> run(const Arguments &arguments) {
  if (auto file = arguments.get("--replay"))
    return replayWitnesses(*file);
  auto options = RunOptions::parse(arguments);
  if (!options)
    return options.takeError();
  auto session = Session::plan(arguments.positional(0), std::move(*options), /*needWeights=*/false,
                               /*planned=*/false);
  if (!session)
    return session.takeError();
  if (llvm::Error error = (*session)->checkPlanOptions())
    return std::move(error);
  auto groups = groupVerdicts(checkModel((*session)->module(), (*session)->getModelOptions()));
  auto evidence = CheckEvidence::gather(arguments, **session, groups);
  if (!evidence)
    return evidence.takeError();
  CheckReportOptions shown;
  shown.plans = arguments.has("--plans");
  if (arguments.get("--format", "text") == "json") {
    llvm::json::Value report = checkReportJson(groups, shown);
    evidence->addTo(report);
    llvm::outs() << llvm::formatv("{0:2}\n", report);
  } else {
    for (const VerdictGroup &group : groups)
      (void)emitVerdict(group); // the verdict is isPatchable's, below
    printCheckReport(llvm::outs(), groups, shown);
    evidence->print(llvm::outs(), groups);
  }
  return isPatchable(groups) && evidence->isGood() ? ExitGood : ExitAgainst;
}

static std::vector<OptionSpec> options() {
  std::vector<OptionSpec> options = {
      {"--format", "NAME", "text (default) or json", {"text", "json"}},
      {"--update",
       "NAME",
       "least (default), balanced, naive, stable, scaled",
       {"least", "balanced", "naive", "stable", "scaled"}},
      {"--start-layer", "L", "judge as if the layers before layer L (from 0) stay unpatched"},
      {"--plans", "", "list every plan of every block, with its cost"},
  };
  llvm::append_range(options, planOptions());
  return options;
}

Command driver::checkCommand() {
  Command command{
      "check",
      "say of every block whether a context can become a patch of it, and why",
      {"MODEL"},
      options(),
      "Each block is controllable (Theorem 3), output-only (an exact patch exists, and the MLP's\n"
      "internals differ), rejected (an impossibility is shown: where, why, by which bound, and a\n"
      "way out) or undecided. Identical layers are shown once. Weights are not needed. Exit code "
      "0\n"
      "when every block is controllable or output-only (and with --try exact), 1 when one is not.",
      "  ctxc check examples/models/gemma3-kjv-1m\n"
      "  ctxc check block.mlir --try\n"
      "  ctxc check rejected.mlir --witness=witness.json\n"
      "  ctxc check --replay witness.json\n"
      "  ctxc check gemma-3-270m --format json\n",
      run};
  llvm::append_range(command.options, evidenceOptions());
  return command;
}
