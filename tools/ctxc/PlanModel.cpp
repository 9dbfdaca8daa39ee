// Session::planBlocks: a verdict for every layer that is to be patched, and the
// program that is made of their plans.
#include "Session.h"
#include "Timer.h"
#include "ctxc/Analysis/Sites.h"
#include "ctxc/Evidence/Trial.h"
#include "ctxc/Evidence/Witness.h"
#include "ctxc/Planning/ModelCheck.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Transforms/BuildPatch.h"
#include "llvm/ADT/StringSet.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;

/// "mlp.gate_proj, mlp.up_proj; mlp.down_proj, post_feedforward_layernorm": F; G.
static std::string describe(const BlockPlan &plan) {
  auto shortName = [](mlir::Operation *op) {
    std::string name = Sites::name(op);
    llvm::StringRef text(name);
    text.consume_back(".weight");
    return text.str();
  };
  std::string text;
  for (mlir::Operation *op : plan.inputSites)
    text += (text.empty() ? "" : ", ") + shortName(op);
  if (!text.empty())
    text += "; ";
  std::string output;
  for (mlir::Operation *op : plan.patchedOps())
    if (plan.outputOf(op))
      output += (output.empty() ? "" : ", ") + shortName(op);
  return text + output;
}

/// Whether some block of the model ends in a scale that the updates differ in.
static bool updateApplies(mlir::ModuleOp module, const ModelOptions &options) {
  ModelOptions least = options;
  least.update = patch::UpdateKind::least;
  return llvm::any_of(checkModel(module, least), [](const LayerVerdict &layer) {
    return llvm::any_of(layer.verdict->plan.outputs,
                        [](const OutputPatch &output) { return output.normMatrix; });
  });
}

/// Whether a plan of the model splits a change over the experts of a mixture.
static bool splitApplies(mlir::ModuleOp module, const ModelOptions &options) {
  auto isChoice = [](const ChainLink &link) {
    return llvm::cast<xf::SolvableOpInterface>(link.op).isUnderdetermined(link.operand);
  };
  return llvm::any_of(checkModel(module, options), [&](const LayerVerdict &layer) {
    return llvm::any_of(layer.verdict->plan.outputs, [&](const OutputPatch &output) {
      return llvm::any_of(output.links, isChoice);
    });
  });
}

static int64_t countLayers(mlir::ModuleOp module) {
  int64_t layers = 0;
  module.walk([&](xf::LayerOp) { ++layers; });
  return layers;
}

ModelOptions Session::getModelOptions() const {
  ModelOptions modelOptions;
  modelOptions.startLayer = options.startLayer;
  modelOptions.update = *patch::symbolizeUpdateKind(options.update);
  modelOptions.scope = options.scope;
  modelOptions.split = options.split.value_or(xf::Split::Even);
  modelOptions.objective = options.objective;
  modelOptions.parameters = options.parameters;
  modelOptions.measure = [this](xf::BlockOp block, const PlanOptions &planOptions,
                                PlanCandidate &candidate) {
    return measure(block, planOptions, candidate);
  };
  modelOptions.refute = refuteByWitness;
  return modelOptions;
}

/// Norm and drift of a plan's patch on random activations: with the checkpoint's weights where
/// there are any, else random ones.
mlir::LogicalResult Session::measure(xf::BlockOp block, const PlanOptions &planOptions,
                                     PlanCandidate &candidate) const {
  TrialOptions trialOptions;
  trialOptions.inputsAreSources = planOptions.inputsAreSources;
  trialOptions.update = planOptions.update;
  trialOptions.layer = planOptions.layer;
  std::unique_ptr<Weights> stored;
  if (imported.checkpoint && planOptions.layer)
    stored = checkpointWeights(*imported.checkpoint);
  trialOptions.weights = stored.get();
  llvm::Expected<Trial> trial = tryPlan(block, candidate.plan, trialOptions);
  if (!trial) {
    mlir::emitWarning(block.getLoc(), "a plan could not be measured: ")
        << llvm::toString(trial.takeError());
    return mlir::failure();
  }
  candidate.cost.norm = trial->patchNorm;
  candidate.cost.drift = trial->drift;
  return mlir::success();
}

/// Completes the names of --plan ("mlp.up_proj" is its weight); every one is a parameter of
/// some block, and every block that can be patched at all has a plan of those it has.
Error Session::checkPlanNames() {
  llvm::StringSet<> known;
  std::vector<llvm::StringRef> candidates;
  module().walk([&](xf::ParamOp param) {
    if (param->getParentOfType<xf::BlockOp>() && known.insert(param.getName()).second)
      candidates.push_back(param.getName());
  });
  for (std::string &name : options.parameters)
    if (known.contains(name + ".weight"))
      name += ".weight";
    else if (!known.contains(name))
      return makeError("--plan: no block of " + path + " has a parameter '" + name + "'" +
                       suggestion(name, candidates));
  if (options.parameters.empty())
    return Error::success();
  for (const VerdictGroup &group : groupVerdicts(checkModel(module(), getModelOptions()))) {
    const Verdict &verdict = *group.verdict;
    if (verdict.isSuccess() || verdict.causes.front().op)
      continue;
    std::string text = "--plan: " + verdict.causes.front().message;
    for (const Remark &note : verdict.causes.front().notes)
      text += "; " + note.message;
    return makeError(text);
  }
  return Error::success();
}

Error Session::checkPlanOptions() {
  int64_t layers = countLayers(module());
  if (!layers && options.startLayer)
    return makeError("--start-layer: applies to models, and " + path + " has blocks alone");
  if (layers && options.startLayer >= layers)
    return makeError("--start-layer: found " + llvm::Twine(options.startLayer) +
                     ", expected a layer from 0 to " + llvm::Twine(layers - 1));
  if (Error error = checkPlanNames())
    return error;
  hasNormUpdate = updateApplies(module(), getModelOptions());
  if (options.updateGiven && !hasNormUpdate)
    return makeError("--update: applies to blocks that end in a trainable scale after an RMS norm "
                     "(Gemma's post-norms), and no block of " +
                     path + " does; leave it out");
  if (options.split && !splitApplies(module(), getModelOptions()))
    return makeError("--split: applies to plans that patch the experts of a mixture for its "
                     "output, and no plan of " +
                     path + " does; leave it out");
  return Error::success();
}

Error Session::planBlocks() {
  Timer timer(setup.plan);
  if (Error error = checkPlanOptions())
    return error;
  ModelOptions modelOptions = getModelOptions();
  std::vector<LayerVerdict> verdicts = checkModel(module(), modelOptions);
  bool against = false;
  for (const VerdictGroup &group : groupVerdicts(verdicts)) {
    against |= mlir::failed(emitVerdict(group));
    if (!group.verdict->isSuccess() || group.verdict->plan.isEmpty())
      continue;
    patchedLayers += group.layers.size();
    planText += (planText.empty() ? "" : "\n           ") +
                std::string(group.layers.size() == 1 ? "layer " : "layers ") +
                formatRanges(group.layers) + ": " + describe(group.verdict->plan);
  }
  if (against)
    return llvm::make_error<VerdictAgainst>();
  if (!patchedLayers)
    return makeError(path + ": no layer from " + llvm::Twine(options.startLayer) +
                     " on reads the context; there is nothing to patch");

  // Blocks without a model cannot be run, but what their patches are can be read.
  if (module().getOps<xf::ModelOp>().empty()) {
    if (mlir::failed(buildPatchBlocks(module(), modelOptions)))
      return makeError(path + ": cannot be patched; see the messages above");
    return Error::success();
  }
  auto planOf = [&](xf::LayerOp, xf::BlockOp, int64_t index) -> std::optional<BlockPlan> {
    for (const LayerVerdict &layer : verdicts)
      if (layer.layer == index && !layer.verdict->plan.isEmpty())
        return layer.verdict->plan;
    return std::nullopt;
  };
  mlir::FailureOr<Program> built = buildProgram(module(), planOf, modelOptions.update);
  if (mlir::failed(built))
    return makeError(path + ": cannot be made ready to run; see the messages above");
  program = std::move(*built);
  return Error::success();
}
