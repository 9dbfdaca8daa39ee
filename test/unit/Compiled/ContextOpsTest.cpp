// Compares the reference with compiled kernels: convolutions and recurrences, with odd sizes, up to
// a few float32 roundings.
#include "TextModel.h"
#include <random>

using namespace ctxc;
using namespace ctxc::test;

namespace {

struct ContextOps : testing::TestWithParam<int> {
  ContextOps() : random(GetParam()) {}

  int64_t odd() {
    constexpr int64_t widths[] = {1, 3, 7, 17, 31, 33, 45, 65};
    return widths[random() % 8];
  }
  void agree(const BlockText &block, double tolerance = 1e-5) {
    TextModel model(modelText({block}), GetParam());
    expectAgreement(model, tolerance);
  }

  std::mt19937 random;
};

TEST_P(ContextOps, Convolutions) {
  BlockText b("ops", odd());
  TextValue x = b.input();
  for (int64_t taps : {1, 2, 4, 9})
    for (const char *element : {"f32", "bf16", "f16"}) {
      TextValue w = b.param({x.shape[0], taps}, element);
      b.output(b.op("xf.conv " + w.name + ", " + x.name,
                    typeOf(w.shape, element) + ", " + typeOf(x), x.shape));
    }
  TextValue wide = b.slice(b.linear(x, 45), 7, 33), kernel = b.reshape(b.linear(x, 99), {33, 3});
  b.output(b.op("xf.conv " + kernel.name + ", " + wide.name, typeOf(kernel) + ", " + typeOf(wide),
                wide.shape)); // weights of each token
  agree(b);
}

TEST_P(ContextOps, Scans) {
  BlockText b("ops", odd());
  TextValue x = b.input();
  for (const Shape &shape : {Shape{1}, {33}, {640}, {3, 7}, {2, 3, 5}}) {
    int64_t size = 1;
    for (int64_t d : shape)
      size *= d;
    TextValue gate = b.reshape(b.unary("activation sigmoid", b.linear(x, size)), shape),
              input = b.reshape(b.linear(x, size), shape);
    b.output(b.op("xf.scan " + gate.name + ", " + input.name, typeOf(input), shape));
  }
  agree(b);
}

TEST_P(ContextOps, DecayingMeans) {
  BlockText b("ops", odd());
  TextValue x = b.input();
  for (const Shape &shape : {Shape{1}, {33}, {640}, {3, 7}})
    for (const char *level : {"0.0", "95.0", "-120.0"}) { // weights that are no float32
      int64_t size = 1;
      for (int64_t d : shape)
        size *= d;
      auto made = [&](const std::string &kind) {
        return b.unary(kind, b.reshape(b.linear(x, size), shape));
      };
      std::string type = typeOf(b.reshape(b.linear(x, size), shape));
      TextValue same = b.op("xf.setting \"" + b.fresh("level") + "\"",
                            type + " = dense<" + level + "> : " + type, shape);
      TextValue key = b.add(made("activation silu"), same), value = made("activation tanh"),
                decay = b.unary("times", made("activation softplus"), " by -1.0"),
                own = made("activation silu");
      b.output(b.op("xf.decaying_mean " + key.name + ", " + value.name + " decay " + decay.name +
                        " own " + own.name,
                    type, shape));
    }
  agree(b, 3e-5); // of keys near 100, which are rounded to 4e-6
}

TEST_P(ContextOps, LinearAttention) {
  struct Sizes {
    int64_t groups, K, heads, V;
  };
  for (const Sizes &s : {Sizes{1, 16, 40, 1}, {2, 5, 6, 7}, {1, 3, 1, 1}, {3, 16, 3, 33}}) {
    BlockText b("ops", odd());
    TextValue x = b.input();
    b.output(x);
    auto made = [&](const Shape &shape, const std::string &kind = "") {
      int64_t size = shape.size() > 1 ? shape[0] * shape[1] : shape[0];
      TextValue row = b.linear(x, size);
      return b.reshape(kind.empty() ? row : b.unary(kind, row), shape);
    };
    TextValue q = made({s.groups, s.K}), k = made({s.groups, s.K}, "activation tanh"),
              v = made({s.heads, s.V}), delta = made({s.heads}, "activation sigmoid");
    for (const Shape &ofDecay : {Shape{s.heads}, {s.heads, s.K}})
      for (const Shape &ofRates : {Shape{}, {s.heads}, {s.heads, s.K}})
        for (bool replaces : {false, true}) {
          TextValue decay = made(ofDecay, "activation softplus");
          std::string more;
          if (ofRates.empty()) {
            decay = b.unary("times", decay, " by -0.5");
          } else {
            std::string element = replaces ? "bf16" : "f32";
            TextValue rates = b.param(ofRates, element);
            more = " rates " + rates.name + " : " + typeOf(ofRates, element);
          }
          if (replaces)
            more += " delta " + delta.name + " : " + typeOf(delta);
          b.output(b.op("xf.linear_attention " + q.name + ", " + k.name + ", " + v.name +
                            " decay " + decay.name + more,
                        typeOf(q) + ", " + typeOf(k) + ", " + typeOf(v) + ", " + typeOf(decay),
                        v.shape));
        }
    agree(b);
  }
}

// Queries, keys and decays have one type, and nothing else reads them: each needs memory of its own
// until the recurrence has read it.
TEST_P(ContextOps, LinearAttentionOfValuesOfOneType) {
  BlockText b("ops", 33);
  TextValue x = b.input();
  auto made = [&](const std::string &kind, const std::string &more = "") {
    return b.unary(kind, b.reshape(b.linear(x, 64), {4, 16}), more);
  };
  TextValue q = made("normalize l2", " eps 1.0e-6"), steps = made("activation softplus"),
            decay = b.unary("times", steps, " by -0.5"), v = b.reshape(b.linear(x, 64), {4, 16}),
            k = made("normalize l2", " eps 1.0e-6");
  std::string types = typeOf(q) + ", " + typeOf(k) + ", " + typeOf(v) + ", " + typeOf(decay);
  TextValue y =
      b.op("xf.linear_attention " + q.name + ", " + k.name + ", " + v.name + " decay " + decay.name,
           types, v.shape);
  b.output(b.reshape(y, {64}));
  agree(b);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ContextOps, testing::Values(1, 2, 3));

} // namespace
