// Algorithm 1 with compiled kernels: the patches of one token.
#include "lib/Runtime/BothRuns.h"
#include "lib/Runtime/CompiledExecutor.h"
#include "lib/Runtime/Logits.h"

using namespace mlir;
using namespace ctxc;

/// The logits of both runs after their last step.
llvm::Error CompiledExecutor::readLogits(const PatchOptions &options, PatchStep &result) {
  Value logits = program.logits();
  Logits *wanted[] = {&result.fullLogits, &result.reducedLogits};
  int64_t *next[] = {&result.fullNext, &result.reducedNext};
  for (int run = 0; run < (options.reducedHead ? 2 : 1); ++run) {
    auto largest = largestLogit(values[run][logits]);
    if (!largest)
      return largest.takeError();
    *next[run] = *largest;
    if (options.logits)
      *wanted[run] = std::vector<float>(values[run][logits].begin(), values[run][logits].end());
  }
  return llvm::Error::success();
}

/// Makes room for a token in a run, behind those that it has.
llvm::Error CompiledExecutor::beginStep(CompiledRun &run, const Input &token, int64_t position) {
  if (llvm::Error error = checkStep(run, token, position))
    return error;
  if (llvm::Error error = readAgain(run))
    return error;
  run.slots[run.count] = position;
  run.begin();
  return llvm::Error::success();
}

llvm::Expected<PatchStep> CompiledExecutor::computePatch(Run &opaqueFull, Run &opaqueReduced,
                                                         const Input &token, int64_t position,
                                                         const PatchOptions &options) {
  auto &full = static_cast<CompiledRun &>(opaqueFull);
  auto &reduced = static_cast<CompiledRun &>(opaqueReduced);
  for (CompiledRun *run : {&full, &reduced})
    if (llvm::Error error = beginStep(*run, token, position))
      return std::move(error);
  if (llvm::Error error = checkIds(program, token, position))
    return std::move(error);
  if (llvm::Error error = checkStartLayer(program, options.startLayer))
    return std::move(error);

  PatchStep result;
  result.obligations.resize(program.layers);
  result.replayError.resize(program.layers);
  const int32_t id = kernelIds(token).front(), at = position;
  auto frameFor = [&](CompiledRun *first, CompiledRun *second) {
    StepCall frame;
    frame.given = token;
    frame.tokens = id;
    frame.positions = at;
    frame.runs[0] = first;
    frame.runs[1] = second;
    return frame;
  };
  auto plain = [&](size_t i, int run, Weights &from) {
    StepCall frame = frameFor(run == 0 ? &full : &reduced, nullptr);
    return runInto(i, program.steps[i].block, from, frame, values[run]);
  };

  if (llvm::Error error = receiveStreams(stage, neighbours, values))
    return std::move(error);
  for (size_t i = stage.first; i < stage.end; ++i) {
    ProgramStep step = program.steps[i];
    if (step.isPatchedFrom(options.startLayer)) {
      StepCall frame = frameFor(&full, &reduced);
      if (llvm::Error error = runDual(kernels, step, i, weights, frame, values))
        return std::move(error);
      result.obligations[*step.index] = frame.obligations.front();
      result.replayError[*step.index] = frame.replayError.empty() ? 0 : frame.replayError.front();
      if (options.materialize) { // the rounded weights' actual output
        MaterializedWeights patched(weights, frame.stores, kernels.parallelFor(), &patchedMemory);
        if (llvm::Error error = plain(i, 1, patched))
          return std::move(error);
      }
      result.patch.add(std::move(frame.stores.parameters));
    } else if (!options.reducedHead && isHead(i)) {
      if (llvm::Error error = plain(i, 0, weights))
        return std::move(error);
    } else if (!step.index && !readsContext(step.block)) {
      if (llvm::Error error = runTogether(kernels, step, i, weights, token, at, values, both))
        return std::move(error);
    } else {
      for (int run : {0, 1})
        if (llvm::Error error = plain(i, run, weights))
          return std::move(error);
    }
    observe(options.fullObserver, step, i == 0, values[0], 1);
    observe(options.reducedObserver, step, i == 0, values[1], 1);
  }
  if (llvm::Error error = sendStreams(stage, neighbours, values))
    return std::move(error);
  if (hasLogits())
    if (llvm::Error error = readLogits(options, result))
      return std::move(error);
  remember(full, full.count, token, /*withPatch=*/false);
  ++full.count;
  return result;
}
