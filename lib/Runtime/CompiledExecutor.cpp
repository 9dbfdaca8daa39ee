#include "lib/Runtime/CompiledExecutor.h"
#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/Logits.h"

using namespace mlir;
using namespace ctxc;

void ctxc::takeMemory(xf::LayerOp layer, Values &values, StepCall &frame) {
  for (Value output : layer.getOutputs())
    frame.outputs.push_back(std::move(values[output]));
}

/// Calls the kernel of `block` on the layer's values and binds its outputs.
llvm::Error CompiledExecutor::runInto(size_t step, xf::BlockOp block, Weights &from,
                                      StepCall &frame, Values &values) {
  xf::LayerOp layer = program.steps[step].layer;
  takeMemory(layer, values, frame); // before any address of a value is taken
  if (frame.inputs.empty())
    for (Value input : layer.getInputs())
      frame.inputs.push_back(&values[input]);
  if (llvm::Error error = kernels.call(step, block, from, frame))
    return error;
  for (auto [value, rows] : llvm::zip(layer.getOutputs(), frame.outputs))
    values[value] = std::move(rows);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

llvm::Error CompiledExecutor::checkStep(const CompiledRun &run, ArrayRef<Input> tokens,
                                        ArrayRef<int64_t> positions) const {
  if (llvm::Error error =
          ctxc::checkStep(program, run.count, run.last(), run.capacity, tokens, positions))
    return error;
  if (llvm::Error error = run.checkSeen())
    return error;
  return bidirectional ? checkSequence(run.count, run.sequence, tokens) : llvm::Error::success();
}

void ctxc::observe(const LayerObserver &observer, ProgramStep step, bool first,
                   const Values &values, int64_t rows) {
  if (!observer || (!step.index && !first))
    return;
  std::vector<double> seen;
  for (int64_t r = 0; r < rows; ++r)
    for (Value output : step.layer.getOutputs()) {
      const Rows &x = values.find(output)->second;
      size_t width = x.size() / rows;
      seen.insert(seen.end(), x.begin() + r * width, x.begin() + (r + 1) * width);
    }
  observer(step.index.value_or(-1), seen, rows);
}

void CompiledExecutor::forget(size_t step, Values &values) {
  xf::LayerOp layer = program.steps[step].layer;
  for (Value input : layer.getInputs())
    if (llvm::all_of(input.getUsers(), [&](Operation *user) {
          return user == layer || user->isBeforeInBlock(layer);
        }))
      values.erase(input);
}

/// The last step, where it computes each token's logits from that token alone.
bool CompiledExecutor::isHead(size_t step) const { return program.head() == step; }

/// How many floating point operations a step takes for a token, without those of attention.
static int64_t operationsOf(xf::BlockOp block) {
  int64_t operations = 0;
  auto add = [&](Value data, Value result) {
    operations += 2 * cast<ShapedType>(result.getType()).getNumElements() *
                  cast<ShapedType>(data.getType()).getShape().back();
  };
  for (Operation &op : block.getBody().getOps()) {
    if (auto linear = dyn_cast<xf::LinearOp>(op))
      add(linear.getData(), linear.getResult());
    else if (auto linear = dyn_cast<xf::ExpertLinearOp>(op)) // only the selected experts
      add(linear.getData(), linear.getResult());
  }
  return operations;
}

/// How many of `count` tokens go through the layers together: as many as the largest layer computes
/// in half a second on two cores, but enough to make reading its weights negligible, and not so
/// many that their values take much memory. Chunks have about the same size: a chunk of few tokens
/// would be computed differently where prompts are rounded.
int64_t CompiledExecutor::chunkOf(int64_t count, const ForwardOptions &options) const {
  constexpr int64_t mostOperations = int64_t(1) << 36, fewestRows = 64, mostRows = 512,
                    chunksOfStage = 4;
  if (bidirectional || options.observer)
    return count;
  int64_t rows = promptChunk;
  if (rows <= 0) {
    int64_t largest = 1;
    for (auto [i, step] : llvm::enumerate(program.steps))
      if (!isHead(i) || options.allLogits)
        largest = std::max(largest, operationsOf(step.block));
    rows = std::clamp(mostOperations / largest, fewestRows, mostRows);
    // While the first chunk is in the first stage the others wait for it.
    if (stages > 1)
      rows = std::clamp<int64_t>(llvm::divideCeil(count, chunksOfStage * stages), fewestRows, rows);
  }
  return llvm::divideCeil(count, llvm::divideCeil(count, rows));
}

llvm::Expected<ArrayRef<float>> CompiledExecutor::runChunk(CompiledRun &run, ArrayRef<Input> tokens,
                                                           ArrayRef<int64_t> positions,
                                                           const ForwardOptions &options,
                                                           Weights &from, bool withHead) {
  bool factored = options.patch && !options.materialize;
  std::vector<int32_t> ids = kernelIds(tokens), at(positions.begin(), positions.end());
  std::copy(at.begin(), at.end(), run.slots.begin() + run.count);
  Values &values = this->values[0];
  int64_t rows = ids.size();
  if (llvm::Error error = receiveStreams(stage, neighbours, values))
    return std::move(error);
  for (size_t i = stage.first; i < stage.end; ++i) {
    ProgramStep step = program.steps[i];
    if (isHead(i) && !withHead)
      break;
    StepCall frame;
    frame.rows = rows;
    frame.given = tokens;
    frame.tokens = ids;
    frame.positions = at;
    frame.runs[0] = &run;
    if (factored)
      frame.loads = options.patch;
    // The head can be as large as all layers together: only tokens whose logits
    // are asked for go through it.
    std::vector<Rows> last;
    if (isHead(i) && !options.allLogits && rows > 1) {
      for (Value input : step.layer.getInputs()) {
        const Rows &x = values[input];
        last.emplace_back(x.end() - x.size() / rows, x.end());
      }
      for (const Rows &x : last)
        frame.inputs.push_back(&x);
      frame.given = frame.given.take_back(1);
      frame.tokens = frame.tokens.take_back(1);
      frame.positions = frame.positions.take_back(1);
      frame.rows = 1;
    }
    xf::BlockOp block = factored && step.applied ? step.applied : step.block;
    if (llvm::Error error = runInto(i, block, from, frame, values))
      return std::move(error);
    observe(options.observer, step, i == 0, values, rows);
    if (rows > 1)
      forget(i, values);
  }
  if (llvm::Error error = sendStreams(stage, neighbours, values))
    return std::move(error);
  run.count += rows;
  if (!withHead || !hasLogits())
    return ArrayRef<float>();
  Value logits = program.logits();
  ArrayRef<float> numbers = values[logits];
  return options.allLogits ? numbers : numbers.take_back(program.vocabulary);
}

llvm::Error CompiledExecutor::readAgain(CompiledRun &run) {
  const int64_t count = run.count, from = run.carriedUpTo();
  if (from == count)
    return llvm::Error::success();
  if (neighbours || run.plain < count)
    return makeError("the run was truncated to " + llvm::Twine(count) +
                     " tokens, and its recurrences can go on from " + llvm::Twine(from) +
                     " alone; " +
                     (neighbours ? "ranks cannot read the tokens between again"
                                 : "some between were read with a patch") +
                     "; truncate it to no more than its last call, or start another");
  run.count = from;
  std::vector<Input> tokens(run.given.begin() + from, run.given.begin() + count);
  std::vector<int64_t> positions(run.slots.begin() + from, run.slots.begin() + count);
  const ForwardOptions options;
  const int64_t chunk = chunkOf(count - from, options);
  for (int64_t at = 0; at < count - from; at += chunk) {
    run.begin();
    const int64_t size = std::min(chunk, count - from - at);
    auto none = runChunk(run, ArrayRef(tokens).slice(at, size), ArrayRef(positions).slice(at, size),
                         options, weights, /*withHead=*/false);
    if (!none) {
      run.count = count;
      return none.takeError();
    }
  }
  return llvm::Error::success();
}

llvm::Expected<ArrayRef<float>>
CompiledExecutor::forwardAll(CompiledRun &run, ArrayRef<Input> tokens, ArrayRef<int64_t> positions,
                             const ForwardOptions &options, std::vector<float> *earlier) {
  if (llvm::Error error = checkStep(run, tokens, positions))
    return std::move(error);
  static const Patch none;
  const Patch &patch = options.patch ? *options.patch : none;
  if (llvm::Error error = checkIds(program, tokens, positions))
    return std::move(error);
  if (llvm::Error error = names.check(patch, options.materialize))
    return std::move(error);
  MaterializedWeights patched(weights, options.materialize ? patch : none, kernels.parallelFor(),
                              &patchedMemory);
  Weights &from = options.materialize ? static_cast<Weights &>(patched) : weights;

  if (llvm::Error error = readAgain(run))
    return std::move(error);
  const int64_t before = run.count, count = tokens.size(), chunk = chunkOf(count, options);
  if (llvm::Error error = kernels.checkMemory(run, chunk))
    return std::move(error);
  RunRestorer restore(run, /*inChunks=*/chunk < count);
  tell(0, count, chunk);
  for (int64_t at = 0;; at += chunk) {
    int64_t size = std::min(chunk, count - at);
    bool isLast = at + size == count;
    auto logits = runChunk(run, tokens.slice(at, size), positions.slice(at, size), options, from,
                           isLast || options.allLogits);
    if (!logits)
      return logits;
    tell(at + size, count, chunk);
    if (isLast) {
      if (options.append) {
        if (bidirectional && before == 0)
          run.sequence = tokens.vec();
        remember(run, before, tokens, options.patch && !options.patch->parameters.empty());
        restore.release();
      }
      return logits;
    }
    if (options.allLogits)
      earlier->insert(earlier->end(), logits->begin(), logits->end());
  }
}

llvm::Expected<Logits> CompiledExecutor::computeLogits(Run &run, ArrayRef<Input> tokens,
                                                       ArrayRef<int64_t> positions,
                                                       const ForwardOptions &options) {
  std::vector<float> logits;
  auto last = forwardAll(static_cast<CompiledRun &>(run), tokens, positions, options, &logits);
  if (!last)
    return last.takeError();
  logits.insert(logits.end(), last->begin(), last->end());
  if (llvm::Error error = checkFinite(logits))
    return std::move(error);
  return Logits(std::move(logits));
}

llvm::Expected<int64_t> CompiledExecutor::computeNext(Run &run, const Input &token,
                                                      int64_t position,
                                                      const ForwardOptions &options) {
  auto logits = forwardAll(static_cast<CompiledRun &>(run), token, position, options, nullptr);
  if (!logits)
    return logits.takeError();
  return largestLogit(*logits);
}

llvm::Error CompiledExecutor::patchTogether(CompiledRun &full, CompiledRun &reduced,
                                            ArrayRef<Input> tokens, ArrayRef<int64_t> positions,
                                            const PatchEachOptions &options, PatchSink sink) {
  const int64_t before = full.count;
  if (llvm::Error error =
          PatchEach(program, stage, neighbours, weights, kernels, full, reduced, options)
              .run(tokens, positions, sink))
    return error;
  remember(full, before, tokens, /*withPatch=*/false);
  return llvm::Error::success();
}

llvm::Error CompiledExecutor::computePatchEach(Run &opaqueFull, Run &opaqueReduced,
                                               ArrayRef<Input> tokens, ArrayRef<int64_t> positions,
                                               const PatchEachOptions &options, PatchSink sink) {
  auto &full = static_cast<CompiledRun &>(opaqueFull);
  auto &reduced = static_cast<CompiledRun &>(opaqueReduced);
  const int64_t all = tokens.size();
  int64_t done = 0;
  auto counting = [&](const TokenPatch &patch) -> llvm::Error {
    if (llvm::Error error = sink(patch))
      return error;
    tell(++done, all, 1);
    return llvm::Error::success();
  };
  for (CompiledRun *run : {&full, &reduced})
    if (llvm::Error error = readAgain(*run))
      return error;
  tell(done, all, 1);
  const bool isBehind = positions.empty() || positions.front() > reduced.last();
  if (isBehind || !countsTokens(program))
    return patchTogether(full, reduced, tokens, positions, options, counting);
  // Where the order of tokens counts, those between two kept ones have a reduced run of their own.
  RunRestorer restore(full, /*inChunks=*/true);
  ArrayRef<int32_t> kept = ArrayRef(reduced.slots).take_front(reduced.count);
  for (int64_t at = 0; at < all;) {
    const int64_t count = llvm::lower_bound(kept, positions[at]) - kept.begin();
    int64_t end = at + 1;
    while (end < all && (count == reduced.count || positions[end] <= kept[count]))
      ++end;
    CompiledRun part(reduced.capacity, program.steps.size());
    if (llvm::Error error = copyState(reduced, part))
      return error;
    part.truncate(count);
    if (llvm::Error error = readAgain(part))
      return error;
    if (llvm::Error error = patchTogether(full, part, tokens.slice(at, end - at),
                                          positions.slice(at, end - at), options, counting))
      return error;
    at = end;
  }
  restore.release();
  return llvm::Error::success();
}

llvm::Error CompiledExecutor::copyState(const Run &given, Run &made) {
  const auto &from = static_cast<const CompiledRun &>(given);
  auto &to = static_cast<CompiledRun &>(made);
  to.count = from.count;
  to.begin();
  to.sequence = from.sequence;
  to.given = from.given;
  to.plain = from.plain;
  std::copy_n(from.slots.begin(), from.count, to.slots.begin());
  for (auto [copy, state] : llvm::zip_equal(to.steps, from.steps))
    copy = state.copy(from.count, to.capacity);
  return llvm::Error::success();
}

llvm::Expected<Logits> CompiledExecutor::computeHead(ArrayRef<double> vectors, int64_t count) {
  llvm::Expected<size_t> head = checkHead(program, vectors.size(), count);
  if (!head)
    return head.takeError();
  const Rows input(vectors.begin(), vectors.end());
  const std::vector<int32_t> zeros(count);
  StepCall frame;
  frame.rows = count;
  frame.tokens = frame.positions = zeros;
  frame.inputs.push_back(&input);
  if (llvm::Error error = kernels.call(*head, program.steps[*head].block, weights, frame))
    return std::move(error);
  if (llvm::Error error = checkFinite(frame.outputs.front()))
    return std::move(error);
  return Logits(std::move(frame.outputs.front()));
}

llvm::Error CompiledExecutor::computeStep(const StepRows &rows, Run *opaque,
                                          std::vector<Rows> &outputs) {
  auto *run = static_cast<CompiledRun *>(opaque);
  StepCall frame;
  frame.rows = rows.tokens.size();
  frame.tokens = rows.tokens;
  frame.positions = rows.positions;
  frame.inputs.assign(rows.inputs.begin(), rows.inputs.end());
  frame.outputs = std::move(outputs);
  frame.runs[0] = run;
  if (run) {
    run->begin();
    llvm::copy(rows.positions, run->slots.begin() + run->count);
  }
  if (llvm::Error error = kernels.call(rows.step, program.steps[rows.step].block,
                                       rows.weights ? *rows.weights : weights, frame))
    return error;
  outputs = std::move(frame.outputs);
  if (run)
    run->count += frame.rows;
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Executor>>
ctxc::createCompiledExecutor(const Program &program, Weights &weights,
                             const CompiledOptions &options) {
  DialectRegistry registry;
  registerCodegenDialects(registry);
  ModuleOp module = program.module;
  module.getContext()->appendDialectRegistry(registry);
  module.getContext()->loadAllAvailableDialects();
  auto executor = std::make_unique<CompiledExecutor>(program, weights, options);
  executor->setInterrupt(options.isCancelled);
  if (llvm::Error error = executor->compile())
    return std::move(error);
  return executor;
}
