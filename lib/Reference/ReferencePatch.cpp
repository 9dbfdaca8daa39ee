// Algorithm 1 in the reference: the patches of one token, or of many.
#include "ReferenceExecutor.h"
#include "ReplayPrediction.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

llvm::Error ReferenceExecutor::runPlain(size_t index, ReferenceRun &run, Values &values,
                                        const Input &token, int64_t position, Weights &from) {
  ProgramStep &step = program.steps[index];
  const int64_t id = token.token();
  Environment environment{from, step.layer, id, position, {{std::nullopt, &run.blocks[index]}}};
  environment.mayGoOn = mayGoOn;
  environment.rounds = true;
  Evaluation evaluation(environment);
  auto outputs = step.ofEmbedding && token.isEmbedding()
                     ? embed(step, token, position, from)
                     : evaluateBlock(step.block, inputsOf(step.layer, values), evaluation);
  if (!outputs)
    return outputs.takeError();
  setOutputs(step.layer, *outputs, values);
  return llvm::Error::success();
}

/// Runs a layer's dual block: the outputs of both runs, the layer's patch, its
/// obligations and predicted replay error.
llvm::Error ReferenceExecutor::runDual(size_t index, Pair &pair, bool materialize,
                                       PatchStep &result) {
  ProgramStep &step = program.steps[index];
  const int64_t id = pair.token.token();
  Environment environment{
      weights,
      step.layer,
      id,
      pair.position,
      {{xf::Run::full, &pair.full.blocks[index]}, {xf::Run::reduced, &pair.reduced.blocks[index]}}};
  environment.mayGoOn = mayGoOn;
  environment.rounds = true;
  llvm::SmallVector<Matrix> inputs = inputsOf(step.layer, pair.fullValues);
  llvm::append_range(inputs, inputsOf(step.layer, pair.reducedValues));
  Evaluation evaluation(environment);
  auto outputs = evaluateBlock(step.dual, inputs, evaluation);
  if (!outputs)
    return outputs.takeError();
  size_t half = outputs->size() / 2;
  setOutputs(step.layer, ArrayRef(*outputs).take_front(half), pair.fullValues);
  setOutputs(step.layer, ArrayRef(*outputs).take_back(half), pair.reducedValues);

  for (const LayerObligations &counts : environment.obligations) {
    result.obligations[*step.index].harmless += counts.harmless;
    result.obligations[*step.index].harmful += counts.harmful;
  }
  result.replayError[*step.index] = predictReplayError(step.dual, evaluation);
  Patch patch;
  for (const BlockPatch &store : environment.stores) {
    auto entries = toStored(store, step.block, step.layer);
    if (!entries)
      return entries.takeError();
    patch.add(std::move(*entries));
  }
  llvm::append_range(result.patch.parameters, patch.parameters);
  if (!materialize)
    return llvm::Error::success();
  // The materialised layer's actual output, with the rounding of its weights.
  MaterializedWeights patched(weights, patch);
  pair.reduced.blocks[index].truncate(pair.reduced.size());
  return runPlain(index, pair.reduced, pair.reducedValues, pair.token, pair.position, patched);
}

llvm::Expected<PatchStep> ReferenceExecutor::computePatch(Run &full, Run &reduced,
                                                          const Input &token, int64_t position,
                                                          const PatchOptions &options) {
  Pair pair{static_cast<ReferenceRun &>(full),
            static_cast<ReferenceRun &>(reduced),
            token,
            position,
            Values(),
            Values()};
  for (ReferenceRun *run : {&pair.full, &pair.reduced})
    if (llvm::Error error = checkStep(*run, token, position))
      return error;
  if (llvm::Error error = checkStartLayer(program, options.startLayer))
    return std::move(error);

  Rollback fullRollback(pair.full), reducedRollback(pair.reduced);
  PatchStep result;
  result.obligations.resize(program.layers);
  result.replayError.resize(program.layers);
  auto outputsOf = [](xf::LayerOp layer, const Values &values) {
    return llvm::map_to_vector(layer.getOutputs(), [&](Value v) { return values.lookup(v); });
  };
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    if (step.isPatchedFrom(options.startLayer)) {
      if (llvm::Error error = runDual(i, pair, options.materialize, result))
        return error;
    } else {
      if (llvm::Error error = runPlain(i, pair.full, pair.fullValues, token, position, weights))
        return error;
      if (options.reducedHead || program.head() != i)
        if (llvm::Error error =
                runPlain(i, pair.reduced, pair.reducedValues, token, position, weights))
          return error;
    }
    observe(options.fullObserver, step, i == 0, outputsOf(step.layer, pair.fullValues));
    observe(options.reducedObserver, step, i == 0, outputsOf(step.layer, pair.reducedValues));
  }
  auto fullLogits = logits(pair.fullValues, position);
  if (!fullLogits)
    return fullLogits.takeError();
  result.fullNext = argmax(*fullLogits);
  result.fullLogits = std::move(*fullLogits);
  if (options.reducedHead) {
    auto reducedLogits = logits(pair.reducedValues, position);
    if (!reducedLogits)
      return reducedLogits.takeError();
    result.reducedNext = argmax(*reducedLogits);
    result.reducedLogits = std::move(*reducedLogits);
  }
  fullRollback.keep(position);
  return result;
}

/// Token by token, each with a copy of the kept tokens before it.
llvm::Error ReferenceExecutor::computePatchEach(Run &opaqueFull, Run &opaqueReduced,
                                                ArrayRef<Input> tokens, ArrayRef<int64_t> positions,
                                                const PatchEachOptions &options, PatchSink sink) {
  auto &full = static_cast<ReferenceRun &>(opaqueFull);
  auto &reduced = static_cast<ReferenceRun &>(opaqueReduced);
  if (llvm::Error error = checkStep(full, tokens, positions))
    return error;
  int64_t before = full.size();
  auto patchOne = [&](const Input &token, int64_t position) -> llvm::Error {
    ReferenceRun kept = reduced;
    kept.truncate(llvm::lower_bound(reduced.positions, position) - reduced.positions.begin());
    PatchOptions one;
    one.startLayer = options.startLayer;
    llvm::Expected<PatchStep> step = computePatch(full, kept, token, position, one);
    if (!step)
      return step.takeError();
    if (!options.logits)
      step->fullLogits = step->reducedLogits = Logits();
    return give(token.token(), position, std::move(*step), sink);
  };
  const int64_t count = tokens.size();
  tell(0, count, 1);
  for (int64_t i = 0; i < count; ++i) {
    if (llvm::Error error = patchOne(tokens[i], positions[i])) {
      full.truncate(before);
      return error;
    }
    tell(i + 1, count, 1);
  }
  return llvm::Error::success();
}
