// The executor over a GPU's kernels: a token is a recorded sequence of launches, and so is a chunk
// of a prompt.
#include "ctxc/Runtime/GPU/GpuExecutor.h"
#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Program/ModelEnds.h"
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Program/TokenKernels.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/GPU/GpuForward.h"
#include "lib/Runtime/GPU/GpuPatchEach.h"
#include "lib/Runtime/Logits.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace ctxc;
using llvm::Error;
using llvm::Expected;

namespace {

class GpuExecutor : public Executor {
public:
  GpuExecutor(const Program &program, Weights &weights, std::shared_ptr<Device> device,
              int64_t rows, int64_t fewer, const GpuOptions &options)
      : program(program), store(this->program, weights, std::move(device), options.share),
        gpu(store, 1, "ctxc"), prompts(store, rows, fewer, options.roundedPrompts), names(program),
        movedTogether(options.movedTogether),
        stateless(store.device, -1, std::max(rows, fewer), 0, 1, store.windows) {}

  Error compile();
  /// Before compile: this rank shares the model's layers with others.
  Error share(const GpuOptions &options) { return store.share(options); }

  bool isBidirectional() const override { return false; }
  int64_t vocabulary() const override { return idsOf(program); }
  int64_t layers() const override { return program.layers; }

protected:
  std::unique_ptr<Run> makeRun(int64_t capacity) override {
    return std::make_unique<GpuRun>(store.device, nextRun++, capacity, prompts.paddingOf(capacity),
                                    std::max(movedTogether, prompts.mostRows()), store.windows);
  }
  Error copyState(const Run &given, Run &made) override;
  Expected<Logits> computeLogits(Run &run, ArrayRef<Input> tokens, ArrayRef<int64_t> positions,
                                 const ForwardOptions &options) override;
  Expected<PatchStep> computePatch(Run &full, Run &reduced, const Input &token, int64_t position,
                                   const PatchOptions &options) override;
  Error computePatchEach(Run &full, Run &reduced, ArrayRef<Input> tokens,
                         ArrayRef<int64_t> positions, const PatchEachOptions &options,
                         PatchSink sink) override;
  Expected<Logits> computeHead(ArrayRef<double> vectors, int64_t count) override;
  Error computeStep(const StepRows &rows, Run *run, std::vector<Rows> &outputs) override;

private:
  Error check(const GpuRun &run, ArrayRef<Input> tokens, ArrayRef<int64_t> positions) const {
    if (Error error = checkStep(program, run.count, run.last(), run.capacity, tokens, positions))
      return error;
    if (Error error = run.checkSeen())
      return error;
    if (hasEmbeddings(tokens))
      return makeError("an embedding in a token's place is not run on a GPU; the compiled "
                       "engine runs it");
    return checkIds(program, tokens, positions);
  }
  GpuHead *headOrNull() { return head ? &*head : nullptr; }
  Expected<GpuProgram *> programOfStep(size_t step, int64_t left);
  Error computeRows(const StepRows &rows, GpuProgram &with, GpuRun &run, int64_t from,
                    int64_t count, std::vector<Rows> &outputs);
  Expected<RecordedSteps *> recordPatch(GpuRun &full, GpuRun &reduced, int64_t startLayer);
  Expected<PatchStep> patchOne(GpuStreams &streams, GpuRun &full, GpuRun &reduced, int64_t token,
                               int64_t position, const PatchOptions &options);
  Error readPatch(size_t step, PatchStep &result);
  Error patchAlone(GpuStreams &streams, GpuRun &full, GpuRun &reduced, int64_t token,
                   int64_t position, const PatchEachOptions &options, PatchSink sink);
  Error patchChunks(GpuRun &full, GpuRun &reduced, ArrayRef<int64_t> tokens,
                    ArrayRef<int64_t> positions, const PatchEachOptions &options, PatchSink sink);

  Program program;
  GpuStore store;
  GpuProgram gpu; ///< for one token
  GpuPrompts prompts;
  std::optional<GpuHead> head; ///< where the program has one
  const PatchableNames names;
  const int64_t movedTogether;
  std::atomic<int64_t> nextRun = 0; ///< runs may be started in several threads
  GpuRun stateless;                 ///< for single steps that read no context
};

Error noMaterialized() {
  return makeError("a patch that is added to the weights is not run on a GPU; run it factored, or "
                   "with the compiled engine");
}

} // namespace

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

Error GpuExecutor::compile() {
  Program own = program;
  own.steps.assign(program.steps.begin() + store.stage.first,
                   program.steps.begin() + store.stage.end);
  if (Error error = gpu.compile(kernelBlocks(own)))
    return error;
  std::vector<StepArgument> weights;
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    if (!store.stage.has(i))
      continue;
    if (Error error = gpu.check(step.block))
      return error;
    for (StepArgument &each : gpu.argumentsOf(i, step.block))
      if (each.arg.kind == KernelArgKind::Param || each.arg.kind == KernelArgKind::Bank)
        weights.push_back(std::move(each));
  }
  if (program.head() && store.hasLogits())
    head.emplace(store, gpu);
  return store.uploadWeights(weights);
}

Expected<Logits> GpuExecutor::computeLogits(Run &opaque, ArrayRef<Input> tokens,
                                            ArrayRef<int64_t> positions,
                                            const ForwardOptions &options) {
  auto &run = static_cast<GpuRun &>(opaque);
  if (Error error = check(run, tokens, positions))
    return std::move(error);
  if (options.patch) {
    if (Error error = names.check(*options.patch, options.materialize))
      return std::move(error);
    if (options.materialize)
      return noMaterialized();
    if (Error error = gpu.setPatch(*options.patch))
      return std::move(error);
  }
  std::vector<int32_t> ids, at(positions.begin(), positions.end());
  for (const Input &token : tokens)
    ids.push_back(int32_t(token.token()));
  const int64_t count = ids.size();
  return GpuForward(
             store, gpu, prompts, headOrNull(), run, options, [this] { return checkInterrupt(); },
             [this, count](int64_t done) { tell(done, count, 1); })
      .forward(ids, at);
}

Error GpuExecutor::copyState(const Run &given, Run &made) {
  const auto &from = static_cast<const GpuRun &>(given);
  auto &to = static_cast<GpuRun &>(made);
  to.count = from.count;
  std::copy_n(from.positions.begin(), from.count, to.positions.begin());
  for (const auto &[window, slots] : from.slots) {
    to.slotsOf(window).first = std::min(slots.first, from.count);
    to.slotsOf(window).isHidden = true; // the next call uploads all positions
  }
  for (auto [step, states] : llvm::enumerate(from.states)) {
    const Slots &old = from.slotsOf(store.windows[step]), &own = to.slotsOf(store.windows[step]);
    for (const auto &[place, buffer] : states) {
      size_t row = buffer->bytes / old.room;
      std::vector<char> held(row * (from.count - own.first));
      if (Error error = store.device->download(held, *buffer, 0))
        return error;
      auto copy = store.device->allocate(row * own.room);
      if (!copy)
        return copy.takeError();
      if (Error error = store.device->upload(**copy, 0, held))
        return error;
      to.states[step][place] = std::move(*copy);
    }
  }
  return Error::success();
}

Expected<Logits> GpuExecutor::computeHead(ArrayRef<double> vectors, int64_t count) {
  Expected<size_t> checked = checkHead(program, vectors.size(), count);
  if (!checked)
    return checked.takeError();
  auto logits = head->logitsOf(Rows(vectors.begin(), vectors.end()), count);
  if (!logits)
    return logits.takeError();
  if (Error error = checkFinite(*logits))
    return std::move(error);
  return Logits(std::move(*logits));
}

//===----------------------------------------------------------------------===//
// Single steps
//===----------------------------------------------------------------------===//

/// The kernels by which a step runs the next of `left` tokens.
Expected<GpuProgram *> GpuExecutor::programOfStep(size_t step, int64_t left) {
  if (left < GpuPrompts::kShortest || prompts.mostRows() == 1)
    return &gpu;
  GpuProgram &many = prompts.ofFewer();
  xf::BlockOp block = program.steps[step].block;
  if (Error error = many.compile(block))
    return std::move(error);
  Error none = many.check(block);
  const bool isOne = bool(none);
  llvm::consumeError(std::move(none));
  return isOne ? &gpu : &many;
}

/// Runs `count` of the rows, and adds what the step computes for them to `outputs`.
Error GpuExecutor::computeRows(const StepRows &rows, GpuProgram &with, GpuRun &run, int64_t from,
                               int64_t count, std::vector<Rows> &outputs) {
  const ProgramStep &step = program.steps[rows.step];
  RecordedSteps &record = run.steps[{rows.step, with.rows}];
  if (!record.isRecorded())
    if (Error error = with.record(StepKernel{rows.step, step.block, 0, {&run, nullptr}}, record))
      return error;
  if (Error error = with.setTokens(rows.tokens.slice(from, count),
                                   rows.positions.slice(from, count), &run, nullptr))
    return error;
  for (auto [input, numbers] : llvm::zip(xf::LayerOp(step.layer).getInputs(), rows.inputs)) {
    const size_t width = numbers->size() / rows.tokens.size();
    if (Error error =
            with.setValue(input, 0, ArrayRef(*numbers).slice(from * width, count * width)))
      return error;
  }
  if (Error error = with.run(record))
    return error;
  for (auto [output, all] : llvm::zip(xf::LayerOp(step.layer).getOutputs(), outputs)) {
    auto numbers = with.value(output, 0, 0, count);
    if (!numbers)
      return numbers.takeError();
    llvm::append_range(all, *numbers);
  }
  return Error::success();
}

Error GpuExecutor::computeStep(const StepRows &rows, Run *opaque, std::vector<Rows> &outputs) {
  if (rows.weights && rows.weights != &store.weights)
    return makeError("a GPU runs a model with the weights that it was given; changed ones are run "
                     "by the compiled engine");
  outputs.assign(xf::LayerOp(program.steps[rows.step].layer).getOutputs().size(), {});
  auto *run = static_cast<GpuRun *>(opaque);
  if (run)
    run->begin();
  const int64_t all = rows.tokens.size();
  for (int64_t from = 0; from < all;) {
    if (Error error = checkInterrupt())
      return error;
    auto with = programOfStep(rows.step, all - from);
    if (!with)
      return with.takeError();
    const int64_t count = std::min((*with)->rows, all - from);
    if (Error error = computeRows(rows, **with, run ? *run : stateless, from, count, outputs))
      return error;
    if (run)
      run->count += count;
    from += count;
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Algorithm 1
//===----------------------------------------------------------------------===//

Expected<RecordedSteps *> GpuExecutor::recordPatch(GpuRun &full, GpuRun &reduced,
                                                   int64_t startLayer) {
  RecordedSteps &record = full.patch[{reduced.id, startLayer}];
  if (record.isRecorded())
    return &record;
  SmallVector<StepKernel> kernels;
  GpuRun *const runs[2] = {&full, &reduced};
  for (const TokenKernel &each : patchKernels(program, startLayer)) {
    if (!store.stage.has(each.step))
      continue;
    bool isDual = each.block == program.steps[each.step].dual;
    kernels.push_back({each.step,
                       each.block,
                       each.run,
                       {isDual ? &full : runs[each.run], isDual ? &reduced : nullptr}});
  }
  if (Error error = gpu.record(kernels, record))
    return std::move(error);
  return &record;
}

/// The patch, obligations and errors that a token's dual kernels computed.
Error GpuExecutor::readPatch(size_t index, PatchStep &result) {
  std::vector<LayerObligations> obligations;
  std::vector<double> replayError;
  if (Error error = gpu.readChecks(index, 1, obligations, replayError))
    return error;
  int64_t layer = *program.steps[index].index;
  result.obligations[layer] = obligations.front();
  result.replayError[layer] = replayError.front();
  std::vector<Rows> parts;
  std::vector<Device::Piece> pieces;
  gpu.findParts(index, 0, 1, parts, pieces);
  if (Error error = store.device->downloadAll(pieces))
    return error;
  return gpu.readParts(index, parts, 0, result.patch);
}

Expected<PatchStep> GpuExecutor::patchOne(GpuStreams &streams, GpuRun &full, GpuRun &reduced,
                                          int64_t token, int64_t position,
                                          const PatchOptions &options) {
  auto record = recordPatch(full, reduced, options.startLayer);
  if (!record)
    return record.takeError();
  if (Error error = gpu.setTokens(int32_t(token), int32_t(position), &full, &reduced))
    return std::move(error);
  if (Error error = gpu.clearCounts())
    return std::move(error);
  if (auto ready = streams.await(1); !ready)
    return ready.takeError();
  if (Error error = streams.put(gpu, 1))
    return std::move(error);
  if (Error error = gpu.run(**record))
    return std::move(error);
  if (Error error = streams.pass(gpu, 1))
    return std::move(error);
  PatchStep result;
  result.obligations.resize(program.layers);
  result.replayError.resize(program.layers);
  for (auto [i, step] : llvm::enumerate(program.steps))
    if (store.stage.has(i) && step.isPatchedFrom(options.startLayer))
      if (Error error = readPatch(i, result))
        return std::move(error);
  const LayerObserver *observers[] = {&options.fullObserver, &options.reducedObserver};
  for (int64_t run : {0, 1})
    if (*observers[run]) {
      SeenLayers layers;
      if (Error error = readLayers(gpu, run, 1, layers))
        return std::move(error);
      for (auto &[layer, rows] : layers)
        (*observers[run])(layer, rows, 1);
    }
  if (store.hasLogits())
    if (Error error = readLogits(gpu, options, result))
      return std::move(error);
  ++full.count;
  return result;
}

Expected<PatchStep> GpuExecutor::computePatch(Run &opaqueFull, Run &opaqueReduced,
                                              const Input &token, int64_t position,
                                              const PatchOptions &options) {
  auto &full = static_cast<GpuRun &>(opaqueFull);
  auto &reduced = static_cast<GpuRun &>(opaqueReduced);
  for (GpuRun *run : {&full, &reduced})
    if (Error error = check(*run, token, position))
      return std::move(error);
  if (Error error = checkStartLayer(program, options.startLayer))
    return std::move(error);
  if (options.materialize)
    return noMaterialized();
  full.begin();
  GpuStreams streams(store, 2);
  return patchOne(streams, full, reduced, token.token(), position, options);
}

/// patchEach for one token.
Error GpuExecutor::patchAlone(GpuStreams &streams, GpuRun &full, GpuRun &reduced, int64_t token,
                              int64_t position, const PatchEachOptions &options, PatchSink sink) {
  PatchOptions one;
  one.startLayer = options.startLayer;
  one.logits = options.logits;
  auto step = patchOne(streams, full, reduced, token, position, one);
  if (!step)
    return step.takeError();
  return give(token, position, std::move(*step), sink);
}

Error GpuExecutor::patchChunks(GpuRun &full, GpuRun &reduced, ArrayRef<int64_t> tokens,
                               ArrayRef<int64_t> positions, const PatchEachOptions &options,
                               PatchSink sink) {
  // A pass within a sink's call would overwrite the outer pass's patches.
  const bool isInner = prompts.isPatching;
  llvm::scope_exit ended([&] { prompts.isPatching = isInner; });
  GpuStreams streams(store, 2);
  GpuPatchEach each(store, streams, headOrNull(), options);
  const int64_t all = tokens.size();
  tell(0, all, 1);
  while (!tokens.empty()) {
    if (Error error = checkInterrupt())
      return error;
    auto ready = streams.await(tokens.size());
    if (!ready)
      return ready.takeError();
    int64_t count = std::min<int64_t>(*ready, options.chunk ? options.chunk : INT64_MAX);
    RecordedChunk *chunk = nullptr;
    if (!isInner && count >= (options.chunk ? 2 : GpuPrompts::kShortest)) {
      auto recorded = prompts.patch(full, reduced, options.startLayer, count);
      if (!recorded)
        return recorded.takeError();
      chunk = *recorded;
    }
    count = chunk ? std::min(count, chunk->program->rows) : 1;
    prompts.isPatching = isInner || chunk;
    if (Error error = chunk ? each.run(*chunk, full, reduced, tokens.take_front(count),
                                       positions.take_front(count), sink)
                            : patchAlone(streams, full, reduced, tokens.front(), positions.front(),
                                         options, sink))
      return error;
    tokens = tokens.drop_front(count);
    positions = positions.drop_front(count);
    tell(all - int64_t(tokens.size()), all, 1);
  }
  return Error::success();
}

Error GpuExecutor::computePatchEach(Run &opaqueFull, Run &opaqueReduced, ArrayRef<Input> tokens,
                                    ArrayRef<int64_t> positions, const PatchEachOptions &options,
                                    PatchSink sink) {
  auto &full = static_cast<GpuRun &>(opaqueFull);
  auto &reduced = static_cast<GpuRun &>(opaqueReduced);
  if (Error error = check(full, tokens, positions))
    return error;
  if (reduced.count + 1 > reduced.capacity)
    return makeError("the reduced run has room for " + llvm::Twine(reduced.capacity) +
                     " tokens, and needs it for one more than the " + llvm::Twine(reduced.count) +
                     " that it holds");
  if (Error error = checkStartLayer(program, options.startLayer))
    return error;
  std::vector<int64_t> ids;
  for (const Input &token : tokens)
    ids.push_back(token.token());
  full.begin();
  if (Error error = patchChunks(full, reduced, ids, positions, options, sink))
    return llvm::joinErrors(std::move(error), full.undo());
  return Error::success();
}

Expected<std::unique_ptr<Executor>> ctxc::createGpuExecutor(const Program &program,
                                                            Weights &weights,
                                                            std::unique_ptr<Device> device,
                                                            const GpuOptions &options) {
  if (ctxc::isBidirectional(program))
    return makeError("the model is bidirectional, and kernels of a GPU see no token behind their "
                     "own; the compiled engine runs it");
  DialectRegistry registry;
  registerCodegenDialects(registry);
  registerGpuDialects(registry);
  ModuleOp module = program.module;
  module.getContext()->appendDialectRegistry(registry);
  module.getContext()->loadAllAvailableDialects();
  Program both = program;
  if (!options.share.local) // whose blocks are cut already
    addDualHead(both);
  auto target = GpuTarget::named(device->target());
  if (!target)
    return target.takeError();
  if (options.roundedPrompts && !(*target)->multipliesBfloat16())
    return makeError((*target)->name() +
                     " has no instruction for products of bfloat16: prompts are "
                     "read as fast without rounding");
  // From the target's rows on, more of them only fill the device better, which tensor cores need.
  int64_t fewer = (*target)->promptRows();
  int64_t rows = (*target)->multipliesBfloat16() ? 4 * fewer : fewer;
  if (options.chunk) {
    rows = options.chunk;
    fewer = options.shortChunk ? options.shortChunk : rows;
  }
  auto executor =
      std::make_unique<GpuExecutor>(both, weights, std::move(device), rows, fewer, options);
  if (options.share.local)
    if (Error error = executor->share(options))
      return std::move(error);
  if (Error error = executor->compile())
    return std::move(error);
  return executor;
}
