#include "lib/Runtime/PatchEach.h"
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/Logits.h"

using namespace mlir;
using namespace ctxc;

/// A chunk's patches are kept until its last layer is done: at most so many bytes, in at most so
/// many tokens. With more tokens the weights would be read less often, which no longer matters.
constexpr int64_t maxPartsBytes = 96 << 20, maxChunk = 96, minChunk = 4;

/// From this many tokens on it pays to compile kernels for tokens that do not see each other.
constexpr int64_t aloneFrom = 16;

/// Tokens of each run that go through the head together: each has a vocabulary of logits.
constexpr int64_t headRows = 8;

llvm::Error PatchEach::check(ArrayRef<Input> tokens, ArrayRef<int64_t> positions) {
  if (llvm::Error error =
          checkStep(program, full.count, full.last(), full.capacity, tokens, positions))
    return error;
  for (const CompiledRun *run : {&full, &reduced})
    if (llvm::Error error = run->checkSeen())
      return error;
  bool isBehind = positions.empty() || positions.front() > reduced.last();
  if (!isBehind && llvm::any_of(reduced.steps, [](const StepState &step) { return step.first; }))
    return makeError("the reduced run holds tokens at positions up to " +
                     llvm::Twine(reduced.last()) + " and no longer all of those that position " +
                     llvm::Twine(positions.front()) + " sees; start it so that it keeps all");
  if (reduced.count + 1 > reduced.capacity)
    return makeError("the reduced run has room for " + llvm::Twine(reduced.capacity) +
                     " tokens, and needs it for one more than the " + llvm::Twine(reduced.count) +
                     " that it holds");
  if (llvm::Error error = checkIds(program, tokens, positions))
    return error;
  return checkStartLayer(program, options.startLayer);
}

int64_t ctxc::chunkOfPatches(const Program &program, const Stage &stage, KernelCalls &kernels,
                             const PatchEachOptions &options) {
  if (options.chunk > 0)
    return options.chunk;
  int64_t each = 1;
  for (auto [i, step] : llvm::enumerate(program.steps))
    if (stage.has(i) && step.isPatchedFrom(options.startLayer))
      each += kernels.partsSize(step.dual) * sizeof(float);
  return std::clamp<int64_t>(maxPartsBytes / each, minChunk, maxChunk);
}

llvm::Error PatchEach::run(ArrayRef<Input> allTokens, ArrayRef<int64_t> allPositions,
                           PatchSink sink) {
  if (llvm::Error error = check(allTokens, allPositions))
    return error;
  const int64_t chunk = chunkOfPatches(program, stage, kernels, options), count = allTokens.size();
  if (llvm::Error error = kernels.checkMemory(full, chunk))
    return error;
  RunRestorer restore(full, /*inChunks=*/chunk < count);
  reduced.begin();
  for (int64_t from = 0; from < count; from += chunk) {
    int64_t size = std::min(chunk, count - from);
    given = allTokens.slice(from, size);
    tokens = kernelIds(given);
    ArrayRef<int64_t> at = allPositions.slice(from, size);
    positions.assign(at.begin(), at.end());
    if (llvm::Error error = runChunk(sink))
      return error;
  }
  restore.release();
  return llvm::Error::success();
}

bool PatchEach::isPatched(size_t step) const {
  return stage.has(step) && program.steps[step].isPatchedFrom(options.startLayer);
}

llvm::Error PatchEach::runChunk(PatchSink sink) {
  llvm::copy(positions, full.slots.begin() + full.count);
  headCount = 0;
  for (Values &ofRun : values)
    ofRun.clear();
  if (llvm::Error error = receiveStreams(stage, neighbours, values))
    return error;
  for (size_t i = stage.first; i < stage.end; ++i)
    if (!isHead(i))
      if (llvm::Error error = runStep(i))
        return error;
  if (llvm::Error error = sendStreams(stage, neighbours, values))
    return error;
  full.count += rows();
  for (int64_t row = 0; row < rows(); ++row)
    if (llvm::Error error = give(row, sink))
      return error;
  return llvm::Error::success();
}

llvm::Error PatchEach::runStep(size_t step) {
  const ProgramStep &at = program.steps[step];
  if (isPatched(step))
    return runPatched(step);
  if (!at.index && !readsContext(at.block))
    return runTogether(kernels, at, step, weights, given, positions, values, memory);
  if (llvm::Error error = runPlainFull(step))
    return error;
  return runPlainReduced(step);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

llvm::Error PatchEach::runPatched(size_t step) {
  ProgramStep &at = program.steps[step];
  StepCall frame;
  frame.rows = rows();
  frame.tokens = tokens;
  frame.positions = positions;
  frame.runs[0] = &full;
  frame.runs[1] = &reduced;
  frame.parts = &parts[step];
  frame.alone = reduced.count == 0 && rows() >= aloneFrom;
  if (llvm::Error error = runDual(kernels, at, step, weights, frame, values))
    return error;
  obligations[step] = std::move(frame.obligations);
  replayError[step] = std::move(frame.replayError);
  return llvm::Error::success();
}

llvm::Error PatchEach::runPlainFull(size_t step) {
  ProgramStep &at = program.steps[step];
  StepCall frame;
  frame.rows = rows();
  frame.tokens = tokens;
  frame.positions = positions;
  frame.runs[0] = &full;
  for (Value input : at.layer.getInputs())
    frame.inputs.push_back(&values[0][input]);
  if (llvm::Error error = kernels.call(step, at.block, weights, frame))
    return error;
  for (auto [value, x] : llvm::zip(at.layer.getOutputs(), frame.outputs))
    values[0][value] = std::move(x);
  return llvm::Error::success();
}

/// A layer that is not patched has no kernel for tokens that do not see each other: they are run
/// one by one, each with the state of the kept tokens before it.
llvm::Error PatchEach::runPlainReduced(size_t step) {
  ProgramStep &at = program.steps[step];
  CompiledRun run(reduced.capacity, program.steps.size());
  run.slots = reduced.slots;
  std::vector<Rows> inputs(at.layer.getInputs().size());
  Values outputs;
  for (int64_t row = 0; row < rows(); ++row) {
    run.steps[step] = reduced.steps[step];
    auto kept = ArrayRef(reduced.slots).take_front(reduced.count);
    run.count = llvm::lower_bound(kept, positions[row]) - kept.begin();
    run.slots[run.count] = positions[row];
    run.begin();
    StepCall frame;
    frame.tokens = ArrayRef(tokens).slice(row, 1);
    frame.positions = ArrayRef(positions).slice(row, 1);
    frame.runs[0] = &run;
    for (auto [input, x] : llvm::zip(at.layer.getInputs(), inputs)) {
      const Rows &all = values[1][input];
      size_t width = all.size() / rows();
      x.assign(all.begin() + row * width, all.begin() + (row + 1) * width);
      frame.inputs.push_back(&x);
    }
    if (llvm::Error error = kernels.call(step, at.block, weights, frame))
      return error;
    for (auto [value, x] : llvm::zip(at.layer.getOutputs(), frame.outputs))
      llvm::append_range(outputs[value], x);
    run.slots[run.count] = reduced.slots[run.count];
  }
  for (Value value : at.layer.getOutputs())
    values[1][value] = std::move(outputs[value]);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// What the sink gets for a token
//===----------------------------------------------------------------------===//

/// The logits of both runs of `count` tokens from `from` on.
llvm::Error PatchEach::runHead(int64_t from, int64_t count) {
  const size_t step = program.steps.size() - 1;
  ProgramStep &at = program.steps[step];
  const Value logits = program.logits(); // a step that is no head has run like any other
  Values some[2];
  for (int run : {0, 1})
    for (Value value : isHead(step) ? ValueRange(at.layer.getInputs()) : ValueRange(logits)) {
      const Rows &all = values[run][value];
      auto begin = all.begin() + from * (all.size() / rows());
      some[run][value].assign(begin, begin + count * (all.size() / rows()));
    }
  if (isHead(step))
    if (llvm::Error error = runTogether(kernels, at, step, weights, given.slice(from, count),
                                        ArrayRef(positions).slice(from, count), some, memory))
      return error;
  for (int run : {0, 1})
    headLogits[run] = std::move(some[run][logits]);
  return llvm::Error::success();
}

/// NaN and infinity of earlier layers show in the last layer's output.
llvm::Error PatchEach::checkFinite(int64_t row) {
  xf::LayerOp last =
      program.steps[program.steps.size() - (isHead(program.steps.size() - 1) ? 2 : 1)].layer;
  for (Values &ofRun : values)
    for (Value output : last.getOutputs())
      if (llvm::Error error = checkFiniteRow(ofRun[output], row, rows(), positions[row]))
        return error;
  return llvm::Error::success();
}

llvm::Error PatchEach::give(int64_t row, PatchSink sink) {
  const bool hasLogits = stage.end == program.steps.size();
  if (hasLogits)
    if (llvm::Error error = checkFinite(row))
      return error;
  TokenPatch given;
  given.token = this->given[row].token();
  given.position = positions[row];
  given.obligations.resize(program.layers);
  given.replayError.resize(program.layers);
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    if (!isPatched(i))
      continue;
    given.obligations[*step.index] = obligations[i][row];
    if (!replayError[i].empty())
      given.replayError[*step.index] = replayError[i][row];
  }
  if (options.logits && hasLogits) {
    if (row >= headFrom + headCount || headCount == 0) {
      headFrom = row;
      headCount = std::min(headRows, rows() - row);
      if (llvm::Error error = runHead(headFrom, headCount))
        return error;
    }
    for (int64_t run : {0, 1}) {
      auto logits =
          finiteLogits(ArrayRef(headLogits[run])
                           .slice((row - headFrom) * program.vocabulary, program.vocabulary));
      if (!logits)
        return logits.takeError();
      (run == 0 ? given.fullLogits : given.reducedLogits) = std::move(*logits);
    }
  }
  auto makePatch = [&]() -> llvm::Expected<Patch> {
    Patch patch;
    for (auto [i, step] : llvm::enumerate(program.steps))
      if (isPatched(i))
        if (llvm::Error error = kernels.readParts(i, step.dual, parts[i], row, patch))
          return std::move(error);
    return patch;
  };
  given.patch = makePatch;
  return sink(given);
}
