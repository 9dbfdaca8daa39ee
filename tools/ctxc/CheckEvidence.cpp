#include "CheckEvidence.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;
using namespace ctxc::driver;

OptionSpec driver::tryOption() {
  OptionSpec option;
  option.name = "--try";
  option.value = "SEED";
  option.help = "run each plan in the reference, on the model's weights where it has any, else\n"
                "on random ones, and on random activations; SEED is 1 by default";
  option.valueOptional = true;
  return option;
}

llvm::Expected<CheckEvidence> CheckEvidence::gather(const Arguments &arguments, Session &session,
                                                    llvm::ArrayRef<VerdictGroup> groups) {
  CheckEvidence evidence;
  evidence.trials.resize(groups.size());
  std::optional<llvm::StringRef> text = arguments.get("--try");
  if (!text)
    return evidence;
  if (!text->empty() && text->getAsInteger(10, evidence.seed))
    return makeError("--try: found '" + *text + "', expected a seed, a number from 0 on");

  std::unique_ptr<Weights> weights;
  if (Checkpoint *checkpoint = session.checkpoint())
    weights = checkpointWeights(*checkpoint);
  evidence.weights = weights ? "the model's weights" : "random weights";
  for (auto [group, result] : llvm::zip_equal(groups, evidence.trials)) {
    if (!group.verdict->isSuccess())
      continue;
    TrialOptions options;
    options.seed = evidence.seed;
    options.weights = weights.get();
    options.layer = group.ops.empty() ? xf::LayerOp() : group.ops.front();
    options.inputsAreSources = group.options->inputsAreSources;
    options.update = group.options->update;
    auto trial = tryPlan(group.block, group.verdict->plan, options);
    if (trial)
      result = GroupTrial{*trial, ""};
    else
      result = GroupTrial{{}, llvm::toString(trial.takeError())};
  }
  return evidence;
}

void CheckEvidence::addTo(llvm::json::Value &report) const {
  llvm::json::Array *groups = report.getAsObject()->getArray("groups");
  for (auto [group, result] : llvm::zip_equal(*groups, trials)) {
    if (!result)
      continue;
    llvm::json::Object trial = trialJson(result->trial);
    if (!result->failure.empty())
      trial = llvm::json::Object{{"failure", result->failure}};
    trial["seed"] = int64_t(seed);
    group.getAsObject()->insert({"trial", std::move(trial)});
  }
}

void CheckEvidence::print(llvm::raw_ostream &os, llvm::ArrayRef<VerdictGroup> groups) const {
  if (llvm::none_of(trials, [](const auto &result) { return result.has_value(); }))
    return;
  os << "\ntried on " << weights << ", seed " << seed << ":\n";
  for (auto [constGroup, result] : llvm::zip_equal(groups, trials)) {
    if (!result)
      continue;
    xf::BlockOp block = constGroup.block;
    os << "  block '" << block.getSymName() << "'";
    if (!constGroup.ops.empty())
      os << ", layer " << constGroup.layers.front();
    if (!result->failure.empty())
      os << ": no numbers: " << result->failure << "\n";
    else
      os << ": " << (result->trial.isExact() ? "exact" : "NOT EXACT") << "\n    "
         << trialText(result->trial) << "\n";
  }
}

bool CheckEvidence::isGood() const {
  return llvm::all_of(trials, [](const auto &result) {
    return !result || (result->failure.empty() && result->trial.isExact());
  });
}
