#include "ReferenceExecutor.h"
#include "Graph/Functions.h"
#include "ctxc/Support/Error.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

llvm::SmallVector<Matrix> reference::inputsOf(xf::LayerOp layer, const Values &values) {
  return llvm::map_to_vector(layer.getInputs(), [&](Value v) { return values.lookup(v); });
}

void reference::setOutputs(xf::LayerOp layer, ArrayRef<Matrix> outputs, Values &values) {
  for (auto [value, rows] : llvm::zip_equal(layer.getOutputs(), outputs))
    values[value] = rows;
}

void reference::observe(const LayerObserver &observer, const ProgramStep &step, bool isFirst,
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

/// The op of PyTorch that `op` stands for, for a message.
static std::string standsFor(Operation &op) {
  auto opaque = dyn_cast<graph::OpaqueOp>(op);
  return opaque ? "of '" + opaque.getTarget().str() + "' " : "";
}

void ReferenceExecutor::tryFunctions() {
  llvm::DenseSet<Operation *> tried;
  for (ProgramStep &step : program.steps) {
    if (!tried.insert(step.block).second)
      continue;
    const int64_t zero = 0;
    Environment environment{weights, step.layer, zero, zero};
    Evaluation evaluation(environment);
    for (Operation &op : step.block.getBody().front()) {
      if (isa<xf::ParamOp>(op)) { // a weight that is missing says so when it is run
        llvm::consumeError(cast<ReferenceOpInterface>(op).evaluate(evaluation));
        continue;
      }
      graph::FunctionOp function = graph::FunctionOp::ofOp(&op);
      if (!function ||
          llvm::any_of(llvm::zip_equal(op.getOperands(), function.getAxes()), [&](auto each) {
            auto [operand, axis] = each;
            return axis < 0 && !evaluation.has(operand);
          }))
        continue;
      llvm::Expected<Following> following = readsFollowing(function, &op, evaluation);
      if (!following) { // what cannot be tried cannot be run either, and says so then
        llvm::consumeError(following.takeError());
        continue;
      }
      bidirectional |= *following == Following::Tokens;
      if (*following == Following::Count && obstacle.empty())
        obstacle = llvm::toString(errorAt(
            &op, standsFor(op) + "depends on the number of tokens: what it makes of a token "
                                 "changes when another one follows, and ctxc computes it "
                                 "once; expected values of the tokens' positions"));
    }
  }
}

/// Checks that `run` can take the step.
llvm::Error ReferenceExecutor::checkStep(const ReferenceRun &run, ArrayRef<Input> tokens,
                                         ArrayRef<int64_t> positions) const {
  if (!obstacle.empty())
    return makeError(obstacle);
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
  const int64_t count = given.size(), steps = program.steps.size();
  tell(0, count, 1);
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    Environment environment{
        patched, step.layer, tokens, positions, {{std::nullopt, &run.blocks[i]}}};
    environment.mayGoOn = mayGoOn;
    environment.rounds = true;
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
    tell(count * int64_t(i + 1) / steps, count, 1);
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
    environment.rounds = true;
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

std::unique_ptr<Executor> ctxc::createReferenceExecutor(const Program &program, Weights &weights) {
  DialectRegistry registry;
  registerReferenceModels(registry);
  ModuleOp module = program.module;
  module.getContext()->appendDialectRegistry(registry);
  return std::make_unique<ReferenceExecutor>(program, weights);
}
