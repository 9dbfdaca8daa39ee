#include "lib/Runtime/GPU/GpuPatchEach.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/Logits.h"

using namespace mlir;
using namespace ctxc;
using llvm::Error;
using llvm::Expected;

/// How many bytes of factors are downloaded together.
static constexpr size_t partsBytes = size_t(64) << 20;

Error GpuPatchEach::run(RecordedChunk &chunk, GpuRun &full, GpuRun &reduced,
                        ArrayRef<int64_t> chunkTokens, ArrayRef<int64_t> chunkPositions,
                        PatchSink sink) {
  gpu = chunk.program;
  tokens = chunkTokens;
  positions = chunkPositions;
  partsCount = logitsCount = 0;
  std::vector<int32_t> ids(tokens.begin(), tokens.end()), at(positions.begin(), positions.end());
  if (Error error = gpu->setTokens(ids, at, &full, &reduced))
    return error;
  if (Error error = gpu->clearCounts())
    return error;
  if (Error error = streams.put(*gpu, rows()))
    return error;
  if (Error error = gpu->run(chunk.steps))
    return error;
  if (Error error = streams.pass(*gpu, rows()))
    return error;
  full.count += rows();
  for (size_t i = 0; i < program.steps.size(); ++i)
    if (isPatched(i))
      if (Error error = gpu->readChecks(i, rows(), obligations[i], replayError[i]))
        return error;
  // The sink may run other prompts, which overwrite them.
  if (Error error = readOutputs())
    return error;
  for (int64_t row = 0; row < rows(); ++row)
    if (Error error = give(row, sink))
      return error;
  return Error::success();
}

/// What the rank's layers made at the end: what the head reads, or what goes to the next rank.
ValueRange GpuPatchEach::lastValues() const {
  if (!store.hasLogits())
    return store.stage.out;
  xf::LayerOp last = program.steps.back().layer;
  return head ? ValueRange(last.getInputs()) : ValueRange(last.getOutputs());
}

Error GpuPatchEach::readOutputs() {
  for (int64_t run : {0, 1}) {
    outputs[run].clear();
    for (Value output : lastValues()) {
      auto numbers = streams.value(*gpu, output, run, 0, rows());
      if (!numbers)
        return numbers.takeError();
      outputs[run].push_back(std::move(*numbers));
    }
  }
  return Error::success();
}

/// Checks a token's output of this rank's last layer in both runs: NaN and infinity of earlier
/// layers show there.
Error GpuPatchEach::checkFinite(int64_t row) {
  for (const std::vector<Rows> &ofRun : outputs)
    for (const Rows &all : ofRun)
      if (Error error = checkFiniteRow(all, row, rows(), positions[row]))
        return error;
  return Error::success();
}

/// Computes the logits of some tokens together, from the one that is asked for on.
Error GpuPatchEach::readLogits(int64_t row, TokenPatch &given) {
  if (logitsCount == 0 || row >= logitsFrom + logitsCount) {
    logitsFrom = row;
    logitsCount = std::min(head ? head->rows() : 1, rows() - row);
    for (int64_t run : {0, 1}) {
      std::vector<Rows> inputs;
      for (const Rows &all : outputs[run]) {
        size_t width = all.size() / rows();
        auto from = all.begin() + row * width;
        inputs.emplace_back(from, from + logitsCount * width);
      }
      if (!head) { // the last layer's output has the logits
        logits[run] = std::move(inputs.front());
        continue;
      }
      auto made = head->logitsOf(inputs, logitsCount);
      if (!made)
        return made.takeError();
      logits[run] = std::move(*made);
    }
  }
  for (int64_t run : {0, 1}) {
    size_t width = logits[run].size() / logitsCount;
    auto checked = finiteLogits(ArrayRef(logits[run]).slice((row - logitsFrom) * width, width));
    if (!checked)
      return checked.takeError();
    (run == 0 ? given.fullLogits : given.reducedLogits) = std::move(*checked);
  }
  return Error::success();
}

Error GpuPatchEach::readParts(int64_t row) {
  if (partsCount && row >= partsFrom && row < partsFrom + partsCount)
    return Error::success();
  size_t each = 1;
  for (size_t i = 0; i < program.steps.size(); ++i)
    each += isPatched(i) ? gpu->patchBytes(i) : 0;
  partsCount = 0; // until everything is downloaded
  int64_t count = std::clamp<int64_t>(partsBytes / each, 1, rows() - row);
  std::vector<Device::Piece> pieces;
  for (size_t i = 0; i < program.steps.size(); ++i)
    if (isPatched(i))
      gpu->findParts(i, row, count, parts[i], pieces);
  if (Error error = store.device->downloadAll(pieces))
    return error;
  partsFrom = row;
  partsCount = count;
  return Error::success();
}

Error GpuPatchEach::give(int64_t row, PatchSink sink) {
  if (Error error = checkFinite(row))
    return error;
  TokenPatch given;
  given.token = tokens[row];
  given.position = positions[row];
  given.obligations.resize(program.layers);
  given.replayError.resize(program.layers);
  for (auto [i, step] : llvm::enumerate(program.steps))
    if (isPatched(i)) {
      given.obligations[*step.index] = obligations[i][row];
      given.replayError[*step.index] = replayError[i][row];
    }
  if (options.logits && store.hasLogits())
    if (Error error = readLogits(row, given))
      return error;
  auto makePatch = [&]() -> Expected<Patch> {
    Patch patch;
    if (Error error = readParts(row))
      return std::move(error);
    for (size_t i = 0; i < program.steps.size(); ++i)
      if (isPatched(i))
        if (Error error = gpu->readParts(i, parts[i], row - partsFrom, patch))
          return std::move(error);
    return patch;
  };
  given.patch = makePatch;
  return sink(given);
}
