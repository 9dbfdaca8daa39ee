// Attention of prompts in tile registers, with rounded and with split numbers.
#include "TextModel.h"
#include "ctxc/Lowering/CpuTarget.h"
#include "dialects/Kernel/Kernel.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

struct Shape {
  int64_t heads, groups, width, out, window;
};

/// Widths that fill registers and that do not, more heads of a group than a tile has queries, one
/// head, and windows that end within a tile of slots.
constexpr Shape shapes[] = {{4, 1, 64, 64, 0},  {6, 2, 33, 85, 0},  {5, 5, 7, 3, 0},
                            {3, 1, 96, 16, 50}, {34, 1, 40, 48, 0}, {8, 2, 32, 32, 130}};

std::string textOf(const Shape &shape) {
  BlockText b("ops", 33);
  TextValue x = b.input();
  auto heads = [&](int64_t count, int64_t width) {
    return b.reshape(b.linear(x, count * width), {count, width});
  };
  TextValue q = heads(shape.heads, shape.width), k = heads(shape.groups, shape.width),
            v = heads(shape.groups, shape.out);
  b.output(x);
  b.output(b.attention(q, k, v, shape.window));
  return modelText({b});
}

std::vector<double> attentionOf(const Shape &shape, PromptProducts prompts, int64_t count,
                                int threads = 1, int64_t chunk = 0, bool roundedStates = false) {
  TextModel model(textOf(shape), 1, threads);
  if (roundedStates)
    kernel::markRoundedStates(*model.module);
  ::setenv("CTXC_KERNEL_CACHE", "off", /*overwrite=*/1);
  CompiledOptions options{threads, prompts};
  options.promptChunk = chunk;
  auto executor = createCompiledExecutor(model.program, *model.weights, options);
  if (!executor) {
    ADD_FAILURE() << llvm::toString(executor.takeError());
    return {};
  }
  auto run = (*executor)->start(count);
  return see(**executor, *run, someTokens(count, 3), upTo(count)).layers.back();
}

double distance(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b) {
  return rootMeanSquare(a, b) / rootMeanSquare(b);
}

struct RoundedAttention : testing::TestWithParam<int> {
  void SetUp() override {
    if (!CpuTarget::host().tiles)
      GTEST_SKIP() << "this processor has no AMX, or the system does not give it";
  }
  Shape shape = shapes[GetParam()];
  static constexpr int64_t count = 301; // three tiles of slots, the last of 45
};

TEST_P(RoundedAttention, IsOffByItsRounding) {
  auto exact = attentionOf(shape, PromptProducts::Exact, count);
  double error = distance(attentionOf(shape, PromptProducts::Rounded, count), exact);
  EXPECT_GT(error, 1e-5);
  EXPECT_LT(error, 2e-2);
}

TEST_P(RoundedAttention, IsAsExactAsFloat32WhenSplit) {
  for (bool rounded : {false, true}) {
    auto exact = attentionOf(shape, PromptProducts::Exact, count, 1, 0, rounded);
    auto split = attentionOf(shape, PromptProducts::Split, count, 1, 0, rounded);
    EXPECT_NE(split, exact);
    // Where keys are rounded, a few of them fall on the other side.
    EXPECT_LT(distance(split, exact), rounded ? 2e-4 : 2e-6);
  }
}

/// Every chunk is of 16 rows or more, since fewer are multiplied exactly.
TEST_P(RoundedAttention, HasTheSameBitsForAnyThreadsAndChunks) {
  for (PromptProducts prompts : {PromptProducts::Rounded, PromptProducts::Split}) {
    auto whole = attentionOf(shape, prompts, count);
    EXPECT_EQ(attentionOf(shape, prompts, count, /*threads=*/3, /*chunk=*/57), whole);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RoundedAttention, testing::Range(0, int(std::size(shapes))));

} // namespace
