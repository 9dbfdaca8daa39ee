// Weights, executors, and what is asked of a run.
#include "CompletedWeights.h"
#include "RankNorms.h"
#include "Use.h"
#include "ctxc/Reference/Reference.h"
#include "ctxc/Runtime/CompiledExecutor.h"
#include "ctxc/Runtime/GPU/GpuExecutor.h"
#include "ctxc/Runtime/Shard/ShardedExecutor.h"
#include "ctxc/Session/Context.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Memory.h"
#include "ctxc/Support/Timer.h"
#include "ctxc/Verify/ProgramNorms.h"
#include "dialects/XF/Arithmetic.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace ctxc;
using llvm::Error;
using llvm::Expected;

/// Whether there is room for a copy of the weights. Ranks that share them have a part of it each.
static Error checkRoom(const Checkpoint &checkpoint, const Ranks *ranks) {
  const uint64_t needed = bytesInLargePages(checkpoint) / (ranks ? ranks->count() : 1);
  std::optional<uint64_t> there = availableMemory();
  if (!there || needed <= *there)
    return Error::success();
  auto gigabytes = [](uint64_t bytes) { return llvm::format("%.1f GB", double(bytes) * 1e-9); };
  std::string text;
  llvm::raw_string_ostream(text) << "found " << gigabytes(*there) << " of free memory, expected "
                                 << gigabytes(needed)
                                 << " for the weights; leave it out, and they are read from the "
                                    "file's pages";
  return llvm::make_error<OptionError>(Option::LargePages, text);
}

Expected<Weights &> Model::weights() {
  std::lock_guard<std::mutex> lock(shared->mutex);
  if (shared->weights)
    return *shared->weights;
  Timer timer(setup.import);
  if (settings.weights.seed) {
    shared->weights = randomWeights(*settings.weights.seed);
  } else if (weightCheckpoint) {
    shared->checkpoint = weightCheckpoint;
    if (settings.largePages)
      if (Error error = checkRoom(*weightCheckpoint, settings.ranks))
        return std::move(error);
    shared->weights = checkpointWeights(*weightCheckpoint, settings.largePages);
  } else {
    return makeError(path + ": has no weights; expected a checkpoint with them");
  }
  if (shared->constants && shared->checkpoint && weightCheckpoint != modelCheckpoint)
    if (Error error = checkConstants(*shared->checkpoint, *shared->constants, shared->inProgram))
      return std::move(error);
  if (shared->checkpoint && weightCheckpoint != modelCheckpoint) {
    Expected<PartsOfWeights> parts = partsOfWeights(*shared->checkpoint, shared->parts);
    if (!parts)
      return parts.takeError();
    shared->ofOthers = std::move(*parts);
  }
  if (shared->ofOthers.checkpoint)
    shared->weights = completedWeights(std::move(shared->weights), /*stored=*/nullptr,
                                       *shared->ofOthers.checkpoint);
  if (shared->constants)
    shared->weights =
        completedWeights(std::move(shared->weights), shared->checkpoint.get(), *shared->constants);
  return *shared->weights;
}

Expected<std::string> Model::hash() {
  Expected<Weights &> numbers = weights();
  if (!numbers)
    return numbers.takeError();
  std::lock_guard<std::mutex> lock(shared->mutex);
  if (!shared->hash.empty())
    return shared->hash;
  Timer timer(setup.import);
  Expected<std::string> hash = numbers->hash();
  if (hash)
    shared->hash = *hash;
  return hash;
}

Expected<std::unique_ptr<Executor>> Model::makeExecutor(Engine engine) {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  if (Error error = checkNumerics())
    return std::move(error);
  Expected<const Program &> program = this->program();
  if (!program)
    return program.takeError();
  if (program->steps.empty())
    return makeError(path + ": has blocks and no xf.model; expected a model, to run it");
  Expected<Weights &> numbers = weights();
  if (!numbers)
    return numbers.takeError();
  return makeExecutor(engine, *program, *numbers, /*hasPieces=*/false);
}

/// An executor of the model's program, or of one whose layers are split into steps.
Expected<std::unique_ptr<Executor>> Model::makeExecutor(Engine engine, const Program &program,
                                                        Weights &numbers, bool hasPieces) {
  Timer timer(setup.compile);
  if (engine == Engine::Reference)
    return createReferenceExecutor(program, numbers);
  CompiledOptions options;
  options.threads = settings.threads;
  options.prompts = settings.prompts;
  options.parallelFor = settings.parallelFor;
  if (settings.ranks) {
    RankOptions onRanks;
    onRanks.tensor = settings.tensorRanks;
    onRanks.number = hasPieces;
    onRanks.hasPieces = hasPieces;
    if (engine == Engine::Gpu)
      onRanks.device =
          RankDevice{settings.gpu, [this](llvm::StringRef reason) {
                       handle({Place(),
                               mlir::DiagnosticSeverity::Warning,
                               (reason + "; sums over ranks go through the hosts' memory").str(),
                               "",
                               {}});
                     }};
    return createShardedExecutor(program, numbers, options, *settings.ranks, onRanks);
  }
  if (engine == Engine::Compiled) {
    options.isCancelled = settings.interrupt;
    return createCompiledExecutor(program, numbers, options);
  }
  auto device = Device::open(settings.gpu);
  if (!device)
    return llvm::make_error<OptionError>(Option::Engine, llvm::toString(device.takeError()));
  GpuOptions gpu;
  gpu.roundedPrompts = settings.prompts == PromptProducts::Rounded;
  return createGpuExecutor(program, numbers, std::move(*device), gpu);
}

Expected<Executor &> Model::executor() {
  Expected<Executor &> made = runner();
  if (made && !onlyJoint.empty())
    return makeError(path + ": " + onlyJoint);
  return made;
}

Expected<Executor &> Model::runner() {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  if (!mainExecutor) {
    auto made = makeExecutor(settings.engine);
    if (!made)
      return withDiagnostics(made.takeError());
    mainExecutor = std::move(*made);
    mainExecutor->setInterrupt(settings.interrupt);
    mainExecutor->setProgress(settings.progress);
  }
  return *mainExecutor;
}

Expected<Model::Running> Model::running() {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  Expected<Executor &> executor = this->executor();
  if (!executor)
    return executor.takeError();
  return Running{std::move(*inUse), *executor};
}

Expected<PatchNorms &> Model::norms() {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  Expected<const Program &> program = this->program();
  if (!program)
    return program.takeError();
  Expected<Weights &> numbers = weights();
  if (!numbers)
    return numbers.takeError();
  if (!parameterNorms) {
    if (settings.ranks) {
      Expected<ShardedExecutor &> executor = sharded();
      if (!executor)
        return executor.takeError();
      ShardedExecutor &own = *executor;
      parameterNorms =
          programNorms(*program, *numbers, std::make_shared<KnownNorms>(),
                       [&own](llvm::StringRef parameter) { return own.elementsOf(parameter); });
      if (settings.ranks->rank() == 0)
        parameterNorms = rankNorms(std::move(parameterNorms), own);
      return *parameterNorms;
    }
    std::lock_guard<std::mutex> lock(shared->mutex);
    std::shared_ptr<KnownNorms> &known = shared->norms[storageType];
    if (!known)
      known = std::make_shared<KnownNorms>();
    parameterNorms = programNorms(*program, *numbers, known);
  }
  return *parameterNorms;
}

Expected<Model::Measuring> Model::measuring() {
  Expected<Running> run = running();
  if (!run)
    return run.takeError();
  Expected<PatchNorms &> norms = this->norms();
  if (!norms)
    return norms.takeError();
  return Measuring{std::move(run->use), run->executor, *norms};
}

void Model::warnOfLength(int64_t tokens) {
  if (isWarnedOfLength || !modelCheckpoint)
    return;
  const llvm::json::Object &config = modelCheckpoint->config();
  const llvm::json::Object *text = config.getObject("text_config");
  auto limit = (text ? *text : config).getInteger("max_position_embeddings");
  bool isRotary =
      imported->walk([](xf::RotaryOp) { return mlir::WalkResult::interrupt(); }).wasInterrupted();
  if (!limit || tokens <= *limit || !isRotary)
    return;
  isWarnedOfLength = true;
  handle({Place(),
          mlir::DiagnosticSeverity::Warning,
          path + ": position " + std::to_string(tokens - 1) + " is beyond the " +
              std::to_string(*limit) +
              " positions that the model was made for (max_position_embeddings); what it says "
              "there may mean little",
          "",
          {}});
}

Expected<Context> Model::context(llvm::ArrayRef<Input> tokens, std::vector<int64_t> kept) {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  warnOfLength(tokens.size());
  Context context(*this, tokens.vec(), std::move(kept));
  if (Error error = context.read())
    return std::move(error);
  return context;
}

Expected<Context> Model::context(llvm::ArrayRef<int64_t> tokens, std::vector<int64_t> kept) {
  return context(llvm::ArrayRef<Input>(toInputs(tokens)), std::move(kept));
}

Expected<PatchStep> Model::patch(RunRequest request, RunTimes *times) {
  Expected<Running> run = running();
  if (!run)
    return run.takeError();
  request.startLayer = settings.planning.startLayer;
  warnOfLength(request.tokens.size());
  RunTimes unread;
  return makePatch(run->executor, request, times ? *times : unread);
}

Error Model::positions(RunRequest request, PatchSink sink, RunTimes *times) {
  Expected<Running> run = running();
  if (!run)
    return run.takeError();
  request.startLayer = settings.planning.startLayer;
  warnOfLength(request.tokens.size());
  RunTimes unread;
  return makePatches(run->executor, request, times ? *times : unread, sink);
}

Expected<PatchMetadata> Model::metadata(const RunRequest &request, int64_t position) {
  Expected<std::string> hash = this->hash();
  if (!hash)
    return hash.takeError();
  PatchMetadata metadata;
  metadata.modelHash = *hash;
  llvm::ArrayRef<Input> tokens = llvm::ArrayRef(request.tokens).take_front(position + 1);
  metadata.tokens = tokensOf(tokens);
  metadata.embeddingsDigest = digestOfEmbeddings(tokens);
  metadata.position = position;
  metadata.kept =
      llvm::ArrayRef(request.kept).take_while([&](int64_t kept) { return kept < position; }).vec();
  metadata.update = patch::stringifyUpdateKind(settings.planning.update).str();
  metadata.dtype = storage().str();
  return metadata;
}

/// The unit roundoff of the coarsest type that a parameter of the module is stored in.
static double roundoffOfWeights(mlir::ModuleOp module) {
  double coarsest = float32UnitRoundoff;
  module.walk([&](xf::ParamOp param) {
    auto type = llvm::cast<mlir::RankedTensorType>(param.getType()).getElementType();
    if (auto real = llvm::dyn_cast<mlir::FloatType>(type))
      coarsest = std::max(coarsest, std::ldexp(1.0, -int(real.getFPMantissaWidth())));
  });
  return coarsest;
}

/// Half a step of the 127 to which vectors are rounded for products in integers. What is off by a
/// rounding of float32 in one run may fall on the other side of a step in the next.
static constexpr double byteUnitRoundoff = 0.5 / 127;

/// The request's own, and those of how it is run, and of what.
static Roundoffs roundoffsOf(const RunRequest &request, mlir::ModuleOp module,
                             const LoadOptions &settings) {
  Roundoffs roundoffs{xf::roundoffOfOps(module), request.roundoffs.patch,
                      xf::roundoffOfProgram(module)};
  if (settings.integerProducts) {
    roundoffs.patch = byteUnitRoundoff;
  } else if (request.materialize) {
    roundoffs.patch = std::max(roundoffOfWeights(module), roundoffs.patch);
  } else if (settings.prompts == PromptProducts::Rounded && !request.positions.empty()) {
    roundoffs.arithmetic = std::max(roundoffs.arithmetic, bfloat16UnitRoundoff);
    roundoffs.patch = bfloat16UnitRoundoff;
  }
  return roundoffs;
}

Expected<VerifyResult> Model::verify(RunRequest request, int64_t count, StepObserver observe) {
  Expected<Measuring> run = measuring();
  if (!run)
    return run.takeError();
  request.startLayer = settings.planning.startLayer;
  request.headless = isHeadless();
  request.roundoffs = roundoffsOf(request, module(), settings);
  warnOfLength(request.tokens.size() - 1 + count);
  if (!request.positions.empty())
    return verifyEach(run->executor, request, run->norms, observe);
  if (count > 1)
    if (llvm::Error error = stopTokens().moveInto(request.stops))
      return std::move(error);
  return withPooled(run->executor, request, [&](const RunRequest &asked) {
    return ctxc::verify(run->executor, asked, count, run->norms, observe);
  });
}

Expected<VerifyResult> Model::verify(RunRequest request, PatchSource stored, StepObserver observe) {
  Expected<Measuring> run = measuring();
  if (!run)
    return run.takeError();
  request.startLayer = settings.planning.startLayer;
  request.headless = isHeadless();
  request.roundoffs = roundoffsOf(request, module(), settings);
  warnOfLength(request.tokens.size());
  return verifyEach(run->executor, request, run->norms, observe, stored);
}

Expected<VerifyResult> Model::verify(RunRequest request, const Patch &patch) {
  Expected<Measuring> run = measuring();
  if (!run)
    return run.takeError();
  request.startLayer = settings.planning.startLayer;
  request.headless = isHeadless();
  request.roundoffs = roundoffsOf(request, module(), settings);
  warnOfLength(request.tokens.size());
  return withPooled(run->executor, request, [&](const RunRequest &asked) {
    return verifyPatch(run->executor, asked, patch, run->norms);
  });
}

Expected<VerifySettings> Model::verifySettings() {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  Expected<const Program &> program = this->program();
  if (!program)
    return program.takeError();
  Expected<bool> differ = updatesDiffer();
  if (!differ)
    return differ.takeError();
  Expected<std::string> hash = this->hash();
  if (!hash)
    return hash.takeError();
  VerifySettings about;
  about.model = path;
  about.modelHash = *hash;
  about.notCompared = whyNotCompared;
  about.layers = program->layers;
  about.vocabulary = program->vocabulary;
  about.update = patch::stringifyUpdateKind(settings.planning.update).str();
  about.dtype = storage().str();
  about.replay = about.dtype; // as programs run weights of 16 bits
  about.backend = settings.engine == Engine::Gpu         ? settings.gpu
                  : settings.engine == Engine::Reference ? "reference"
                                                         : "compiled";
  about.plan = planText;
  about.patchedLayers = patchedLayers;
  about.updateApplies = *differ;
  about.threads = settings.threads;
  about.request.startLayer = settings.planning.startLayer;
  about.request.headless = isHeadless();
  return about;
}

Expected<Inspection> Model::inspect(InspectRequest request) {
  Expected<Measuring> run = measuring();
  if (!run)
    return run.takeError();
  request.run.startLayer = settings.planning.startLayer;
  if (request.generate > 1)
    if (llvm::Error error = stopTokens().moveInto(request.run.stops))
      return std::move(error);
  warnOfLength(request.run.tokens.size() + request.generate);
  return ctxc::inspect(run->executor, runnable, run->norms, request);
}
