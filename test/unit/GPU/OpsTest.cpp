// Kernels on a device compared with the reference: random shapes, odd ones and such as are read in
// pieces of 16 bytes, with weights of float32 and bfloat16, for a token and for many rows.
#include "RowsCase.h"
#include <random>

using namespace ctxc;
using namespace ctxc::test;

namespace {

struct GpuOps : testing::TestWithParam<int> {
  GpuOps() : random(GetParam()) {}

  int64_t odd() {
    constexpr int64_t widths[] = {1, 3, 7, 17, 31, 33, 45, 65};
    return widths[random() % 8];
  }
  /// A multiple of 8, sometimes with more than one piece for each lane.
  int64_t even() {
    constexpr int64_t widths[] = {8, 16, 24, 64, 72, 136, 264, 520};
    return widths[random() % 8];
  }
  int64_t any() { return random() % 2 ? odd() : even(); }

  void agree(const BlockText &block, double tolerance = 1e-5) {
    CTXC_OPEN_DEVICE(device);
    TextModel model(modelText({block}), GetParam());
    auto gpu = onDevice(model.program, *model.weights, std::move(device));
    ASSERT_NE(gpu, nullptr);
    auto tokens = someTokens(3, GetParam());
    auto run = gpu->start(3), expected = model.reference->start(3);
    expectSame(see(*gpu, *run, tokens, upTo(3)), see(*model.reference, *expected, tokens, upTo(3)),
               tolerance, block.getName());
    CTXC_OPEN_DEVICE(second);
    RowsCase(model.program, *model.weights, 5 + random() % 29, /*before=*/4, /*kept=*/2)
        .expectAgreement(*second, tolerance);
  }

  std::mt19937 random;
};

TEST_P(GpuOps, Contractions) {
  BlockText b("ops", any());
  TextValue x = b.input();
  for (const char *element : {"f32", "bf16"})
    for (int64_t in : {odd(), even(), even()}) {
      TextValue y = b.linear(x, in, element);
      b.output(y);
      b.output(b.linear(y, any(), element));
      b.output(b.linear(y, any(), element, /*transposed=*/true));
    }
  TextValue h = b.reshape(b.linear(x, 3 * 16, "bf16"), {3, 16}); // three vectors
  b.output(b.linear(h, odd(), "bf16"));
  TextValue many = b.reshape(b.linear(x, 7 * 8), {7, 8});
  b.output(b.linear(many, even()));
  b.output(b.linear(b.slice(b.linear(x, 40), 3, 24), odd(), "bf16")); // begins inside a piece
  agree(b);
}

TEST_P(GpuOps, FunctionsOfAToken) {
  BlockText b("ops", any());
  TextValue x = b.unary("times", b.input(), " by 3.0");
  TextValue h = b.reshape(b.linear(x, 3 * 7), {3, 7});
  TextValue wide = b.linear(x, 10248); // spread over many blocks
  for (const TextValue &v : {x, h, wide}) {
    for (const char *kind : {"rms", "layer", "l2"})
      b.output(b.unary(std::string("normalize ") + kind, v, " eps 1.0e-2"));
    for (const char *kind : {"gelu", "gelu_tanh", "silu", "relu", "relu2", "sigmoid", "tanh",
                             "quick_gelu", "exp", "softplus", "abs"})
      b.output(b.unary(std::string("activation ") + kind, v));
    b.output(b.unary("softmax", v));
    b.output(b.unary("softcap", v, " at 1.5"));
    b.output(b.unary("clamp", v, " to 0.4"));
    TextValue y = b.unary("activation exp", b.unary("softcap", v, " at 2.0"));
    // Away from 0, where a root makes much of a rounding.
    b.output(b.unary("activation sqrt", y));
    b.output(b.unary("activation log", y));
    b.output(b.unary("activation sqrt", b.unary("times", y, " by -1.0")));
    b.output(b.add(v, y));
    b.output(b.sub(v, y));
    b.output(b.mul(v, y));
    b.output(b.div(v, y));
  }
  agree(b, 2e-5);
}

TEST_P(GpuOps, ShapesAndTables) {
  BlockText b("ops", any());
  TextValue x = b.input();
  TextValue wide = b.linear(x, 33, "bf16");
  TextValue middle = b.slice(wide, 5, 17);
  b.output(b.linear(middle, odd()));
  b.output(b.bias(middle, middle.shape, "bf16"));
  b.output(b.scale(middle, middle.shape, true, "bf16"));
  b.output(b.concat({middle, x, middle}));
  TextValue cube = b.reshape(b.slice(wide, 1, 30), {5, 3, 2});
  b.output(b.linear(cube, 3));
  b.output(b.concat({cube, b.slice(cube, 1, 1, 1), cube}, 1));
  b.output(b.transpose(cube, {2, 0, 1}));
  b.output(b.transpose(cube, {1, 0, 2}));
  b.output(b.linear(b.transpose(cube, {0, 2, 1}), 4));
  b.output(b.unary("softmax", b.transpose(b.reshape(wide, {11, 3}), {1, 0})));
  b.output(b.transpose(middle, {0}));
  b.output(b.permute(middle, {3, 5, 9}, {2, 0, 1}));
  b.output(b.permute(cube, {2, 1}, {1, 0}, 1));
  b.output(b.linear(b.permute(cube, {1, 1}, {1, 0}, 2), 3));
  b.output(b.broadcast(b.slice(cube, 1, 1), 4));
  b.output(b.mul(b.rope(4), b.rope(4)));
  TextValue token = b.op("xf.token", "tensor<i32>", {});
  TextValue words = b.param({kVocabulary, 7}, "bf16");
  b.output(b.op("xf.embed " + words.name + "[" + token.name + "]",
                typeOf({kVocabulary, 7}, "bf16") + ", tensor<i32>", {7}));
  TextValue other = b.op("xf.token replace [1, 3] by 2", "tensor<i32>", {});
  b.output(b.op("xf.embed " + words.name + "[" + other.name + "]",
                typeOf({kVocabulary, 7}, "bf16") + ", tensor<i32>", {7}));
  for (const char *number : {"xf.position", "xf.position plus 1 over 2"})
    b.output(b.mul(x, b.op(number, "tensor<1xf32>", {1})));
  agree(b);
}

TEST_P(GpuOps, Experts) {
  BlockText b("ops", any());
  TextValue x = b.input();
  b.output(x);
  for (int64_t slots : {1, 3})
    for (const char *element : {"f32", "bf16"})
      for (bool transposed : {false, true}) {
        TextValue scores = b.linear(x, 5), selected = b.topK(scores, slots);
        TextValue own = b.linear(x, any());
        TextValue y = b.expertLinear(own, selected, 5, any(), element, transposed, slots == 3);
        b.output(y);
        // Each slot has a vector of its own.
        TextValue each = b.expertLinear(y, selected, 5, any(), element, transposed, slots == 1);
        b.output(b.combine(b.gather(scores, selected), each));
      }
  agree(b);
}

INSTANTIATE_TEST_SUITE_P(Seeds, GpuOps, testing::Range(0, 3));

} // namespace
