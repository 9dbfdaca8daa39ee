// The executor over a GPU's kernels: tokens one by one, each a recorded sequence of launches.
#include "ctxc/Runtime/GPU/GpuExecutor.h"
#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Runtime/StepChecks.h"
#include "ctxc/Runtime/TokenKernels.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/GPU/GpuProgram.h"
#include "lib/Runtime/Logits.h"

using namespace mlir;
using namespace ctxc;
using llvm::Error;
using llvm::Expected;

namespace {

class GpuExecutor : public Executor {
public:
  GpuExecutor(const Program &program, Weights &weights, std::shared_ptr<Device> device)
      : program(program), gpu(this->program, weights, std::move(device)), names(program) {}

  Error compile() { return gpu.compile(); }

  std::unique_ptr<Run> start(int64_t capacity) override {
    return std::make_unique<GpuRun>(gpu.device, nextRun++, capacity, program.steps.size());
  }
  Expected<std::vector<double>> forward(Run &run, ArrayRef<Input> tokens,
                                        ArrayRef<int64_t> positions,
                                        const ForwardOptions &options) override;
  Expected<PatchStep> patch(Run &full, Run &reduced, const Input &token, int64_t position,
                            const PatchOptions &options) override;
  Error patchEach(Run &full, Run &reduced, ArrayRef<Input> tokens, ArrayRef<int64_t> positions,
                  const PatchEachOptions &options, PatchSink sink) override;
  Expected<std::vector<double>> readHead(ArrayRef<double> streams, int64_t rows) override;
  bool isBidirectional() const override { return false; }
  int64_t vocabulary() const override { return program.vocabulary; }
  int64_t layers() const override { return program.layers; }

private:
  Error check(const GpuRun &run, ArrayRef<Input> tokens, ArrayRef<int64_t> positions) const {
    if (Error error = checkStep(program, run.count, run.last(), run.capacity, tokens, positions))
      return error;
    if (hasRows(tokens))
      return makeError("a row in a token's place is not run on a GPU; run it with --backend "
                       "compiled");
    return checkIds(program, tokens, positions);
  }
  Expected<RecordedSteps *> recordForward(GpuRun &run, bool isPatched, bool withHead);
  Expected<RecordedSteps *> recordPatch(GpuRun &full, GpuRun &reduced, int64_t startLayer);
  Error forwardOne(GpuRun &run, int64_t token, int64_t position, const ForwardOptions &options,
                   bool withHead);
  Expected<PatchStep> patchOne(GpuRun &full, GpuRun &reduced, int64_t token, int64_t position,
                               const PatchOptions &options);
  /// What a layer gave, row after row.
  using SeenLayers = std::vector<std::pair<int64_t, std::vector<double>>>;
  Error see(SeenLayers &layers, int64_t stream);
  Value logitsValue() { return program.steps.back().layer->getBlock()->back().getOperand(0); }

  Program program;
  GpuProgram gpu;
  const PatchableNames names;
  RecordedSteps headAlone; ///< of readHead
  int64_t nextRun = 0;
};

Error noMaterialized() {
  return makeError("a patch that is added to the weights is not run on a GPU; run it factored, or "
                   "with --backend compiled");
}

} // namespace

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

Expected<RecordedSteps *> GpuExecutor::recordForward(GpuRun &run, bool isPatched, bool withHead) {
  RecordedSteps &record = run.forward[isPatched][withHead];
  if (record.sequence)
    return &record;
  record.temporaries.clear();
  std::vector<Device::Launch> launches;
  GpuRun *const runs[2] = {&run, nullptr};
  for (const TokenKernel &each : forwardKernels(program, isPatched, withHead))
    if (Error error = gpu.addLaunches(each.step, each.block, 0, runs, launches, record))
      return std::move(error);
  if (Error error = gpu.record(launches, record))
    return std::move(error);
  return &record;
}

/// Adds each layer's output of the token at hand.
Error GpuExecutor::see(SeenLayers &layers, int64_t stream) {
  size_t next = 0;
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    if (!step.index && i > 0)
      continue;
    if (layers.size() == next)
      layers.push_back({step.index.value_or(-1), {}});
    std::vector<double> &rows = layers[next++].second;
    for (Value output : step.layer.getOutputs()) {
      auto numbers = gpu.value(output, stream);
      if (!numbers)
        return numbers.takeError();
      rows.insert(rows.end(), numbers->begin(), numbers->end());
    }
  }
  return Error::success();
}

Error GpuExecutor::forwardOne(GpuRun &run, int64_t token, int64_t position,
                              const ForwardOptions &options, bool withHead) {
  auto record = recordForward(run, options.patch, withHead);
  if (!record)
    return record.takeError();
  if (Error error = gpu.setToken(token, position, &run, nullptr))
    return error;
  auto seconds = gpu.device->run(*(*record)->sequence);
  return seconds ? Error::success() : seconds.takeError();
}

Expected<std::vector<double>> GpuExecutor::forward(Run &opaque, ArrayRef<Input> tokens,
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
  std::vector<double> all;
  SeenLayers layers;
  int64_t before = run.count;
  auto step = [&]() -> Error {
    for (auto [i, token] : llvm::enumerate(tokens)) {
      bool wanted = options.allLogits || i + 1 == tokens.size();
      if (Error error = forwardOne(run, token.token(), positions[i], options, wanted))
        return error;
      ++run.count;
      if (options.observer)
        if (Error error = see(layers, 0))
          return error;
      if (!wanted)
        continue;
      auto numbers = gpu.value(logitsValue(), 0);
      if (!numbers)
        return numbers.takeError();
      auto logits = finiteLogits(*numbers);
      if (!logits)
        return logits.takeError();
      llvm::append_range(all, *logits);
    }
    return Error::success();
  };
  Error error = step();
  if (error || !options.append)
    run.count = before;
  if (error)
    return std::move(error);
  for (auto &[layer, rows] : layers)
    options.observer(layer, rows, tokens.size());
  return all;
}

Expected<std::vector<double>> GpuExecutor::readHead(ArrayRef<double> streams, int64_t rows) {
  Expected<size_t> head = checkHead(program, streams.size(), rows);
  if (!head)
    return head.takeError();
  if (!headAlone.sequence) {
    GpuRun none(gpu.device, -1, 1, 0);
    GpuRun *const runs[2] = {&none, nullptr};
    std::vector<Device::Launch> launches;
    if (Error error =
            gpu.addLaunches(*head, program.steps[*head].block, 0, runs, launches, headAlone))
      return std::move(error);
    if (Error error = gpu.record(launches, headAlone))
      return std::move(error);
  }
  std::vector<double> all;
  for (int64_t r = 0; r < rows; ++r) {
    ArrayRef<double> row = streams.slice(r * (streams.size() / rows), streams.size() / rows);
    Rows numbers(row.begin(), row.end());
    if (Error error = gpu.setValue(program.steps[*head].layer.getInputs()[0], numbers))
      return std::move(error);
    auto seconds = gpu.device->run(*headAlone.sequence);
    if (!seconds)
      return seconds.takeError();
    auto logits = gpu.value(logitsValue(), 0);
    if (!logits)
      return logits.takeError();
    auto checked = finiteLogits(*logits);
    if (!checked)
      return checked.takeError();
    llvm::append_range(all, *checked);
  }
  return all;
}

//===----------------------------------------------------------------------===//
// Algorithm 1
//===----------------------------------------------------------------------===//

Expected<RecordedSteps *> GpuExecutor::recordPatch(GpuRun &full, GpuRun &reduced,
                                                   int64_t startLayer) {
  RecordedSteps &record = full.patch[{reduced.id, startLayer}];
  if (record.sequence)
    return &record;
  record.temporaries.clear();
  std::vector<Device::Launch> launches;
  GpuRun *const runs[2] = {&full, &reduced};
  for (const TokenKernel &each : patchKernels(program, startLayer)) {
    GpuRun *const own[2] = {runs[each.stream], nullptr};
    bool isDual = each.block == program.steps[each.step].dual;
    if (Error error = gpu.addLaunches(each.step, each.block, each.stream, isDual ? runs : own,
                                      launches, record))
      return std::move(error);
  }
  if (Error error = gpu.record(launches, record))
    return std::move(error);
  return &record;
}

Expected<PatchStep> GpuExecutor::patchOne(GpuRun &full, GpuRun &reduced, int64_t token,
                                          int64_t position, const PatchOptions &options) {
  auto record = recordPatch(full, reduced, options.startLayer);
  if (!record)
    return record.takeError();
  if (Error error = gpu.setToken(token, position, &full, &reduced))
    return std::move(error);
  if (Error error = gpu.clearCounts())
    return std::move(error);
  auto seconds = gpu.device->run(*(*record)->sequence);
  if (!seconds)
    return seconds.takeError();
  PatchStep result;
  result.obligations.resize(program.layers);
  result.replayError.resize(program.layers);
  for (auto [i, step] : llvm::enumerate(program.steps))
    if (step.dual && step.index && *step.index >= options.startLayer)
      if (Error error = gpu.readPatch(i, result))
        return std::move(error);
  const LayerObserver *observers[] = {&options.fullObserver, &options.reducedObserver};
  std::vector<double> *wanted[] = {&result.fullLogits, &result.reducedLogits};
  int64_t *next[] = {&result.fullNext, &result.reducedNext};
  for (int64_t stream : {0, 1}) {
    if (*observers[stream]) {
      SeenLayers layers;
      if (Error error = see(layers, stream))
        return std::move(error);
      for (auto &[layer, rows] : layers)
        (*observers[stream])(layer, rows, 1);
    }
    auto logits = gpu.value(logitsValue(), stream);
    if (!logits)
      return logits.takeError();
    auto largest = largestLogit(*logits);
    if (!largest)
      return largest.takeError();
    *next[stream] = *largest;
    if (options.logits)
      wanted[stream]->assign(logits->begin(), logits->end());
  }
  ++full.count;
  return result;
}

Expected<PatchStep> GpuExecutor::patch(Run &opaqueFull, Run &opaqueReduced, const Input &token,
                                       int64_t position, const PatchOptions &options) {
  auto &full = static_cast<GpuRun &>(opaqueFull);
  auto &reduced = static_cast<GpuRun &>(opaqueReduced);
  if (&full == &reduced)
    return makeError("the full and the reduced run are one; they need a run each");
  for (GpuRun *run : {&full, &reduced})
    if (Error error = check(*run, token, position))
      return std::move(error);
  if (Error error = checkStartLayer(program, options.startLayer))
    return std::move(error);
  if (options.materialize)
    return noMaterialized();
  return patchOne(full, reduced, token.token(), position, options);
}

Error GpuExecutor::patchEach(Run &full, Run &reduced, ArrayRef<Input> tokens,
                             ArrayRef<int64_t> positions, const PatchEachOptions &options,
                             PatchSink sink) {
  if (Error error = check(static_cast<GpuRun &>(full), tokens, positions))
    return error;
  int64_t before = full.size();
  for (auto [token, position] : llvm::zip(tokens, positions)) {
    PatchOptions one;
    one.startLayer = options.startLayer;
    one.logits = options.logits;
    auto step = patch(full, reduced, token, position, one);
    Error error = step ? Error::success() : step.takeError();
    if (!error) {
      TokenPatch made;
      made.token = token.token();
      made.position = position;
      made.fullLogits = std::move(step->fullLogits);
      made.reducedLogits = std::move(step->reducedLogits);
      made.obligations = std::move(step->obligations);
      made.replayError = std::move(step->replayError);
      auto give = [&]() -> Expected<Patch> { return std::move(step->patch); };
      made.patch = give;
      error = sink(made);
    }
    if (error) {
      full.truncate(before);
      return error;
    }
  }
  return Error::success();
}

Expected<std::unique_ptr<Executor>>
ctxc::createGpuExecutor(const Program &program, Weights &weights, std::unique_ptr<Device> device) {
  if (ctxc::isBidirectional(program))
    return makeError("the model is bidirectional, and kernels of a GPU take a token at a time; run "
                     "it with --backend compiled");
  DialectRegistry registry;
  registerCodegenDialects(registry);
  registerGpuDialects(registry);
  ModuleOp module = program.module;
  module.getContext()->appendDialectRegistry(registry);
  module.getContext()->loadAllAvailableDialects();
  Program both = program;
  addDualHead(both);
  auto executor = std::make_unique<GpuExecutor>(both, weights, std::move(device));
  if (Error error = executor->compile())
    return std::move(error);
  return executor;
}
