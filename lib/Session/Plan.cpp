// The verdict on every layer that is to be patched, and the program that their plans give.
#include "Use.h"
#include "ctxc/Analysis/Sites.h"
#include "ctxc/Evidence/Trial.h"
#include "ctxc/Evidence/Witness.h"
#include "ctxc/Lowering/KernelEmitter.h"
#include "ctxc/Reference/Evaluation.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Suggestion.h"
#include "ctxc/Support/Timer.h"
#include "ctxc/Transforms/BuildPatch.h"
#include "ctxc/Transforms/BuildProgram.h"
#include "dialects/Graph/Graph.h"
#include "dialects/Kernel/IntegerProducts.h"
#include "llvm/ADT/StringSet.h"

using namespace ctxc;
using llvm::Error;
using llvm::Expected;

/// "mlp.gate_proj, mlp.up_proj; mlp.down_proj, post_feedforward_layernorm": F; G.
static std::string describePlan(const BlockPlan &plan) {
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

static int64_t countLayers(mlir::ModuleOp module) {
  int64_t layers = 0;
  module.walk([&](xf::LayerOp) { ++layers; });
  return layers;
}

/// Norm and drift of a plan's patch on random activations: with the checkpoint's weights where
/// there are any, else random ones.
mlir::LogicalResult Model::measure(xf::BlockOp block, const PlanOptions &planOptions,
                                   PlanCandidate &candidate) const {
  TrialOptions trialOptions;
  trialOptions.inputsAreSources = planOptions.inputsAreSources;
  trialOptions.update = planOptions.update;
  trialOptions.layer = planOptions.layer;
  std::unique_ptr<Weights> stored;
  if (modelCheckpoint && planOptions.layer)
    stored = checkpointWeights(*modelCheckpoint);
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

/// Completes the names of the parameters to patch ("mlp.up_proj" is its weight); every one is a
/// parameter of some block, and every block that can be patched has a plan with those of them it
/// has.
Error Model::completeNames(ModelOptions &options) const {
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
      return llvm::make_error<OptionError>(Option::Parameters,
                                           "no block of " + path + " has a parameter '" + name +
                                               "'" + suggestion(name, candidates));
  if (options.parameters.empty())
    return Error::success();
  for (const VerdictGroup &group : groupVerdicts(checkModel(module(), options))) {
    const Verdict &verdict = *group.verdict;
    if (verdict.isSuccess() || verdict.causes.front().op)
      continue;
    std::string text = verdict.causes.front().message;
    for (const Remark &note : verdict.causes.front().notes)
      text += "; " + note.message;
    return llvm::make_error<OptionError>(Option::Parameters, text);
  }
  return Error::success();
}

Expected<ModelOptions> Model::planning() {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  if (completed)
    return *completed;
  ModelOptions options = settings.planning;
  if (!options.measure)
    options.measure = [this](xf::BlockOp block, const PlanOptions &planOptions,
                             PlanCandidate &candidate) {
      return measure(block, planOptions, candidate);
    };
  if (!options.refute)
    options.refute = refuteByWitness;
  if (!options.confirm)
    options.confirm = remembered(confirmByTrial);
  int64_t layers = countLayers(module());
  if (!layers && options.startLayer)
    return llvm::make_error<OptionError>(Option::StartLayer,
                                         "applies to models, and " + path + " has blocks alone");
  if (layers && options.startLayer >= layers)
    return llvm::make_error<OptionError>(
        Option::StartLayer, "found " + llvm::Twine(options.startLayer) +
                                ", expected a layer from 0 to " + llvm::Twine(layers - 1));
  if (Error error = completeNames(options))
    return std::move(error);
  completed = options;
  return options;
}

Expected<std::vector<VerdictGroup>> Model::check() {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  Expected<ModelOptions> options = planning();
  if (!options)
    return options.takeError();
  return groupVerdicts(checkModel(module(), *options));
}

Expected<std::optional<ModelVerdict>> Model::judge(llvm::ArrayRef<VerdictGroup> groups) {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  return judgeModel(module(), groups, settings.planning.startLayer);
}

/// Whether some layer's plan has an output patch for which `holds` is true.
static bool anyOutput(mlir::ModuleOp module, const ModelOptions &options,
                      llvm::function_ref<bool(const OutputPatch &)> holds) {
  return llvm::any_of(checkModel(module, options), [&](const LayerVerdict &layer) {
    return llvm::any_of(layer.verdict->plan.outputs, holds);
  });
}

Expected<bool> Model::updatesDiffer() {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  Expected<ModelOptions> options = planning();
  if (!options)
    return options.takeError();
  if (!hasNormUpdate) {
    options->update = patch::UpdateKind::least;
    hasNormUpdate = anyOutput(
        module(), *options, [](const OutputPatch &output) { return output.normMatrix != nullptr; });
  }
  return *hasNormUpdate;
}

Expected<bool> Model::splitsMixtures() {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  Expected<ModelOptions> options = planning();
  if (!options)
    return options.takeError();
  return anyOutput(module(), *options, [](const OutputPatch &output) {
    return llvm::any_of(output.links, [](const ChainLink &link) {
      return llvm::cast<xf::SolvableOpInterface>(link.op).isUnderdetermined(link.operand);
    });
  });
}

/// Which plan each layer has, where its verdict is success.
static auto plansOf(llvm::ArrayRef<LayerVerdict> verdicts) {
  return [verdicts](xf::LayerOp, xf::BlockOp, int64_t index) -> std::optional<BlockPlan> {
    for (const LayerVerdict &layer : verdicts)
      if (layer.layer == index && layer.verdict->isSuccess() && !layer.verdict->plan.isEmpty() &&
          layer.verdict->plan.runs == 1)
        return layer.verdict->plan;
    return std::nullopt;
  };
}

Expected<Program> Model::programInAnyCase(mlir::OwningOpRef<mlir::ModuleOp> &copy) {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  Expected<ModelOptions> options = planning();
  if (!options)
    return options.takeError();
  if (module().getOps<xf::ModelOp>().empty())
    return makeError(path + ": has blocks and no xf.model; expected a model");
  copy = module().clone();
  const std::vector<LayerVerdict> verdicts = checkModel(*copy, *options);
  mlir::FailureOr<Program> built = buildProgram(*copy, plansOf(verdicts), options->update);
  if (mlir::failed(built))
    return withDiagnostics(
        makeError(path + ": cannot be made ready to run; see the messages above"));
  return *built;
}

Error Model::plan() {
  Expected<ModelOptions> options = planning();
  if (!options)
    return options.takeError();
  Timer timer(setup.plan);
  mlir::OwningOpRef<mlir::ModuleOp> copy(module().clone());
  std::vector<LayerVerdict> verdicts = checkModel(*copy, *options);
  bool against = false;
  std::string text;
  int64_t layers = 0;
  std::vector<VerdictGroup> groups = groupVerdicts(verdicts);
  for (const VerdictGroup &group : groups) {
    against |= mlir::failed(emitVerdict(group));
    if (!group.verdict->isSuccess() || group.verdict->plan.isEmpty())
      continue;
    if (group.verdict->plan.runs > 1 && onlyJoint.empty())
      onlyJoint =
          "layers " + formatRanges(group.layers) +
          " run several times with the same parameters, so that the patch of one token has a "
          "rank for each run; expected one patch for a whole text, which may be of one token "
          "(docs/joint.md)";
    layers += group.layers.size();
    text += (text.empty() ? "" : "\n           ") +
            std::string(group.layers.size() == 1 ? "layer " : "layers ") +
            formatRanges(group.layers) + ": " + describePlan(group.verdict->plan);
  }
  if (auto verdict = judgeModel(*copy, groups, options->startLayer))
    against |= mlir::failed(emitVerdict(*verdict));
  if (against)
    return llvm::make_error<VerdictAgainst>(takeErrorTexts());
  if (!layers)
    return makeError(path + ": no layer from " + llvm::Twine(options->startLayer) +
                     " on reads the context; there is nothing to patch");

  // Blocks without a model cannot be run, but their dual and applied blocks can be read.
  if (copy->getOps<xf::ModelOp>().empty()) {
    if (mlir::failed(buildPatchBlocks(*copy, *options)))
      return makeError(path + ": cannot be patched; see the messages above");
  } else {
    if (settings.integerProducts)
      kernel::markIntegerProducts(*copy);
    if (settings.roundedCache)
      kernel::markRoundedStates(*copy);
    mlir::FailureOr<Program> built = buildProgram(*copy, plansOf(verdicts), options->update);
    if (mlir::failed(built))
      return makeError(path + ": cannot be made ready to run; see the messages above");
    runnable = std::move(*built);
  }
  planned = std::move(copy);
  planText = std::move(text);
  patchedLayers = layers;
  return Error::success();
}

Expected<const Program &> Model::program() {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  if (!planned)
    if (Error error = plan())
      return withDiagnostics(std::move(error));
  return runnable;
}

Expected<mlir::ModuleOp> Model::plannedModule() {
  Expected<const Program &> program = this->program();
  if (!program)
    return program.takeError();
  return *planned;
}

llvm::StringRef ctxc::obstacleOf(mlir::Operation &op) {
  if (auto why = op.getAttrOfType<mlir::StringAttr>(graph::FunctionOp::whyName))
    return why.getValue();
  auto opaque = llvm::dyn_cast<graph::OpaqueOp>(op);
  return opaque ? opaque.getTarget() : "";
}

Error Model::checkNumerics() {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  return checkNumerics(module());
}

Error Model::checkNumerics(mlir::ModuleOp module) {
  if (module.getOps<xf::ModelOp>().empty())
    return Error::success(); // nothing runs
  llvm::StringSet<> told;
  bool isOfProgram = false;
  auto check = [&](mlir::Operation &op) {
    if (llvm::isa<reference::ReferenceOpInterface, LinalgLoweringOpInterface>(op) ||
        graph::FunctionOp::ofOp(&op))
      return;
    // What stands for the numbers of another such op adds nothing to be known.
    if (llvm::isa<graph::OpaqueOp>(op) && op.getNumOperands() == 1 &&
        op.getOperand(0).getDefiningOp<xf::OpaqueContextualOp>())
      return;
    llvm::StringRef obstacle = obstacleOf(op);
    isOfProgram |= !obstacle.empty();
    auto opaque = llvm::dyn_cast<xf::OpaqueContextualOp>(op);
    std::string kind = opaque ? (" \"" + opaque.getName() + "\"").str() : "";
    if (!told.insert((op.getName().getStringRef() + kind + obstacle).str()).second)
      return;
    mlir::InFlightDiagnostic error =
        mlir::emitError(op.getLoc())
        << "'" << op.getName() << "'" << kind
        << " has no numerics: it is known to the analyses, and nothing computes it";
    if (!obstacle.empty())
      error.attachNote() << "xf has no op for it because of: " << obstacle;
  };
  module.walk([&](xf::BlockOp block) {
    llvm::for_each(block.getBody().front().without_terminator(), check);
  });
  module.walk([&](graph::OpaqueOp op) {
    if (llvm::isa<xf::ModelOp>(op->getParentOp()))
      check(*op);
  });
  if (told.empty())
    return Error::success();
  std::string wayOut = "\nnote: its numbers are in the exported program: python -m ctxc.export " +
                       path + " -o model.ctxc, and then model.ctxc with the weights of " + path;
  return withDiagnostics(
      makeError(path +
                ": cannot be run: it has ops without numerics; see the messages above. A "
                "check needs none, and tells which parameters can take the context" +
                (isOfProgram ? wayOut : "")));
}
