// Residual blocks composed at random of the ops that have a compiled form: the forward, and
// Algorithm 1 where there is a plan. A failure prints the seed and the text.
#include "TextModel.h"
#include <random>

using namespace ctxc;
using namespace ctxc::test;

namespace {

class BlockMaker {
public:
  BlockMaker(std::mt19937 &random, std::string name, int64_t width)
      : random(random), b(std::move(name), width) {}

  /// x, a branch through attention, and a branch through some functions. Each branch is added to
  /// the residual stream, with or without a norm and a scale before that.
  BlockText make() {
    TextValue x = b.input();
    TextValue stream = b.add(x, ending(attention(normed(x)), x.shape[0]));
    std::vector<TextValue> pool{normed(stream)};
    for (int i = 0, count = below(5); i < count; ++i)
      pool.push_back(step(pool));
    TextValue last = pool.back(), gate = b.linear(last, odd());
    gate = b.unary("activation " + activation(), gate);
    if (below(2))
      gate = b.mul(gate, b.linear(last, gate.shape[0], element()));
    b.output(b.add(stream, ending(gate, x.shape[0])));
    return b;
  }

private:
  int64_t below(int64_t n) { return random() % n; }
  int64_t odd() {
    constexpr int64_t widths[] = {7, 17, 31, 33, 45, 65};
    return widths[below(6)];
  }
  std::string element() { return std::array{"f32", "bf16", "f16"}[below(3)]; }
  std::string activation() {
    return std::array{"gelu", "gelu_tanh", "silu", "tanh", "quick_gelu", "sigmoid"}[below(6)];
  }
  TextValue normed(const TextValue &x) {
    TextValue n = b.unary(below(2) ? "normalize rms" : "normalize layer", x, " eps 1.0e-4");
    return b.scale(n, x.shape, true, element());
  }

  TextValue attention(const TextValue &x) {
    int64_t groups = 1 + below(2), repeat = 1 + below(3), width = 4 + below(5), out = 3 + below(4);
    auto heads = [&](int64_t count, int64_t each) {
      TextValue flat = b.linear(x, count * each, element());
      return b.reshape(below(2) ? b.bias(flat, flat.shape, element()) : flat, {count, each});
    };
    TextValue f = b.rope(1 + below(2));
    TextValue q = b.rotary("half", heads(groups * repeat, width), f);
    TextValue k = b.rotary("half", heads(groups, width), f);
    TextValue a =
        b.attention(q, k, heads(groups, out), below(2) * (1 + below(4)), below(3) ? "" : "0.5");
    return b.reshape(a, {a.shape[0] * a.shape[1]});
  }

  TextValue step(const std::vector<TextValue> &pool) {
    const TextValue &x = pool[below(pool.size())], &y = pool[below(pool.size())];
    int64_t n = x.shape[0];
    switch (below(9)) {
    case 0:
      return b.linear(x, odd(), element(), below(2));
    case 1:
      return b.bias(x, x.shape, element());
    case 2:
      return b.unary("activation " + activation(), x);
    case 3:
      return b.concat({x, y});
    case 4:
      return b.slice(x, n / 4, n - n / 2);
    case 5:
      return b.permute(x, {n / 3, n - n / 3}, {1, 0});
    case 6: {
      int64_t rows = n % 3 ? n % 5 ? 1 : 5 : 3;
      return b.reshape(b.transpose(b.reshape(x, {n / rows, rows}), {1, 0}), {n});
    }
    case 7:
      return y.shape == x.shape ? b.sub(x, b.unary("times", y, " by 0.5"))
                                : b.unary("softcap", x, " at 4.0");
    default:
      return b.mul(x, b.slice(b.unary("activation sigmoid", y), 0, 1));
    }
  }

  /// Brings x back to the width of the residual stream.
  TextValue ending(const TextValue &x, int64_t width) {
    TextValue y = b.linear(x, width, element());
    switch (below(3)) {
    case 0:
      return y;
    case 1:
      return b.bias(y, {width}, element());
    default:
      return b.scale(b.unary("normalize rms", y, " eps 1.0e-5"), {width}, true, element());
    }
  }

  std::mt19937 &random;
  BlockText b;
};

/// A model of four random blocks.
std::string randomModel(int seed) {
  std::mt19937 random(seed);
  int64_t width = 9 + 2 * int64_t(random() % 20);
  std::vector<BlockText> blocks;
  for (int i = 0; i < 4; ++i)
    blocks.push_back(BlockMaker(random, "block" + std::to_string(i), width).make());
  return modelText(blocks);
}

struct RandomBlocks : testing::TestWithParam<int> {};

TEST_P(RandomBlocks, CompiledIsTheReference) {
  TextModel model(randomModel(GetParam()), GetParam(), 2, true);
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  expectAgreement(model, 1e-4); // errors add up over four layers
  ASSERT_NE(model.compiled, nullptr);
  EXPECT_GT(model.plans, 0);
  std::vector<int64_t> context = someTokens(4, GetParam());
  int64_t token = (context.back() + 5) % kVocabulary;
  std::vector<PatchStep> steps;
  for (Executor *executor : {model.reference.get(), model.compiled.get()}) {
    auto full = executor->start(5), reduced = executor->start(2);
    see(*executor, *full, context, upTo(4));
    see(*executor, *reduced, context[0], 0); // kept tokens
    auto step = executor->patch(*full, *reduced, token, 4, {});
    ASSERT_TRUE(bool(step)) << llvm::toString(step.takeError());
    ForwardOptions options;
    options.append = false;
    options.patch = &step->patch;
    auto replayed = executor->forward(*reduced, token, 4, options);
    ASSERT_TRUE(bool(replayed)) << llvm::toString(replayed.takeError());
    EXPECT_LE(relativeDifference(*replayed, step->reducedLogits.doubles()), 1e-3);
    steps.push_back(std::move(*step));
  }
  EXPECT_LE(relativeDifference(steps[1].fullLogits.doubles(), steps[0].fullLogits.doubles()), 1e-4);
  EXPECT_LE(relativeDifference(steps[1].reducedLogits.doubles(), steps[0].reducedLogits.doubles()),
            1e-3);
  ASSERT_EQ(steps[1].patch.parameters.size(), steps[0].patch.parameters.size());
  for (auto [a, b] : llvm::zip(steps[0].patch.parameters, steps[1].patch.parameters)) {
    EXPECT_EQ(a.parameter, b.parameter);
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.shape, b.shape);
  }
  for (int64_t l = 0; l < model.program.layers; ++l) {
    EXPECT_EQ(steps[1].obligations[l].harmful, steps[0].obligations[l].harmful) << l;
    EXPECT_EQ(steps[1].obligations[l].harmless, steps[0].obligations[l].harmless) << l;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomBlocks, testing::Range(1, 6));

} // namespace
