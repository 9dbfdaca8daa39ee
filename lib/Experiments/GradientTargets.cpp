// The half of the gradient view that runs the model: the targets of each parameter's steps.
#include "Sites.h"
#include "ctxc/Experiments/ImplicitGradient.h"
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Reference/Evaluation.h"
#include "ctxc/Reference/Reference.h"
#include "ctxc/Support/Error.h"
#include "lib/Experiments/Vectors.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::experiments;
using namespace ctxc::reference;

namespace {

Value dataOf(Operation *op) { return cast<xf::AssignableOpInterface>(op).getDataOperand().get(); }

Vector row(const Evaluation &evaluation, Value value) {
  const Matrix &rows = evaluation.rows(value);
  return Vector(rows.data(), rows.data() + rows.cols());
}

/// One layer, whose block is run on the last token after each prefix of the context.
class Collector {
public:
  Collector(const ProgramStep &step, Weights &weights, LayerSites sites)
      : step(step), weights(weights), sites(std::move(sites)) {}

  llvm::Expected<LayerTargets> collect(ArrayRef<Matrix> inputs, const BlockState &state,
                                       int64_t token, int64_t position) {
    result.layer = *step.index;
    for (int64_t i = 0; i <= position; ++i) {
      BlockState prefix = state;
      prefix.truncate(i);
      Environment environment{weights, step.layer, token, position, {{std::nullopt, &prefix}}};
      Evaluation evaluation(environment);
      auto outputs = evaluateBlock(step.block, inputs, evaluation);
      if (!outputs)
        return outputs.takeError();
      if (llvm::Error error = take(evaluation, outputs->front(), i, i == position))
        return std::move(error);
    }
    return std::move(result);
  }

private:
  llvm::Expected<ParameterTargets> start(Operation *op, const Evaluation &evaluation) {
    ParameterTargets targets;
    auto parameter = findPatched(step.block, step.layer, parameterOf(op).getName());
    if (!parameter)
      return parameter.takeError();
    targets.parameter = *parameter;
    targets.isBias = isa<xf::BiasOp>(op);
    if (targets.isBias) {
      Matrix bias = evaluation.widened(parameterOf(op));
      targets.current.assign(bias.data(), bias.data() + bias.size());
    }
    return targets;
  }

  /// Adds the targets of prefix `i`.
  llvm::Error take(const Evaluation &evaluation, const Matrix &output, int64_t i, bool last) {
    for (auto [k, op] : llvm::enumerate(sites.inputs)) {
      if (i == 0) {
        auto targets = start(op, evaluation);
        if (!targets)
          return targets.takeError();
        if (!targets->isBias) {
          targets->x = row(evaluation, dataOf(op));
          targets->current = row(evaluation, op->getResult(0));
        }
        result.parameters.push_back(std::move(*targets));
      }
      // W z_i; for a bias after a norm, z_i itself.
      result.parameters[k].t.push_back(row(evaluation, op->getResult(0)));
    }
    // v_i: the value to which G's result is added.
    Vector v(output.data(), output.data() + output.cols());
    v = minus(v, row(evaluation, sites.output->getResult(0)));
    if (i == 0)
      first = v;
    shift.push_back(minus(v, first));
    return last ? finish(evaluation) : llvm::Error::success();
  }

  /// G, which acts on the full run's activations.
  llvm::Error finish(const Evaluation &evaluation) {
    Operation *op = sites.normMatrix ? sites.normMatrix : sites.output;
    auto targets = start(op, evaluation);
    if (!targets)
      return targets.takeError();
    if (!targets->isBias) {
      targets->x = row(evaluation, dataOf(op));
      targets->current = row(evaluation, op->getResult(0));
    }
    if (!sites.normMatrix) {
      for (const Vector &s : shift) {
        targets->t.push_back(targets->current);
        for (size_t k = 0; k < s.size(); ++k)
          targets->t.back()[k] += s[k];
      }
      result.parameters.push_back(std::move(*targets));
      return llvm::Error::success();
    }
    auto scale = cast<xf::ScaleOp>(sites.output);
    auto norm = scale.getData().getDefiningOp<xf::NormalizeOp>();
    LayerTargets::PostNorm post;
    auto parameter = findPatched(step.block, step.layer, parameterOf(scale).getName());
    if (!parameter)
      return parameter.takeError();
    post.scale = *parameter;
    Matrix m = evaluation.widened(scale.getScale());
    m.array() += scale.getOffset().convertToDouble();
    post.m.assign(m.data(), m.data() + m.size());
    post.eps = norm.getEps().convertToDouble();
    post.matrix = std::move(*targets);
    post.shift = std::move(shift);
    result.postNorm = std::move(post);
    return llvm::Error::success();
  }

  ProgramStep step;
  Weights &weights;
  LayerSites sites;
  Vector first;
  std::vector<Vector> shift; ///< v_i − v_0
  LayerTargets result;
};

} // namespace

llvm::Expected<std::vector<LayerTargets>>
experiments::collectTargets(const Program &program, Weights &weights, ArrayRef<int64_t> tokens) {
  if (tokens.size() < 2)
    return makeError("tokens: found " + llvm::Twine(tokens.size()) +
                     ", expected a context and the last token");
  if (isBidirectional(program))
    return makeError("the model is bidirectional: a context that grows by a token changes what its "
                     "tokens say");
  auto positions = llvm::to_vector(llvm::seq<int64_t>(0, tokens.size()));
  if (llvm::Error error = checkStep(program, 0, -1, tokens.size(), toInputs(tokens), positions))
    return std::move(error);
  createReferenceExecutor(program, weights); // gives the ops their meaning

  std::vector<LayerTargets> layers;
  llvm::DenseMap<Value, Matrix> values;
  for (ProgramStep step : program.steps) {
    if (!step.index && step.layer == program.steps.back().layer)
      break; // the head
    BlockState state;
    Environment environment{weights, step.layer, tokens, positions, {{std::nullopt, &state}}};
    Evaluation evaluation(environment);
    SmallVector<Matrix> inputs, last;
    for (Value input : step.layer.getInputs()) {
      inputs.push_back(values.lookup(input));
      last.push_back(inputs.back().bottomRows(1));
    }
    auto outputs = evaluateBlock(step.block, inputs, evaluation);
    if (!outputs)
      return outputs.takeError();
    for (auto [value, rows] : llvm::zip_equal(step.layer.getOutputs(), *outputs))
      values[value] = rows;
    if (!step.applied)
      continue;
    auto sites = sitesOf(step);
    if (!sites)
      return sites.takeError();
    auto targets = Collector(step, weights, std::move(*sites))
                       .collect(last, state, tokens.back(), positions.back());
    if (!targets)
      return targets.takeError();
    layers.push_back(std::move(*targets));
  }
  return layers;
}
