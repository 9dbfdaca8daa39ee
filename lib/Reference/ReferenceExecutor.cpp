// The executor: a program's steps one after the other, and Algorithm 1 through
// the dual blocks.
#include "PatchEntries.h"
#include "ReplayPrediction.h"
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Reference/Reference.h"
#include "ctxc/Support/Error.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

namespace {

class ReferenceRun : public Run {
public:
  ReferenceRun(int64_t capacity, size_t steps) : capacity(capacity), blocks(steps) {}
  int64_t size() const override { return positions.size(); }
  void truncate(int64_t count) override {
    positions.resize(std::min<int64_t>(count, size()));
    for (BlockState &block : blocks)
      block.truncate(size());
  }

  int64_t capacity;
  std::vector<int64_t> positions;
  std::vector<Input> sequence;    ///< of a bidirectional model: the tokens of its first call
  std::vector<BlockState> blocks; ///< one for each step of the program
};

/// Undoes a step of a run when it goes out of scope, unless it is kept:
/// the step failed, or was not to be appended.
class Rollback {
public:
  explicit Rollback(ReferenceRun &run) : run(run) {}
  ~Rollback() { run.truncate(run.size()); }
  void keep(ArrayRef<int64_t> positions) {
    run.positions.insert(run.positions.end(), positions.begin(), positions.end());
  }

private:
  ReferenceRun &run;
};

/// The model's values in one run.
using Values = llvm::DenseMap<Value, Matrix>;

llvm::SmallVector<Matrix> inputsOf(xf::LayerOp layer, const Values &values) {
  return llvm::map_to_vector(layer.getInputs(), [&](Value v) { return values.lookup(v); });
}

void setOutputs(xf::LayerOp layer, ArrayRef<Matrix> outputs, Values &values) {
  for (auto [value, rows] : llvm::zip_equal(layer.getOutputs(), outputs))
    values[value] = rows;
}

/// Shows a step's outputs: several residual streams side by side.
void observe(const LayerObserver &observer, const ProgramStep &step, bool isFirst,
             ArrayRef<Matrix> outputs) {
  if (!observer || (!step.index && !isFirst))
    return;
  int64_t width = 0;
  for (const Matrix &output : outputs)
    width += output.cols();
  Matrix rows(outputs.front().rows(), width);
  int64_t at = 0;
  for (const Matrix &output : outputs) {
    rows.middleCols(at, output.cols()) = output;
    at += output.cols();
  }
  observer(step.index.value_or(-1), {rows.data(), static_cast<size_t>(rows.size())}, rows.rows());
}

class ReferenceExecutor : public Executor {
public:
  ReferenceExecutor(const Program &program, Weights &weights)
      : program(program), weights(weights), bidirectional(ctxc::isBidirectional(program)) {}

  bool isBidirectional() const override { return bidirectional; }
  int64_t vocabulary() const override { return program.vocabulary; }
  int64_t layers() const override { return program.layers; }
  std::optional<int64_t> embeddingWidth() const override { return ctxc::embeddingWidth(program); }

protected:
  std::unique_ptr<Run> makeRun(int64_t capacity) override {
    return std::make_unique<ReferenceRun>(capacity, program.steps.size());
  }
  llvm::Error copyState(const Run &given, Run &made) override {
    const auto &from = static_cast<const ReferenceRun &>(given);
    auto &to = static_cast<ReferenceRun &>(made);
    to.positions = from.positions;
    to.sequence = from.sequence;
    to.blocks = from.blocks;
    return llvm::Error::success();
  }
  llvm::Expected<Logits> computeLogits(Run &run, ArrayRef<Input> tokens,
                                       ArrayRef<int64_t> positions,
                                       const ForwardOptions &options) override;
  llvm::Expected<PatchStep> computePatch(Run &full, Run &reduced, const Input &token,
                                         int64_t position, const PatchOptions &options) override;
  llvm::Error computePatchEach(Run &full, Run &reduced, ArrayRef<Input> tokens,
                               ArrayRef<int64_t> positions, const PatchEachOptions &options,
                               PatchSink sink) override;
  llvm::Expected<Logits> computeHead(ArrayRef<double> vectors, int64_t count) override;

private:
  /// One token in both runs.
  struct Pair {
    ReferenceRun &full, &reduced;
    const Input &token;
    int64_t position;
    Values fullValues, reducedValues;
  };

  llvm::Error checkStep(const ReferenceRun &run, ArrayRef<Input> tokens,
                        ArrayRef<int64_t> positions) const;
  llvm::Expected<std::vector<BlockPatch>> loadsOf(const ProgramStep &step,
                                                  const Patch &patch) const;
  llvm::Expected<std::vector<double>> logits(const Values &values,
                                             ArrayRef<int64_t> positions) const;
  llvm::Expected<llvm::SmallVector<Matrix>> embed(const ProgramStep &step, ArrayRef<Input> inputs,
                                                  ArrayRef<int64_t> positions, Weights &from);
  llvm::Error runPlain(size_t step, ReferenceRun &run, Values &values, const Input &token,
                       int64_t position, Weights &from);
  llvm::Error runDual(size_t step, Pair &pair, bool materialize, PatchStep &result);

  Program program;
  Weights &weights;
  bool bidirectional;
  const std::function<llvm::Error()> mayGoOn = [this] { return checkInterrupt(); };
};

} // namespace

/// Checks that `run` can take the step.
llvm::Error ReferenceExecutor::checkStep(const ReferenceRun &run, ArrayRef<Input> tokens,
                                         ArrayRef<int64_t> positions) const {
  int64_t last = run.positions.empty() ? -1 : run.positions.back();
  if (llvm::Error error =
          ctxc::checkStep(program, run.size(), last, run.capacity, tokens, positions))
    return error;
  return bidirectional ? checkSequence(run.size(), run.sequence, tokens) : llvm::Error::success();
}

llvm::Expected<std::vector<double>> ReferenceExecutor::logits(const Values &values,
                                                              ArrayRef<int64_t> positions) const {
  Matrix rows = values.lookup(program.logits());
  for (int64_t t = 0; t < rows.rows(); ++t)
    if (!rows.row(t).allFinite())
      return makeError("the logits at position " +
                       llvm::Twine(positions[positions.size() - rows.rows() + t]) +
                       " are not finite");
  return std::vector<double>(rows.data(), rows.data() + rows.size());
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

llvm::Expected<std::vector<BlockPatch>> ReferenceExecutor::loadsOf(const ProgramStep &constStep,
                                                                   const Patch &patch) const {
  ProgramStep step = constStep;
  std::vector<BlockPatch> loads;
  for (patch::LoadOp load : step.applied.getBody().getOps<patch::LoadOp>()) {
    llvm::Expected<BlockPatch> taken = fromStored(patch, step.block, step.layer, load);
    if (!taken)
      return taken.takeError();
    if (!taken->parts.empty())
      loads.push_back(std::move(*taken));
  }
  return loads;
}

llvm::Expected<Logits> ReferenceExecutor::computeLogits(Run &opaqueRun, ArrayRef<Input> given,
                                                        ArrayRef<int64_t> positions,
                                                        const ForwardOptions &options) {
  auto &run = static_cast<ReferenceRun &>(opaqueRun);
  if (llvm::Error error = checkStep(run, given, positions))
    return error;
  std::vector<int64_t> ids = tokensOf(given);
  ArrayRef<int64_t> tokens = ids;
  const Patch none, &patch = options.patch ? *options.patch : none;
  if (llvm::Error error = PatchableNames(program).check(patch, options.materialize))
    return error;
  MaterializedWeights patched(weights, options.materialize ? patch : none);

  Rollback rollback(run);
  Values values;
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    Environment environment{patched, step.layer, tokens, positions, {{"", &run.blocks[i]}}};
    environment.mayGoOn = mayGoOn;
    llvm::SmallVector<Matrix> inputs = inputsOf(step.layer, values);
    xf::BlockOp block = step.block;
    if (step.applied && !options.materialize) {
      auto loads = loadsOf(step, patch);
      if (!loads)
        return loads.takeError();
      environment.loads = std::move(*loads);
      if (!environment.loads.empty())
        block = step.applied;
    }
    // The head can be as large as all layers together; where only the last token's
    // logits are asked for, only that token goes through it.
    bool isHead = i > 0 && i + 1 == program.steps.size() && !step.index && !readsContext(block);
    if (isHead && !options.allLogits) {
      environment.tokens = tokens.take_back();
      environment.positions = positions.take_back();
      for (Matrix &input : inputs)
        input = Matrix(input.bottomRows(1));
    }
    Evaluation evaluation(environment);
    auto outputs = step.ofEmbedding && hasEmbeddings(given)
                       ? embed(step, given, positions, patched)
                       : evaluateBlock(block, inputs, evaluation);
    if (!outputs)
      return outputs.takeError();
    observe(options.observer, step, i == 0, *outputs);
    setOutputs(step.layer, *outputs, values);
  }
  auto result = logits(values, positions);
  if (!result)
    return result.takeError();
  if (!options.allLogits) // a last step that is no head has computed all tokens
    result->erase(result->begin(), result->end() - program.vocabulary);
  if (options.append) {
    if (bidirectional && run.size() == 0)
      run.sequence = given.vec();
    rollback.keep(positions);
  }
  return Logits(std::move(*result));
}

llvm::Expected<Logits> ReferenceExecutor::computeHead(ArrayRef<double> vectors, int64_t count) {
  llvm::Expected<size_t> head = checkHead(program, vectors.size(), count);
  if (!head)
    return head.takeError();
  ProgramStep &step = program.steps[*head];
  const std::vector<int64_t> zeros(count);
  Environment environment{weights, step.layer, zeros, zeros};
  Evaluation evaluation(environment);
  Matrix input = Eigen::Map<const Matrix>(vectors.data(), count, vectors.size() / count);
  auto outputs = evaluateBlock(step.block, {input}, evaluation);
  if (!outputs)
    return outputs.takeError();
  if (!outputs->front().allFinite())
    return makeError("the head's logits are not finite");
  const Matrix &made = outputs->front();
  return Logits(std::vector<double>(made.data(), made.data() + made.size()));
}

/// The first step where some inputs are embeddings: these and the tokens are evaluated apart, and
/// the results put in order.
llvm::Expected<llvm::SmallVector<Matrix>> ReferenceExecutor::embed(const ProgramStep &constStep,
                                                                   ArrayRef<Input> inputs,
                                                                   ArrayRef<int64_t> positions,
                                                                   Weights &from) {
  ProgramStep step = constStep;
  llvm::SmallVector<Matrix> whole(step.block.getNumResults());
  for (bool ofEmbeddings : {false, true}) {
    std::vector<int64_t> places, ids, at;
    for (auto [i, input] : llvm::enumerate(inputs))
      if (input.isEmbedding() == ofEmbeddings) {
        places.push_back(i);
        ids.push_back(input.token());
        at.push_back(positions[i]);
      }
    if (places.empty())
      continue;
    llvm::SmallVector<Matrix, 1> numbers;
    if (ofEmbeddings)
      numbers.emplace_back(places.size(), inputs[places.front()].embedding().size());
    for (size_t i = 0; ofEmbeddings && i < places.size(); ++i)
      llvm::copy(inputs[places[i]].embedding(), numbers.front().row(i).data());
    Environment environment{from, step.layer, ids, at};
    environment.mayGoOn = mayGoOn;
    Evaluation evaluation(environment);
    auto some = evaluateBlock(ofEmbeddings ? step.ofEmbedding : step.block, numbers, evaluation);
    if (!some)
      return some;
    for (auto [to, rows] : llvm::zip(whole, *some)) {
      to.resize(inputs.size(),
                rows.cols()); // the second time the size is the same: nothing is lost
      for (auto [i, place] : llvm::enumerate(places))
        to.row(place) = rows.row(i);
    }
  }
  return whole;
}

//===----------------------------------------------------------------------===//
// Algorithm 1
//===----------------------------------------------------------------------===//

llvm::Error ReferenceExecutor::runPlain(size_t index, ReferenceRun &run, Values &values,
                                        const Input &token, int64_t position, Weights &from) {
  ProgramStep &step = program.steps[index];
  const int64_t id = token.token();
  Environment environment{from, step.layer, id, position, {{"", &run.blocks[index]}}};
  environment.mayGoOn = mayGoOn;
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
      {{"full", &pair.full.blocks[index]}, {"reduced", &pair.reduced.blocks[index]}}};
  environment.mayGoOn = mayGoOn;
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
    if (step.dual && *step.index >= options.startLayer) {
      if (llvm::Error error = runDual(i, pair, options.materialize, result))
        return error;
    } else {
      if (llvm::Error error = runPlain(i, pair.full, pair.fullValues, token, position, weights))
        return error;
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
    TokenPatch given;
    given.token = token.token();
    given.position = position;
    if (options.logits) {
      given.fullLogits = std::move(step->fullLogits);
      given.reducedLogits = std::move(step->reducedLogits);
    }
    given.obligations = std::move(step->obligations);
    given.replayError = std::move(step->replayError);
    auto makePatch = [&]() -> llvm::Expected<Patch> { return step->patch; };
    given.patch = makePatch;
    return sink(given);
  };
  for (auto [token, position] : llvm::zip(tokens, positions))
    if (llvm::Error error = patchOne(token, position)) {
      full.truncate(before);
      return error;
    }
  return llvm::Error::success();
}

std::unique_ptr<Executor> ctxc::createReferenceExecutor(const Program &program, Weights &weights) {
  DialectRegistry registry;
  registerReferenceModels(registry);
  ModuleOp module = program.module;
  module.getContext()->appendDialectRegistry(registry);
  return std::make_unique<ReferenceExecutor>(program, weights);
}
