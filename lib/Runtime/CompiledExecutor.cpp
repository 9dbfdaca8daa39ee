// The executor over compiled kernels: ordinary forwards, and Algorithm 1 through
// the dual kernels.
#include "ctxc/Runtime/CompiledExecutor.h"
#include "ctxc/Program/MaterializedWeights.h"
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/KernelCalls.h"
#include "lib/Runtime/Logits.h"
#include "lib/Runtime/ParallelFor.h"
#include "lib/Runtime/PatchEach.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace ctxc;

namespace {

using Values = llvm::DenseMap<Value, Rows>;

class CompiledExecutor : public Executor {
public:
  CompiledExecutor(const Program &program, Weights &weights, const CompiledOptions &options)
      : program(program), weights(weights), ownThreads(threadCount(options.threads)),
        kernels(this->program, weights, options.roundedPrompts,
                options.parallelFor ? *options.parallelFor
                                    : ParallelFor{ctxc::parallelFor, &ownThreads},
                [this] { return checkInterrupt(); }),
        bidirectional(ctxc::isBidirectional(program)), names(program),
        promptChunk(options.promptChunk) {}

  llvm::Error compile() { return kernels.compile(); }

  bool isBidirectional() const override { return bidirectional; }
  int64_t vocabulary() const override { return program.vocabulary; }
  int64_t layers() const override { return program.layers; }
  std::optional<int64_t> embeddingWidth() const override { return ctxc::embeddingWidth(program); }

protected:
  std::unique_ptr<Run> makeRun(int64_t capacity) override {
    return std::make_unique<CompiledRun>(capacity, program.steps.size());
  }
  llvm::Error copyState(const Run &given, Run &made) override;
  llvm::Expected<Logits> computeLogits(Run &run, ArrayRef<Input> tokens,
                                       ArrayRef<int64_t> positions,
                                       const ForwardOptions &options) override;
  llvm::Expected<int64_t> computeNext(Run &run, const Input &token, int64_t position,
                                      const ForwardOptions &options) override;
  llvm::Expected<PatchStep> computePatch(Run &full, Run &reduced, const Input &token,
                                         int64_t position, const PatchOptions &options) override;
  llvm::Error computePatchEach(Run &full, Run &reduced, ArrayRef<Input> tokens,
                               ArrayRef<int64_t> positions, const PatchEachOptions &options,
                               PatchSink sink) override {
    return PatchEach(program, weights, kernels, static_cast<CompiledRun &>(full),
                     static_cast<CompiledRun &>(reduced), options)
        .run(tokens, positions, sink);
  }
  llvm::Expected<Logits> computeHead(ArrayRef<double> vectors, int64_t count) override;

private:
  llvm::Error checkStep(const CompiledRun &run, ArrayRef<Input> tokens,
                        ArrayRef<int64_t> positions) const;
  /// Runs tokens through all steps and appends them to the run. Returns the logits that are asked
  /// for, in memory that the next call reuses; none where `withHead` is false.
  llvm::Expected<ArrayRef<float>> runChunk(CompiledRun &run, ArrayRef<Input> tokens,
                                           ArrayRef<int64_t> positions,
                                           const ForwardOptions &options, Weights &from,
                                           bool withHead);
  /// The last chunk's logits, which are all where not every token's are asked for; the others' go
  /// to `earlier`.
  llvm::Expected<ArrayRef<float>> forwardAll(CompiledRun &run, ArrayRef<Input> tokens,
                                             ArrayRef<int64_t> positions,
                                             const ForwardOptions &options,
                                             std::vector<float> *earlier);
  int64_t chunkOf(int64_t count, const ForwardOptions &options) const;
  bool isHead(size_t step) const;
  llvm::Error runInto(size_t step, xf::BlockOp block, Weights &from, StepCall &call,
                      Values &values);
  llvm::Error runBoth(size_t step, const Input &token, int32_t position);
  /// Frees the memory of the values that no step after `step` reads.
  void forget(size_t step, Values &values);

  Program program;
  Weights &weights;
  int ownThreads; ///< OpenMP's
  KernelCalls kernels;
  bool bidirectional;
  const PatchableNames names;
  const int64_t promptChunk;
  WeightMemory patchedMemory;
  Values values[2]; ///< those of one token stay, as memory for the next
  struct {
    std::vector<Rows> inputs, outputs;
  } both; ///< the rows of both runs for one of the model's ends
};

/// Reuses the memory of the last call's outputs.
static void takeMemory(xf::LayerOp layer, Values &values, StepCall &frame) {
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
  return bidirectional ? checkSequence(run.count, run.sequence, tokens) : llvm::Error::success();
}

/// Shows a step's outputs: several residual streams side by side, row by row.
static void observe(const LayerObserver &observer, ProgramStep step, bool first,
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

/// How many of `count` tokens go through the layers together: all, or as many as the largest
/// layer computes in half a second on two cores, but enough to make reading its weights negligible.
/// Chunks have about the same size: a chunk of few tokens would be computed differently where
/// prompts are rounded.
int64_t CompiledExecutor::chunkOf(int64_t count, const ForwardOptions &options) const {
  constexpr int64_t mostOperations = int64_t(1) << 36, fewestRows = 64;
  if (bidirectional || options.observer)
    return count;
  int64_t rows = promptChunk;
  if (rows <= 0) {
    int64_t largest = 1;
    for (auto [i, step] : llvm::enumerate(program.steps))
      if (!isHead(i) || options.allLogits)
        largest = std::max(largest, operationsOf(step.block));
    rows = std::max(mostOperations / largest, fewestRows);
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
  for (auto [i, step] : llvm::enumerate(program.steps)) {
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
  run.count += rows;
  if (!withHead)
    return ArrayRef<float>();
  Value logits = program.logits();
  ArrayRef<float> numbers = values[logits];
  return options.allLogits ? numbers : numbers.take_back(program.vocabulary);
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

  const int64_t before = run.count, count = tokens.size(), chunk = chunkOf(count, options);
  llvm::scope_exit restore([&] { run.count = before; });
  for (int64_t at = 0;; at += chunk) {
    int64_t size = std::min(chunk, count - at);
    bool isLast = at + size == count;
    auto logits = runChunk(run, tokens.slice(at, size), positions.slice(at, size), options, from,
                           isLast || options.allLogits);
    if (!logits)
      return logits;
    if (isLast) {
      if (options.append) {
        if (bidirectional && before == 0)
          run.sequence = tokens.vec();
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

llvm::Error CompiledExecutor::copyState(const Run &given, Run &made) {
  const auto &from = static_cast<const CompiledRun &>(given);
  auto &to = static_cast<CompiledRun &>(made);
  to.count = from.count;
  to.sequence = from.sequence;
  std::copy_n(from.slots.begin(), from.count, to.slots.begin());
  for (auto [copies, states] : llvm::zip_equal(to.states, from.states))
    for (const Rows &state : states) {
      size_t elements = state.size() / from.capacity;
      Rows &copy = copies.emplace_back(to.capacity * elements);
      std::copy_n(state.begin(), from.count * elements, copy.begin());
    }
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

//===----------------------------------------------------------------------===//
// Algorithm 1
//===----------------------------------------------------------------------===//

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

llvm::Expected<PatchStep> CompiledExecutor::computePatch(Run &opaqueFull, Run &opaqueReduced,
                                                         const Input &token, int64_t position,
                                                         const PatchOptions &options) {
  auto &full = static_cast<CompiledRun &>(opaqueFull);
  auto &reduced = static_cast<CompiledRun &>(opaqueReduced);
  for (CompiledRun *run : {&full, &reduced}) {
    if (llvm::Error error = checkStep(*run, token, position))
      return std::move(error);
    run->slots[run->count] = position;
  }
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

  for (auto [i, step] : llvm::enumerate(program.steps)) {
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
  ++full.count;
  return result;
}

} // namespace

llvm::Expected<std::unique_ptr<Executor>>
ctxc::createCompiledExecutor(const Program &program, Weights &weights,
                             const CompiledOptions &options) {
  DialectRegistry registry;
  registerCodegenDialects(registry);
  ModuleOp module = program.module;
  module.getContext()->appendDialectRegistry(registry);
  module.getContext()->loadAllAvailableDialects();
  auto executor = std::make_unique<CompiledExecutor>(program, weights, options);
  if (llvm::Error error = executor->compile())
    return std::move(error);
  return executor;
}
