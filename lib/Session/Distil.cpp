// A context as a lasting change of the weights.
#include "Use.h"
#include "ctxc/Distil/Joint.h"
#include "ctxc/Distil/Prefix.h"
#include "ctxc/Export/LastingAdapter.h"
#include "ctxc/Import/Import.h"
#include "ctxc/Planning/ModelCheck.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Timer.h"
#include "ctxc/Transforms/BuildProgram.h"

using namespace ctxc;
using llvm::Error;
using llvm::Expected;

/// `sites` without experts that an adapter's files have no name for.
static llvm::SmallVector<FitSite> nameableSites(xf::LayerOp layer, const Checkpoint *from,
                                                llvm::SmallVector<FitSite> sites) {
  if (from && namesParametersAlone(*from))
    return sites;
  llvm::erase_if(sites, [&](const FitSite &site) {
    auto experts = mlir::dyn_cast<xf::ExpertLinearOp>(site.first());
    auto bank = experts ? experts.getBank().getDefiningOp<xf::ParamOp>() : xf::ParamOp();
    return bank && !hasExpertName(layer.getStoredName(bank.getName()));
  });
  return sites;
}

/// Splits a copy of the module, and makes what runs its steps. `isAddedTo`: changes are added to
/// the weights, not kept beside them, which is done on this processor alone.
Expected<SplitModel> Model::splitModel(bool isAddedTo) {
  Expected<Weights &> numbers = weights();
  if (!numbers)
    return numbers.takeError();
  mlir::Operation *part = opWithoutKernels(module(), isText() && isProgramFile(path));
  if (part && settings.engine == Engine::Reference) {
    mlir::InFlightDiagnostic error =
        mlir::emitError(part->getLoc())
        << "has no kernels, by which alone a model is run in single steps";
    if (llvm::StringRef obstacle = obstacleOf(*part); !obstacle.empty())
      error.attachNote() << "xf has no op for it because of: " << obstacle;
    error.report();
    return makeError(path + ": cannot be split into its matrices; see the messages above");
  }
  if (settings.engine == Engine::Reference)
    return llvm::make_error<OptionError>(Option::Engine,
                                         "the reference runs no single steps of a model; leave it "
                                         "out");
  const bool isElsewhere = settings.engine != Engine::Compiled || settings.ranks;
  if (isAddedTo && isElsewhere)
    return llvm::make_error<OptionError>(Option::Engine,
                                         "a context is distilled by compiled kernels, in one "
                                         "process on this processor; leave it out");
  if (isAddedTo && storageType != DType::F32 && isText())
    return makeError(path + ": found weights in " + storage() +
                     ", expected f32, to which changes are added; export it with parameters in "
                     "float32");
  if (isAddedTo && storageType != DType::F32)
    return llvm::make_error<OptionError>(Option::Storage, "found weights in " + storage() +
                                                              ", expected f32, to which the "
                                                              "changes are added");
  if (split)
    return SplitModel{split->program, *split->steps, *split->targets, *numbers};
  if (Error error = checkNumerics())
    return std::move(error);
  auto made = std::make_unique<Split>();
  made->module = module().clone();
  ModelOptions options;
  options.scope = SiteScope::All;
  options.frozen = settings.planning.frozen;
  std::vector<LayerVerdict> verdicts = checkModel(*made->module, options);
  mlir::FailureOr<Program> program = buildProgram(
      *made->module, [](xf::LayerOp, xf::BlockOp, int64_t) { return std::nullopt; },
      options.update);
  if (mlir::failed(program))
    return makeError(path + ": cannot be made ready to run; see the messages above");
  auto sites = [&](xf::LayerOp layer, xf::BlockOp, int64_t index) {
    for (const LayerVerdict &verdict : verdicts)
      if (verdict.layer == index)
        return nameableSites(layer, checkpoint(), findFitSites(verdict));
    return llvm::SmallVector<FitSite>();
  };
  mlir::FailureOr<SplitProgram> pieces = splitLayers(*program, sites);
  if (mlir::failed(pieces))
    return makeError(path + ": cannot be split into its matrices; see the messages above");
  made->program = std::move(*pieces);

  CompiledOptions compiled;
  compiled.threads = settings.threads;
  compiled.parallelFor = settings.parallelFor;
  compiled.isCancelled = settings.interrupt;
  if (isElsewhere) {
    auto executor = makeExecutor(settings.engine, made->program.program, *numbers,
                                 /*hasPieces=*/true);
    if (!executor)
      return executor.takeError();
    (*executor)->setInterrupt(settings.interrupt);
    made->elsewhere = executor->get();
    made->steps =
        std::make_unique<StepKernels>(made->program.program, std::move(*executor), compiled);
  }
  Timer timer(setup.compile);
  for (auto [parts, kernels] : {std::pair(&made->program.program, &made->steps),
                                std::pair(&made->program.targets, &made->targets)}) {
    if (*kernels)
      continue;
    if (Error error = StepKernels::compile(*parts, *numbers, compiled).moveInto(*kernels))
      return std::move(error);
  }
  split = std::move(made);
  return SplitModel{split->program, *split->steps, *split->targets, *numbers};
}

/// What every use of the split model begins with.
template <typename Function>
auto Model::withSplit(Function function, bool isAddedTo)
    -> decltype(function(std::declval<SplitModel>())) {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  Expected<SplitModel> model = splitModel(isAddedTo);
  if (!model)
    return withDiagnostics(model.takeError());
  return function(*model);
}

Expected<Distilled> Model::distil(const DistilRequest &request) {
  return withSplit([&](SplitModel model) {
    size_t longest = 0;
    auto see = [&](size_t context, llvm::ArrayRef<TextSequence> texts) {
      for (const TextSequence &text : texts)
        longest = std::max(longest, context + text.tokens.size());
    };
    see(request.context.size(), request.texts);
    for (const OtherContext &other : request.others)
      see(other.context.size(), other.texts);
    warnOfLength(longest);
    return ctxc::distil(model, request);
  });
}

/// The longest of some texts behind their context.
template <typename Request> static size_t longestOf(const Request &request) {
  size_t longest = 0;
  for (const TextSequence &text : request.texts)
    longest = std::max(longest, request.context.size() + text.tokens.size());
  return longest;
}

Expected<JointPatch> Model::patchJointly(const JointRequest &request) {
  return withSplit(
      [&](SplitModel model) {
        warnOfLength(longestOf(request));
        return ctxc::patchJointly(model, request);
      },
      /*isAddedTo=*/false);
}

Expected<JointCheck> Model::checkJointly(const Adapter &adapter, const JointRequest &request) {
  return withSplit([&](SplitModel model) { return ctxc::checkJointly(model, adapter, request); },
                   /*isAddedTo=*/false);
}

Expected<JointVerification> Model::verifyJointly(const JointRequest &request, int64_t count,
                                                 StepObserver observe) {
  return withSplit(
      [&](SplitModel model) {
        warnOfLength(longestOf(request) + count - 1);
        return ctxc::verifyJointly(model, request, count, observe);
      },
      /*isAddedTo=*/false);
}

Expected<JointRun> Model::jointRun(const JointRequest &request, int64_t most,
                                   bool comparesControl) {
  return withSplit(
      [&](SplitModel model) {
        warnOfLength(request.context.size() + most);
        return JointRun::start(model, request, most, comparesControl);
      },
      /*isAddedTo=*/false);
}

Expected<int64_t> Model::jointCapacity() {
  return withSplit(
      [&](SplitModel model) -> Expected<int64_t> { return ctxc::jointCapacity(model); },
      /*isAddedTo=*/false);
}

Expected<ChosenEntries> Model::chooseEntries(const DistilRequest &request) {
  return withSplit([&](SplitModel model) {
    warnOfLength(longestOf(request));
    return ctxc::chooseEntries(model, request);
  });
}

/// withSplit, of a function that gives nothing but an error.
template <typename Function> Error Model::checkSplit(Function function) {
  return withSplit([&](SplitModel model) -> Expected<bool> {
           if (Error error = function(model))
             return std::move(error);
           return true;
         })
      .takeError();
}

Error Model::checkRoomToEvaluate(const EvaluateRequest &request) {
  return checkSplit([&](SplitModel model) { return ctxc::checkRoomToEvaluate(model, request); });
}

/// Fails where there is no cache of transformers, or one that holds something else than a key and a
/// value of each head of keys.
static Error checkTransformersCache(const Checkpoint *from) {
  auto has = [&](llvm::StringRef key) {
    const llvm::json::Value *value = from ? from->config().get(key) : nullptr;
    return value && !value->getAsNull() && value->getAsBoolean() != false;
  };
  if (from && namesParametersAlone(*from))
    return makeError(from->directory() + ": an exported program has no cache in which keys and "
                                         "values of a context could stand; change weights, or "
                                         "keep tokens as text");
  auto holds = [](llvm::StringRef what) {
    return makeError("transformers' cache of this model holds " + what +
                     ", which are not written; let the model read the tokens in front, or change "
                     "weights");
  };
  if (has("kv_lora_rank"))
    return holds("latents (kv_lora_rank) in the place of keys and values");
  if (has("new_decoder_architecture"))
    return holds("copies of keys and values for every head (new_decoder_architecture)");
  return Error::success();
}

Expected<VirtualEntries> Model::shapesOfEntries(int64_t count) {
  if (Error error = checkTransformersCache(checkpoint()))
    return std::move(error);
  return withSplit([&](SplitModel model) { return ctxc::shapesOfEntries(model, count); });
}

Error Model::checkPrefixCache() {
  if (Error error = checkTransformersCache(checkpoint()))
    return error;
  return checkSplit([](SplitModel model) { return ctxc::checkPrefixCache(model); });
}

Expected<std::vector<KeysAndValues>> Model::prefixCache(const Adapter &adapter) {
  if (Error error = checkPrefixCache())
    return std::move(error);
  return withSplit([&](SplitModel model) { return ctxc::prefixCache(model, adapter); });
}

Expected<Card> Model::evaluate(const Adapter &adapter, const EvaluateRequest &request) {
  return withSplit([&](SplitModel model) { return ctxc::evaluate(model, adapter, request); });
}

Expected<Card> Model::evaluate(const Adapter &adapter, Judge &judge) {
  return withSplit([&](SplitModel model) { return judge.evaluate(model, adapter); });
}

Expected<std::vector<double>> Model::tellingScores(llvm::ArrayRef<int64_t> context, int64_t front,
                                                   llvm::ArrayRef<TextSequence> texts) {
  return withSplit(
      [&](SplitModel model) { return ctxc::tellingScores(model, context, front, texts); });
}

Expected<std::vector<int64_t>> Model::mostTelling(llvm::ArrayRef<int64_t> context, int64_t front,
                                                  int64_t count,
                                                  llvm::ArrayRef<TextSequence> texts) {
  auto scores = tellingScores(context, front, texts);
  if (!scores)
    return scores.takeError();
  return ctxc::mostTelling(*scores, front, count);
}

Expected<std::vector<double>> Model::readScores(llvm::ArrayRef<int64_t> context, int64_t front,
                                                llvm::ArrayRef<TextSequence> texts) {
  return withSplit(
      [&](SplitModel model) { return ctxc::readScores(model, context, front, texts); });
}

Expected<std::vector<int64_t>> Model::mostRead(llvm::ArrayRef<int64_t> context, int64_t front,
                                               int64_t count, llvm::ArrayRef<TextSequence> texts) {
  auto scores = readScores(context, front, texts);
  if (!scores)
    return scores.takeError();
  return ctxc::mostTelling(*scores, front, count);
}

Expected<Sampled> Model::sample(const SampleRequest &request) {
  return withSplit([&](SplitModel model) { return ctxc::sample(model, request); },
                   /*isAddedTo=*/false);
}

Expected<std::vector<Example>> Model::examples(const Adapter &adapter,
                                               const EvaluateRequest &request, size_t count,
                                               int64_t length, llvm::ArrayRef<int64_t> stops) {
  return withSplit([&](SplitModel model) {
    return ctxc::examples(model, adapter, request, count, length, stops);
  });
}
