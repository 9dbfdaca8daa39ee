// Algorithm 1 with compiled kernels: the patches of one token.
#include "lib/Runtime/CompiledExecutor.h"
#include "lib/Runtime/Logits.h"

using namespace mlir;
using namespace ctxc;

/// One of the model's ends for both runs, in one sweep over its weights.
llvm::Error CompiledExecutor::runBoth(size_t index, const Input &token, int32_t position) {
  ProgramStep &step = program.steps[index];
  const Input given[2] = {token, token};
  const std::vector<int32_t> tokens = kernelIds(given);
  const int32_t positions[2] = {position, position};
  StepCall frame;
  frame.rows = 2;
  frame.given = given;
  frame.tokens = tokens;
  frame.positions = positions;
  both.inputs.resize(step.layer.getInputs().size());
  for (auto [input, packed] : llvm::zip(step.layer.getInputs(), both.inputs)) {
    packed.clear();
    for (Values &ofRun : values)
      llvm::append_range(packed, ofRun[input]);
    frame.inputs.push_back(&packed);
  }
  frame.outputs = std::move(both.outputs);
  if (llvm::Error error = kernels.call(index, step.block, weights, frame))
    return error;
  both.outputs = std::move(frame.outputs);
  for (auto [value, x] : llvm::zip(step.layer.getOutputs(), both.outputs))
    for (int run : {0, 1}) {
      auto begin = x.begin() + run * (x.size() / 2);
      values[run][value].assign(begin, begin + x.size() / 2);
    }
  return llvm::Error::success();
}

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
    if (step.dual && *step.index >= options.startLayer) {
      StepCall frame = frameFor(&full, &reduced);
      for (Values &ofRun : values)
        takeMemory(step.layer, ofRun, frame);
      for (Values &ofRun : values)
        for (Value input : step.layer.getInputs())
          frame.inputs.push_back(&ofRun[input]);
      if (llvm::Error error = kernels.call(i, step.dual, weights, frame))
        return std::move(error);
      size_t half = frame.outputs.size() / 2;
      for (auto [j, value] : llvm::enumerate(step.layer.getOutputs())) {
        values[0][value] = std::move(frame.outputs[j]);
        values[1][value] = std::move(frame.outputs[half + j]);
      }
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
      if (llvm::Error error = runBoth(i, token, at))
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
