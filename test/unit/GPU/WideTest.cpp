// Matrices with so many rows that a subgroup takes two of them: Algorithm 1 on such a wide layer,
// compared with the reference. The number of rows, which is the number of columns of the next
// matrix, is odd, so that the last subgroup takes one row; and a layer whose rows are read in
// pieces.
#include "Device.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

/// A pre-norm layer: attention, and an MLP of `hidden` units.
BlockText wideLayer(int64_t width, int64_t hidden, const std::string &element) {
  BlockText b("wide", width);
  TextValue x = b.input();
  auto normed = [&](const TextValue &v) { return b.unary("normalize rms", v, " eps 1.0e-2"); };
  auto heads = [&](const TextValue &v) { return b.reshape(b.linear(v, 16, element), {2, 8}); };
  TextValue n = normed(x), q = heads(n), k = heads(n), v = heads(n);
  TextValue mixed = b.reshape(b.attention(q, k, v, 0), {16});
  x = b.add(x, b.linear(mixed, width, element));
  n = normed(x);
  TextValue gate = b.unary("activation silu", b.linear(n, hidden, element));
  TextValue h = b.mul(gate, b.linear(n, hidden, element));
  b.output(b.add(x, b.linear(h, width, element)));
  return b;
}

struct GpuWide : testing::TestWithParam<std::pair<int64_t, const char *>> {};

TEST_P(GpuWide, IsTheReferences) {
  CTXC_OPEN_DEVICE(device);
  BlockText layer = wideLayer(/*width=*/72, GetParam().first, GetParam().second);
  TextModel model(modelText({layer}), /*seed=*/3, /*threads=*/2, /*planned=*/true);
  ASSERT_EQ(model.plans, 1);
  auto gpu = onDevice(model.program, *model.weights, std::move(device));
  ASSERT_NE(gpu, nullptr);
  std::vector<int64_t> tokens = someTokens(2, 5);
  std::vector<PatchStep> steps;
  for (Executor *executor : {model.reference.get(), gpu.get()}) {
    auto full = executor->start(2), reduced = executor->start(1);
    ASSERT_TRUE(bool(executor->forward(*full, tokens[0], 0, ForwardOptions())));
    auto step = executor->patch(*full, *reduced, tokens[1], 1, {});
    ASSERT_TRUE(bool(step)) << llvm::toString(step.takeError());
    ForwardOptions forward;
    forward.append = false;
    forward.patch = &step->patch;
    auto patched = executor->forward(*reduced, tokens[1], 1, forward);
    ASSERT_TRUE(bool(patched)) << llvm::toString(patched.takeError());
    EXPECT_LE(relativeDifference(*patched, step->fullLogits.doubles()), 1e-4);
    steps.push_back(std::move(*step));
  }
  EXPECT_LE(relativeDifference(steps[1].fullLogits.doubles(), steps[0].fullLogits.doubles()), 1e-4);
  EXPECT_LE(relativeDifference(steps[1].reducedLogits.doubles(), steps[0].reducedLogits.doubles()),
            1e-4);
  ASSERT_EQ(steps[0].patch.parameters.size(), 3u);
  for (auto [a, b] : llvm::zip(steps[0].patch.parameters, steps[1].patch.parameters)) {
    EXPECT_EQ(a.parameter, b.parameter);
    EXPECT_LE(relativeDifference(b.u, a.u), 1e-3) << a.parameter;
    EXPECT_LE(relativeDifference(b.v, a.v), 1e-3) << a.parameter;
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, GpuWide,
                         testing::Values(std::pair(8193, "bf16"), std::pair(8200, "f32")),
                         [](const auto &info) { return std::string(info.param.second); });

} // namespace
