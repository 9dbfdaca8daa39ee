#include "lib/Runtime/GPU/GpuForward.h"
#include "ctxc/Program/TokenKernels.h"
#include "lib/Runtime/Logits.h"

using namespace mlir;
using namespace ctxc;
using llvm::Error;
using llvm::Expected;

Expected<RecordedSteps *> GpuForward::record(bool withHead) {
  RecordedSteps &record = run.forward[isPatched()][withHead];
  if (record.isRecorded())
    return &record;
  SmallVector<StepKernel> kernels;
  for (const TokenKernel &each : forwardKernels(program, isPatched(), withHead))
    if (one.store.stage.has(each.step))
      kernels.push_back({each.step, each.block, 0, {&run, nullptr}});
  if (Error error = one.record(kernels, record))
    return std::move(error);
  return &record;
}

Error ctxc::readLayers(GpuProgram &from, int64_t run, int64_t rows, SeenLayers &layers) {
  size_t next = 0;
  for (auto [i, step] : llvm::enumerate(from.store.program.steps)) {
    if (!from.store.stage.has(i) || (!step.index && i > 0))
      continue;
    if (layers.size() == next)
      layers.push_back({step.index.value_or(-1), {}});
    std::vector<Rows> outputs;
    for (Value output : xf::LayerOp(step.layer).getOutputs()) {
      auto numbers = from.value(output, run, 0, rows);
      if (!numbers)
        return numbers.takeError();
      outputs.push_back(std::move(*numbers));
    }
    std::vector<double> &seen = layers[next++].second;
    for (int64_t row = 0; row < rows; ++row)
      for (const Rows &output : outputs) {
        size_t width = output.size() / rows;
        auto begin = output.begin() + row * width;
        seen.insert(seen.end(), begin, begin + width);
      }
  }
  return Error::success();
}

Error ctxc::readLogits(GpuProgram &from, const PatchOptions &options, PatchStep &result) {
  Logits *wanted[] = {&result.fullLogits, &result.reducedLogits};
  int64_t *next[] = {&result.fullNext, &result.reducedNext};
  for (int64_t run = 0; run < (options.reducedHead ? 2 : 1); ++run) {
    auto logits = from.value(from.store.program.logits(), run, 0, 1);
    if (!logits)
      return logits.takeError();
    auto largest = largestLogit(*logits);
    if (!largest)
      return largest.takeError();
    *next[run] = *largest;
    if (options.logits)
      *wanted[run] = std::vector<float>(logits->begin(), logits->end());
  }
  return Error::success();
}

Error GpuForward::addLogits(ArrayRef<float> numbers) {
  if (Error error = checkFinite(numbers))
    return error;
  llvm::append_range(logits, numbers);
  return Error::success();
}

Error GpuForward::runOne(int32_t token, int32_t position, bool withHead) {
  auto recorded = record(withHead);
  if (!recorded)
    return recorded.takeError();
  if (Error error = one.setTokens(token, position, &run, nullptr))
    return error;
  if (Error error = streams.put(one, 1))
    return error;
  if (Error error = one.run(**recorded))
    return error;
  if (Error error = streams.pass(one, 1))
    return error;
  ++run.count;
  if (options.observer)
    if (Error error = readLayers(one, 0, 1, layers))
      return error;
  if (!withHead || !one.store.hasLogits())
    return Error::success();
  auto numbers = one.value(program.logits(), 0, 0, 1);
  return numbers ? addLogits(*numbers) : numbers.takeError();
}

/// Runs at most as many tokens as the chunk has rows; `isLast`: the last of them is the call's
/// last.
Error GpuForward::runChunk(RecordedChunk &chunk, ArrayRef<int32_t> tokens,
                           ArrayRef<int32_t> positions, bool isLast) {
  GpuProgram &rows = *chunk.program;
  if (Error error = rows.setTokens(tokens, positions, &run, nullptr))
    return error;
  int64_t count = tokens.size();
  if (Error error = streams.put(rows, count))
    return error;
  if (Error error = rows.run(chunk.steps))
    return error;
  if (Error error = streams.pass(rows, count))
    return error;
  run.count += count;
  if (options.observer)
    if (Error error = readLayers(rows, 0, count, layers))
      return error;
  // The head can be as large as all layers together: only tokens whose logits are asked for go
  // through it.
  int64_t wanted = options.allLogits ? count : isLast;
  if (!wanted || !one.store.hasLogits())
    return Error::success();
  if (!head) {
    auto numbers = rows.value(program.logits(), 0, count - wanted, wanted);
    return numbers ? addLogits(*numbers) : numbers.takeError();
  }
  std::vector<Rows> inputs;
  for (Value input : xf::LayerOp(program.steps.back().layer).getInputs()) {
    auto numbers = streams.value(rows, input, 0, count - wanted, wanted);
    if (!numbers)
      return numbers.takeError();
    inputs.push_back(std::move(*numbers));
  }
  auto made = head->logitsOf(inputs, wanted);
  return made ? addLogits(*made) : made.takeError();
}

Error GpuForward::runAll(ArrayRef<int32_t> tokens, ArrayRef<int32_t> positions) {
  tell(0);
  for (size_t at = 0; at < tokens.size();) {
    if (Error error = mayGoOn())
      return error;
    auto ready = streams.await(tokens.size() - at);
    if (!ready)
      return ready.takeError();
    const int64_t left = *ready;
    RecordedChunk *chunk = nullptr;
    if (left >= GpuPrompts::kShortest) {
      auto recorded = prompts.forward(run, isPatched(), left);
      if (!recorded)
        return recorded.takeError();
      chunk = *recorded;
    }
    int64_t count = chunk ? std::min(left, chunk->program->rows) : 1;
    bool isLast = at + count == tokens.size();
    if (Error error =
            chunk ? runChunk(*chunk, tokens.slice(at, count), positions.slice(at, count), isLast)
                  : runOne(tokens[at], positions[at], isLast || options.allLogits))
      return error;
    at += count;
    tell(at);
  }
  return Error::success();
}

Expected<Logits> GpuForward::forward(ArrayRef<int32_t> tokens, ArrayRef<int32_t> positions) {
  run.begin();
  Error error = runAll(tokens, positions);
  if (error || !options.append)
    error = llvm::joinErrors(std::move(error), run.undo());
  if (error)
    return std::move(error);
  for (auto &[layer, rows] : layers)
    options.observer(layer, rows, tokens.size());
  return Logits(std::move(logits));
}
