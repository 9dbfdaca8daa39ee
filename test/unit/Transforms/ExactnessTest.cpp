// Theorem 2 on small models of every family, in float64: the patches that dual blocks form make the
// applied blocks give the full run's logits without the context.
#include "Blocks.h"
#include "ctxc/Planning/Planner.h"
#include "ctxc/Reference/Reference.h"
#include "ctxc/Transforms/BuildProgram.h"

using namespace ctxc;
using namespace ctxc::test;
using namespace mlir;
using patch::UpdateKind;

namespace {

/// The MLP's output passes a stored scale, a gate and a reshape: a chain that divides.
std::string gated() {
  return block("gated", rmsNorm("x", "h", "in.norm") + std::string(attention) + add("w", "x", "a") +
                            rmsNorm("w", "z", "pre.norm") + gatedMlp + R"(
    %m = xf.param "layerscale" frozen : tensor<6xbf16>
    %o = xf.activation sigmoid %x : tensor<6xf32>
    %e = xf.mul %d, %o : tensor<6xf32>, tensor<6xf32>
    %i = xf.scale %e by %m offset 1.000000e+00 : tensor<6xf32>, tensor<6xbf16>
    %j = xf.reshape %i : tensor<6xf32> to tensor<2x3xf32>
    %r = xf.reshape %j : tensor<2x3xf32> to tensor<6xf32>
)" + add("y", "w", "r"));
}

/// Everything passes a single sum, and a frozen norm follows it.
std::string waist() {
  return block("waist", rmsNorm("x", "h", "in.norm") + std::string(attention) + add("w", "x", "a") +
                            rmsNorm("w", "z", "pre.norm") + gatedMlp + add("total", "w", "d") +
                            "    %y = xf.normalize rms %total eps 1.000000e-06 : tensor<6xf32>\n");
}

/// A plain MLP after a layer norm that has a bias of its own.
std::string narrow() {
  return block("narrow",
               rmsNorm("x", "h", "in.norm") + std::string(attention) + add("w", "x", "a") + R"(
    %b = xf.param "ln.bias" : tensor<6xf32>
    %W1 = xf.param "fc1.weight" frozen : tensor<10x6xf32>
    %W2 = xf.param "fc2.weight" : tensor<6x10xf32>
    %n = xf.normalize layer %w eps 1.000000e-05 : tensor<6xf32>
    %z = xf.bias %n + %b : tensor<6xf32>, tensor<6xf32>
    %l = xf.linear %W1 * %z : tensor<10x6xf32>, tensor<6xf32>
    %s = xf.activation silu %l : tensor<10xf32>
    %o = xf.linear %W2 * %s : tensor<6x10xf32>, tensor<10xf32>
)" + add("y", "w", "o"));
}

/// Two residual streams with a matrix each; the matrix of the second reads what the patch of the
/// first changes.
std::string streams() {
  return R"(
  xf.block @streams(%x: tensor<6xf32>, %t: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
)" + rmsNorm("x", "h", "in.norm") +
         std::string(attention) + add("w", "x", "a") + R"(
    %r = xf.sub %t, %a : tensor<6xf32>
    %U = xf.param "u.weight" : tensor<6x6xf32>
    %W = xf.param "w.weight" : tensor<6x6xf32>
    %g = xf.activation silu %w : tensor<6xf32>
    %d = xf.linear %U * %g : tensor<6x6xf32>, tensor<6xf32>
    %y = xf.add %w, %d : tensor<6xf32>
    %i = xf.activation gelu %y : tensor<6xf32>
    %e = xf.linear %W * %i : tensor<6x6xf32>, tensor<6xf32>
    %z = xf.add %r, %e : tensor<6xf32>
    xf.yield %y, %z : tensor<6xf32>, tensor<6xf32>
  }
  xf.model @m {
    %id = xf.token : tensor<i32>
    %E = xf.param "embed.weight" : tensor<11x6xf32>
    %e = xf.embed %E[%id] : tensor<11x6xf32>, tensor<i32>
    %f = xf.times %e by 2.000000e+00 : tensor<6xf32>
    %a, %b = xf.layer @streams(%e, %f) at "0." : (tensor<6xf32>, tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>)
    %c, %d = xf.layer @streams(%a, %b) at "1." : (tensor<6xf32>, tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>)
    %s = xf.add %c, %d : tensor<6xf32>
    %l = xf.linear %E * %s : tensor<11x6xf32>, tensor<6xf32>
    xf.yield %l : tensor<11xf32>
  }
)";
}

struct Family {
  const char *block;
  std::string text;
  std::vector<StringRef> f;
  const char *g;
  const char *normMatrix;
  std::vector<UpdateKind> updates;
};

std::vector<Family> families() {
  std::vector<UpdateKind> all;
  for (unsigned i = 0; i <= patch::getMaxEnumValForUpdateKind(); ++i)
    all.push_back(UpdateKind(i));
  std::vector<UpdateKind> one = {UpdateKind::least};
  return {{"gemma", gemma(), {"gate.weight", "up.weight"}, "post.norm", "down.weight", all},
          {"gemma", gemma(), {}, "post.norm", "down.weight", {UpdateKind::least}},
          {"llama", llama(), {"gate.weight", "up.weight"}, "down.weight", "", one},
          {"llama", llama(), {"pre.norm"}, "down.weight", "", one},
          {"parallel", parallel(), {}, "down.weight", "", one},
          {"biased", biased(), {"fc1.bias"}, "fc2.bias", "", one},
          {"biased", biased(), {"fc1.weight"}, "fc2.weight", "", one},
          // Planned by the planner:
          {"gemma", gemma(), {}, "", "", all},
          {"gated", gated(), {}, "", "", one},
          {"waist", waist(), {}, "", "", one},
          {"narrow", narrow(), {}, "", "", one},
          {"streams", streams(), {}, "", "", one}};
}

double distance(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (auto [x, y] : llvm::zip(a, b)) {
    EXPECT_TRUE(std::isfinite(x) && std::isfinite(y));
    worst = std::max(worst, std::abs(x - y));
  }
  return worst;
}

template <typename T> T unwrap(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  ADD_FAILURE() << llvm::toString(value.takeError());
  return T();
}

void expectExact(const Family &family, UpdateKind update) {
  SCOPED_TRACE((family.block + (" " + stringifyUpdateKind(update)) + " to " + family.g).str());
  bool isWhole = family.text.find("xf.model") != std::string::npos;
  Blocks blocks(family.text + (isWhole ? "" : model(family.block)));
  DialectRegistry registry;
  registerReferenceModels(registry);
  blocks.context.appendDialectRegistry(registry);
  ASSERT_TRUE(blocks.module);
  auto plan = [&](xf::LayerOp, xf::BlockOp block, int64_t) {
    if (StringRef(family.g).empty()) {
      PlanOptions options;
      options.update = update;
      Verdict verdict = planBlock(block, options);
      EXPECT_TRUE(verdict.isSuccess() && !verdict.plan.isEmpty());
      return verdict.plan;
    }
    return blocks.plan(block, family.f, family.g, family.normMatrix);
  };
  FailureOr<Program> program = buildProgram(*blocks.module, plan, update);
  ASSERT_TRUE(succeeded(program));
  std::unique_ptr<Weights> weights = randomWeights(3);
  std::unique_ptr<Executor> executor = createReferenceExecutor(*program, *weights);
  const std::vector<int64_t> tokens = {3, 1, 4, 9, 5}, positions = {0, 1, 2, 3, 4};
  ArrayRef<int64_t> last = ArrayRef(tokens).take_back(), at = ArrayRef(positions).take_back();

  auto baseline = executor->start(5);
  std::vector<double> wanted = unwrap(executor->forward(*baseline, tokens, positions, {}));
  auto full = executor->start(5), reduced = executor->start(1);
  unwrap(
      executor->forward(*full, ArrayRef(tokens).drop_back(), ArrayRef(positions).drop_back(), {}));
  PatchStep step = unwrap(executor->patch(*full, *reduced, last[0], at[0], {}));
  EXPECT_LT(distance(step.fullLogits.doubles(), wanted), 1e-12);
  EXPECT_LT(distance(step.reducedLogits.doubles(), wanted), 1e-9);
  for (const LayerObligations &layer : step.obligations)
    EXPECT_EQ(layer.harmful, 0);

  // A run that sees the patch, and nothing else of the full run.
  ForwardOptions patched;
  patched.patch = &step.patch;
  auto alone = executor->start(1);
  EXPECT_LT(distance(unwrap(executor->forward(*alone, last, at, patched)), wanted), 1e-9);
  auto control = executor->start(1);
  EXPECT_GT(distance(unwrap(executor->forward(*control, last, at, {})), wanted), 1e-2);
}

TEST(Exactness, PatchedModelsGiveTheFullRunsLogits) {
  for (const Family &family : families())
    for (UpdateKind update : family.updates)
      expectExact(family, update);
}

TEST(Exactness, EveryLayersOutputMatches) {
  Blocks blocks(llama() + model("llama"));
  DialectRegistry registry;
  registerReferenceModels(registry);
  blocks.context.appendDialectRegistry(registry);
  auto plan = [&](xf::LayerOp, xf::BlockOp block, int64_t) {
    return blocks.plan(block, {"gate.weight", "up.weight"}, "down.weight");
  };
  FailureOr<Program> program = buildProgram(*blocks.module, plan, UpdateKind::least);
  ASSERT_TRUE(succeeded(program));
  std::unique_ptr<Weights> weights = randomWeights(5);
  std::unique_ptr<Executor> executor = createReferenceExecutor(*program, *weights);
  auto full = executor->start(3), reduced = executor->start(1);
  unwrap(executor->forward(*full, std::vector<int64_t>{7, 2}, {0, 1}, {}));
  std::vector<std::vector<double>> fullLayers, reducedLayers;
  PatchOptions options;
  options.fullObserver = [&](int64_t, ArrayRef<double> rows, int64_t) {
    fullLayers.push_back(rows);
  };
  options.reducedObserver = [&](int64_t, ArrayRef<double> rows, int64_t) {
    reducedLayers.push_back(rows);
  };
  unwrap(executor->patch(*full, *reduced, 8, 2, options));
  ASSERT_EQ(fullLayers.size(), 4u); // the embedding, three layers
  ASSERT_EQ(reducedLayers.size(), 4u);
  for (auto [a, b] : llvm::zip(fullLayers, reducedLayers))
    EXPECT_LT(distance(a, b), 1e-10);
}

} // namespace
