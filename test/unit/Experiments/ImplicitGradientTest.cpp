// The gradient view: each step is a step of gradient descent on its trace loss, and together they
// give the patch of Algorithm 1.
#include "ctxc/Experiments/ImplicitGradient.h"
#include "test/unit/Compiled/Fixture.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::experiments;

namespace {

const std::vector<int64_t> tokens = {5, 17, 3, 60, 22, 9, 31};

/// Algorithm 1's patch of the last token, in float64.
PatchStep algorithm1(test::Model &model) {
  Executor &executor = *model.reference;
  auto full = executor.start(tokens.size()), reduced = executor.start(1);
  EXPECT_EQ(llvm::toString(readContext(executor, *full, tokens)), "");
  auto step = executor.patch(*full, *reduced, tokens.back(), tokens.size() - 1, {});
  EXPECT_TRUE(bool(step)) << llvm::toString(step.takeError());
  return step ? std::move(*step) : PatchStep();
}

/// The logits of the last token alone.
std::vector<double> alone(test::Model &model, const Patch *patch) {
  auto run = model.reference->start(1);
  ForwardOptions options;
  options.patch = patch;
  auto logits = model.reference->forward(*run, tokens.back(), int64_t(tokens.size() - 1), options);
  EXPECT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
  return logits ? *logits : std::vector<double>();
}

void expectTelescopes(const std::string &family, patch::UpdateKind kind, Update update) {
  SCOPED_TRACE(family);
  test::Model model(family, kind, {}, /*compile=*/false);
  auto targets = collectTargets(model.program, *model.weights, tokens);
  ASSERT_TRUE(bool(targets)) << llvm::toString(targets.takeError());
  ASSERT_EQ(int64_t(targets->size()), model.program.layers);
  PatchStep step = algorithm1(model);
  Patch sum;
  size_t undivided = 0;
  bool isExact = true;
  // `least` is flat around its minimum: two searches for it that start from numbers with different
  // last digits end at different points. Both patches are exact.
  double same = update == Update::Least ? 1e-5 : 1e-9;
  for (const LayerTargets &layer : *targets) {
    auto trace = traceLayer(layer, update);
    ASSERT_TRUE(bool(trace)) << llvm::toString(trace.takeError());
    ASSERT_EQ(trace->steps.size(), tokens.size() - 1);
    EXPECT_LE(trace->telescoping, 1e-12);
    if (isExact)
      EXPECT_LE(differenceFrom(*trace, step.patch), same) << layer.layer;
    // Above a layer whose output differs from the full run's, no layer's output can agree.
    isExact &= step.obligations[layer.layer].harmful == 0;
    undivided += trace->undivided.size();
    if (trace->steps.back().matrixNorm > 0) {
      EXPECT_NEAR(trace->steps.back().along, 1, 1e-12);
      EXPECT_NEAR(trace->steps.back().aside, 0, 1e-7);
      EXPECT_NEAR(trace->steps.back().toEnd, 0, 1e-7);
      EXPECT_GT(trace->steps.front().toEnd, 1e-3) << "one token is not the context";
    }
    for (const GradientStep &each : trace->steps)
      EXPECT_LE(each.lossAfter, each.loss);
    llvm::append_range(sum.parameters, trace->sum.parameters);
  }
  EXPECT_EQ(sum.parameters.size(), step.patch.parameters.size());
  EXPECT_GT(test::largestDifference(alone(model, nullptr), step.fullLogits.doubles()), 0.1);
  // `stable` wants a change where the scale is zero, and would divide by zero there.
  EXPECT_EQ(undivided > 0, update == Update::Stable);
  if (undivided)
    return;
  EXPECT_LE(largestRelativeDifference(step.patch, sum), same);
  EXPECT_LE(test::largestDifference(alone(model, &sum), step.fullLogits.doubles()), 1e-8);
}

TEST(ImplicitGradient, TelescopesToThePatchOfAMatrix) {
  for (const char *family : {"llama", "falcon", "gpt2", "phi"}) // phi's G is a bias
    expectTelescopes(family, patch::UpdateKind::least, Update::Least);
}

TEST(ImplicitGradient, TelescopesToThePatchOfAPostNorm) {
  expectTelescopes("gemma3", patch::UpdateKind::least, Update::Least);
  expectTelescopes("gemma3", patch::UpdateKind::stable, Update::Stable);
  expectTelescopes("gemma3", patch::UpdateKind::balanced, Update::Balanced);
  expectTelescopes("gemma2", patch::UpdateKind::naive, Update::Naive);
}

PatchedParameter matrixNamed(const char *name, int64_t rows, int64_t columns) {
  PatchedParameter parameter;
  parameter.stored = name;
  parameter.shape = {rows, columns};
  parameter.form.kind = patch::PatchForm::Rank1;
  return parameter;
}

/// W x for a dense matrix W with x.size() columns.
Vector times(const Vector &w, const Vector &x) {
  Vector y(w.size() / x.size());
  for (size_t i = 0; i < w.size(); ++i)
    y[i / x.size()] += w[i] * x[i % x.size()];
  return y;
}

/// −tr(Δᵀ W) with Δ = a xᵀ.
double lossOf(const Vector &w, const Vector &a, const Vector &x) {
  double loss = 0;
  for (size_t i = 0; i < w.size(); ++i)
    loss -= a[i / x.size()] * x[i % x.size()] * w[i];
  return loss;
}

TEST(ImplicitGradient, StepsDescendTheTraceLossOfAMatrix) {
  Vector w = {1, 2, -1, 0.5, -3, 4}, x = {1, -2, 0.5}, t1 = {3, 1}, t2 = {-2, 5};
  LayerTargets layer;
  layer.parameters.push_back(
      {matrixNamed("w", 2, 3), false, x, {times(w, x), t1, t2}, times(w, x)});
  auto trace = traceLayer(layer, Update::Least);
  ASSERT_TRUE(bool(trace)) << llvm::toString(trace.takeError());
  double square = 1 + 4 + 0.25;
  Vector at = times(w, x), before;
  for (auto [i, next] : llvm::enumerate(std::vector<Vector>{t1, t2})) {
    Vector a = {next[0] - at[0], next[1] - at[1]}, gradient(w.size()), moved = w;
    // The gradient by finite differences: the loss is linear in W.
    for (size_t k = 0; k < w.size(); ++k) {
      Vector other = w;
      other[k] += 1;
      gradient[k] = lossOf(other, a, x) - lossOf(w, a, x);
      moved[k] -= gradient[k] / square; // the learning rate
    }
    EXPECT_NEAR(trace->steps[i].loss, lossOf(w, a, x), 1e-12);
    EXPECT_NEAR(trace->steps[i].lossAfter, lossOf(moved, a, x), 1e-12);
    double step = 0, product = 0, sizes = 0;
    Vector change(w.size());
    for (size_t k = 0; k < w.size(); ++k) {
      change[k] = moved[k] - w[k];
      step += change[k] * change[k];
      if (!before.empty())
        product += change[k] * before[k], sizes += before[k] * before[k];
    }
    EXPECT_NEAR(trace->steps[i].matrixStep, std::sqrt(step), 1e-12);
    if (before.empty())
      EXPECT_FALSE(trace->steps[i].cosine);
    else
      EXPECT_NEAR(*trace->steps[i].cosine, product / std::sqrt(step * sizes), 1e-12);
    before = change;
    w = moved;
    at = next;
    for (size_t k = 0; k < 2; ++k)
      EXPECT_NEAR(times(w, x)[k], next[k], 1e-12);
  }
}

TEST(ImplicitGradient, StepsDescendTheTraceLossOfAScale) {
  LayerTargets layer;
  layer.postNorm.emplace();
  auto &post = *layer.postNorm;
  post.scale.stored = "m";
  post.scale.shape = {3};
  post.scale.form.kind = patch::PatchForm::Delta;
  post.m = {0.5, -1, 2};
  post.eps = 1e-6;
  Vector x = {2, 1}, data = {1, -2, 0.5};
  post.matrix = {matrixNamed("w", 3, 2), false, x, {}, data};
  post.shift = {{0, 0, 0}, {3, 1, -2}, {-1, 4, 0.5}};
  for (Update update : {Update::Least, Update::Stable, Update::Balanced}) {
    auto trace = traceLayer(layer, update);
    ASSERT_TRUE(bool(trace)) << llvm::toString(trace.takeError());
    const ParameterPatch &w = trace->sum.parameters[0], &m = trace->sum.parameters[1];
    // The patched branch gives the wanted output: (m + Δm) ⊙ Norm(d + ΔW x).
    Vector out(3), g(3);
    double square = 0, own = 0;
    for (int k = 0; k < 3; ++k) {
      out[k] = data[k] + w.u[k] * (w.v[0] * x[0] + w.v[1] * x[1]);
      square += out[k] * out[k] / 3;
      own += data[k] * data[k] / 3;
    }
    for (int k = 0; k < 3; ++k) {
      g[k] = post.m[k] * data[k] / std::sqrt(own + post.eps) + post.shift.back()[k];
      out[k] = (post.m[k] + m.delta[k]) * out[k] / std::sqrt(square + post.eps);
      EXPECT_NEAR(out[k], g[k], 1e-9);
    }
    // Each step lowers its loss by Σ η ‖Δ‖²; for the scale this is ‖r_{i+1} − r_i‖².
    for (const GradientStep &step : trace->steps)
      EXPECT_LT(step.lossAfter, step.loss);
  }
  EXPECT_NE(llvm::toString(traceLayer(layer, Update::Scaled).takeError()).find("update scaled"),
            std::string::npos);
}

TEST(ImplicitGradient, RefusesWhatThePaperHasNoTraceLossFor) {
  auto refusal = [](const char *family, llvm::ArrayRef<int64_t> ids) {
    test::Model model(family, patch::UpdateKind::least, {}, /*compile=*/false);
    return llvm::toString(collectTargets(model.program, *model.weights, ids).takeError());
  };
  EXPECT_NE(refusal("mixtral", tokens).find("has no trace loss in the paper"), std::string::npos);
  EXPECT_NE(refusal("bert", tokens).find("the model is bidirectional"), std::string::npos);
  EXPECT_NE(refusal("llama", {5}).find("expected a context and the last token"), std::string::npos);
}

TEST(ImplicitGradient, DifferencesOfPatches) {
  Patch a;
  a.parameters.push_back({"w", ParameterPatch::Kind::Rank1, {2, 1}, {3, 4}, {2}, {}});
  Patch b = a;
  EXPECT_EQ(largestRelativeDifference(a, b), 0);
  b.parameters[0].u = {3, 4.5};
  EXPECT_NEAR(largestRelativeDifference(b, a), 0.1, 1e-15);
  b.parameters[0].parameter = "x";
  EXPECT_TRUE(std::isinf(largestRelativeDifference(b, a)));
}

} // namespace
