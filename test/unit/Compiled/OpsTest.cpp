// Compares the reference with compiled kernels: every op that has a compiled form, with odd sizes,
// up to a few float32 roundings.
#include "TextModel.h"
#include <array>
#include <random>

using namespace ctxc;
using namespace ctxc::test;

namespace {

struct Ops : testing::TestWithParam<int> {
  Ops() : random(GetParam()) {}

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

TEST_P(Ops, Parameterised) {
  BlockText b("ops", odd());
  TextValue x = b.input();
  b.output(b.linear(x, odd()));
  for (const char *element : {"f32", "bf16", "f16"})
    for (bool transposed : {false, true})
      b.output(b.linear(x, odd(), element, transposed));
  int64_t heads = 3, width = odd();
  TextValue h = b.reshape(b.linear(x, heads * width, "bf16"), {heads, width});
  b.output(b.linear(h, odd()));
  b.output(b.linear(h, odd(), "f16", true));
  for (const char *element : {"f32", "bf16", "f16"}) {
    b.output(b.bias(x, x.shape, element));
    b.output(b.bias(h, {width}, element));
    b.output(b.scale(x, x.shape, true, element));
    b.output(b.scale(h, {width}, false, element));
    b.output(b.scale(h, h.shape, true, element));
  }
  agree(b);
}

TEST_P(Ops, FunctionsOfAToken) {
  BlockText b("ops", odd());
  TextValue x = b.unary("times", b.input(), " by 3.0");
  TextValue h = b.reshape(b.linear(x, 3 * 7), {3, 7});
  for (const TextValue &v : {x, h}) {
    b.output(v);
    for (const char *kind : {"rms", "layer", "l2"})
      b.output(b.unary(std::string("normalize ") + kind, v, " eps 1.0e-2"));
    for (const char *kind : {"gelu", "gelu_tanh", "silu", "relu", "relu2", "sigmoid", "tanh",
                             "quick_gelu", "exp", "softplus", "abs"})
      b.output(b.unary(std::string("activation ") + kind, v));
    b.output(b.unary("softmax", v));
    b.output(b.unary("softcap", v, " at 1.5"));
    b.output(b.unary("clamp", v, " to 0.4"));
    b.output(b.unary("clamp", v, " to 0.4 above"));
    b.output(b.unary("times", v, " by -0.7"));
    TextValue y = b.unary("activation exp", b.unary("softcap", v, " at 2.0"));
    // Away from 0, where a root makes much of a rounding.
    b.output(b.unary("activation sqrt", y));
    b.output(b.unary("activation log", y));
    b.output(b.unary("activation sqrt", b.unary("times", y, " by -1.0")));
    b.output(b.add(v, y));
    b.output(b.sub(v, y));
    b.output(b.mul(v, y));
    b.output(b.div(v, y));
    TextValue one = b.slice(b.reshape(y, {v.shape.size() > 1 ? 21 : v.shape[0]}), 0, 1);
    TextValue none = b.unary("times", one, " by 0.0");
    b.output(b.mul(v, one));
    b.output(b.div(v, one));
    b.output(b.div(v, none));
  }
  // Zeros among nonzero divisors.
  TextValue zeros = b.concat({b.unary("times", x, " by 0.0"), b.unary("activation exp", x)});
  b.output(b.div(b.concat({x, x}), zeros));
  agree(b);
}

TEST_P(Ops, Shapes) {
  BlockText b("ops", odd());
  TextValue x = b.input();
  TextValue wide = b.linear(x, 33);
  TextValue middle = b.slice(wide, 5, 17);
  b.output(middle);
  b.output(b.slice(wide, 0, 17));
  b.output(b.slice(b.reshape(wide, {11, 3}), 0, 4));
  b.output(b.linear(b.slice(wide, 0, 31), odd()));
  b.output(b.linear(middle, odd())); // rows that are not adjacent
  b.output(b.linear(middle, odd(), "bf16", true));
  b.output(b.unary("normalize rms", middle, " eps 1.0e-5"));
  b.output(b.unary("softmax", middle));
  b.output(b.concat({middle, x, middle}));
  TextValue cube = b.reshape(b.slice(wide, 1, 30), {5, 3, 2});
  b.output(cube);
  b.output(b.linear(cube, 3));
  TextValue some = b.slice(cube, 2, 2);
  b.output(b.linear(some, 7));
  b.output(b.reshape(some, {12}));
  b.output(b.concat({some, cube}));
  b.output(b.concat({cube, b.slice(cube, 1, 1, 1), cube}, 1));
  b.output(b.concat({cube, b.slice(cube, 1, 1, 2)}, 2));
  b.output(b.transpose(cube, {2, 0, 1}));
  b.output(b.transpose(cube, {1, 0, 2}));
  b.output(b.linear(b.transpose(cube, {0, 2, 1}), 4));
  b.output(b.unary("softmax", b.transpose(b.reshape(wide, {11, 3}), {1, 0})));
  b.output(b.transpose(middle, {0}));
  b.output(b.permute(middle, {3, 5, 9}, {2, 0, 1}));
  b.output(b.permute(cube, {2, 1}, {1, 0}, 1));
  b.output(b.linear(b.permute(cube, {1, 1}, {1, 0}, 2), 3));
  b.output(b.broadcast(b.slice(cube, 1, 1), 4));
  b.output(b.broadcast(b.slice(wide, 1, 1), 5));
  b.output(b.reshape(b.reshape(some, {4, 3}), {1, 12}));
  agree(b);
}

TEST_P(Ops, ParametersAndSettingsAsValues) {
  BlockText b("ops", odd());
  TextValue x = b.input();
  TextValue p = b.param(x.shape), matrix = b.param({5, 3});
  b.output(b.add(x, p));
  b.output(b.mul(x, b.unary("activation exp", p)));
  b.output(b.linear(p, odd()));
  b.output(b.unary("normalize layer", p, " eps 1.0e-3"));
  b.output(b.unary("softmax", matrix));
  b.output(b.slice(matrix, 1, 3));
  b.output(b.reshape(matrix, {15}));
  b.output(b.concat({p, x}));
  b.output(p);
  b.output(b.mul(b.rope(4), b.rope(4)));
  TextValue token = b.op("xf.token", "tensor<i32>", {}),
            at = b.op("xf.position", "tensor<i32>", {});
  TextValue words = b.param({kVocabulary, 7}, "bf16"), places = b.param({40, 9}, "f16");
  b.output(b.op("xf.embed " + words.name + "[" + token.name + "]",
                typeOf({kVocabulary, 7}, "bf16") + ", tensor<i32>", {7}));
  b.output(b.op("xf.embed " + places.name + "[" + at.name + "]",
                typeOf({40, 9}, "f16") + ", tensor<i32>", {9}));
  TextValue other = b.op("xf.token replace [1, 3] by 2", "tensor<i32>", {});
  b.output(b.op("xf.embed " + words.name + "[" + other.name + "]",
                typeOf({kVocabulary, 7}, "bf16") + ", tensor<i32>", {7}));
  TextValue later = b.op("xf.position plus 3", "tensor<i32>", {});
  b.output(b.op("xf.embed " + places.name + "[" + later.name + "]",
                typeOf({40, 9}, "f16") + ", tensor<i32>", {9}));
  TextValue slowly = b.op("xf.position plus 4 over 3", "tensor<i32>", {});
  b.output(b.op("xf.embed " + places.name + "[" + slowly.name + "]",
                typeOf({40, 9}, "f16") + ", tensor<i32>", {9}));
  for (const char *number : {"xf.position", "xf.position plus 2", "xf.position plus 1 over 2"})
    b.output(b.mul(x, b.op(number, "tensor<1xf32>", {1})));
  TextValue two = b.op("xf.constant 2", "tensor<i32>", {});
  b.output(b.op("xf.embed " + places.name + "[" + two.name + "]",
                typeOf({40, 9}, "f16") + ", tensor<i32>", {9}));
  agree(b);
}

TEST_P(Ops, Mixtures) {
  BlockText b("ops", odd());
  TextValue x = b.input();
  b.output(x);
  int64_t experts = 5, inner = odd(), outer = odd();
  // One fused tensor, or one for each expert.
  struct Form {
    int64_t k;
    const char *element;
    bool stars;
  };
  for (auto [k, element, stars] :
       {Form{1, "f32", false}, Form{2, "bf16", true}, Form{5, "f16", true}}) {
    TextValue scores = b.unary("softmax", b.linear(x, experts));
    TextValue sel = b.topK(scores, k), w = b.gather(scores, sel);
    b.output(w);
    b.output(b.unary("normalize sum", w, " eps 1.0e-3"));
    TextValue h = b.expertLinear(x, sel, experts, inner, element, false, stars);
    b.output(h);
    b.output(b.expertLinear(x, sel, experts, inner, element, true, stars));
    TextValue g = b.unary("activation silu", h);
    b.output(b.slice(g, inner / 2, (inner + 1) / 2, 1));
    TextValue d = b.expertLinear(g, sel, experts, outer, element, stars, stars);
    b.output(d);
    b.output(b.combine(w, d));
    b.output(b.combine(w, b.reshape(d, {k, outer, 1})));
    b.output(b.outer(w, x));
  }
  // Ties, and scores that no router gives.
  TextValue zeros = b.unary("times", b.linear(x, 7), " by 0.0");
  b.output(b.gather(b.linear(x, 7), b.topK(zeros, 3)));
  // Groups; selected rows of a value, and of a stored tensor.
  TextValue scores = b.linear(x, 12);
  for (auto [k, groups, keep] : {std::array{3, 4, 2}, {3, 6, 2}, {6, 2, 1}, {1, 3, 3}}) {
    std::string limit = " groups " + std::to_string(groups) + " keep " + std::to_string(keep);
    b.output(b.gather(scores, b.topK(scores, k, limit)));
  }
  TextValue sel = b.topK(b.linear(x, 6), 2);
  b.output(b.gather(b.reshape(scores, {6, 2}), sel));
  b.output(b.gather(b.param({6, 5}, "bf16"), sel));
  b.output(b.gather(b.param({6, 3}), sel));
  agree(b);
}

TEST_P(Ops, RotaryAndAttention) {
  BlockText b("ops", odd());
  TextValue x = b.input();
  auto heads = [&](int64_t count, int64_t width) {
    return b.reshape(b.linear(x, count * width), {count, width});
  };
  TextValue q = heads(6, 7), k = heads(3, 7), v = heads(3, 5);
  b.output(x);
  b.output(q);
  for (const char *style : {"half", "interleaved"})
    for (int64_t n : {1, 2, 3}) // 2n of 7 entries; the others stay
      b.output(b.rotary(style, q, b.rope(n)));
  TextValue even = heads(1, 8);
  b.output(b.rotary("half", even, b.rope(4)));
  b.output(b.rotary("half", q, b.rope(2), " amplitude 1.7"));
  b.output(b.rotary("interleaved", even, b.rope(4)));
  b.output(b.attention(q, k, v, 0));
  b.output(b.attention(q, b.rotary("half", k, b.rope(3)), v, 3));
  b.output(b.attention(b.slice(q, 2, 3), k, heads(3, 1), 1));
  b.output(b.attention(b.slice(q, 1, 4), heads(1, 7), heads(1, 33), 1000));
  b.output(b.attention(q, k, v, 0, "0.2")); // most scores are close to the cap
  b.output(b.attention(q, k, v, 3, "30.0"));
  TextValue slopes = b.rope(6), own = b.reshape(heads(1, 6), {6}); // the block's, each token's
  for (std::string rounded : {"", " rounded"}) {
    b.output(b.attention(q, k, v, 0, "", " slopes " + slopes.name + " : tensor<6xf32>" + rounded));
    b.output(b.attention(q, k, v, 3, "", " slopes " + own.name + " : tensor<6xf32>" + rounded));
  }
  for (const char *element : {"f32", "bf16"}) {
    TextValue sinks = b.param({6}, element);
    std::string with = " sinks " + sinks.name + " : " + typeOf(sinks.shape, element);
    b.output(b.attention(q, k, v, 3, "", with));
    b.output(b.attention(q, k, v, 0, "", " slopes " + own.name + " : tensor<6xf32>" + with));
  }
  agree(b);
}

/// Windows that begin within the prompt, at and between multiples of what loops take at a time.
TEST_P(Ops, LongWindows) {
  BlockText b("ops", odd());
  TextValue x = b.input();
  TextValue q = b.reshape(b.linear(x, 4 * 7), {4, 7}), k = b.reshape(b.linear(x, 2 * 7), {2, 7});
  TextValue slopes = b.rope(4), sinks = b.param({4}, "f32");
  std::string sunk = " sinks " + sinks.name + " : tensor<4xf32>";
  TextValue sum = x;
  for (int64_t window : {1, 15, 16, 17, 33, 50})
    sum = b.add(sum,
                b.linear(b.reshape(b.attention(q, k, k, window, "", window % 2 ? sunk : ""), {28}),
                         x.shape[0]));
  b.output(sum);
  TextModel model(modelText({b}), GetParam());
  ASSERT_EQ(model.compile(), "");
  const int64_t rows = 70;
  std::vector<int64_t> tokens = someTokens(rows, 3), at = upTo(rows);
  auto expectedRun = model.reference->start(rows), run = model.compiled->start(rows),
       slowRun = model.compiled->start(rows);
  Seen expected = see(*model.reference, *expectedRun, tokens, at),
       found = see(*model.compiled, *run, tokens, at);
  expectSame(found, expected, 1e-5, "a prompt");
  for (int64_t i = 0; i < rows; ++i) {
    Seen one = see(*model.compiled, *slowRun, {tokens[i]}, {i});
    size_t width = one.logits.size();
    EXPECT_EQ(one.logits, std::vector<double>(found.logits.begin() + i * width,
                                              found.logits.begin() + (i + 1) * width));
  }
}

/// Cannot run token by token: a row's result depends on all tokens of the call.
TEST_P(Ops, BidirectionalAttention) {
  BlockText b("ops", odd());
  TextValue x = b.input();
  TextValue q = b.reshape(b.linear(x, 4 * 7), {4, 7}), k = b.reshape(b.linear(x, 2 * 7), {2, 7});
  b.output(b.linear(b.reshape(b.attention(q, k, k, 0, "", " bidirectional"), {28}), x.shape[0]));
  TextModel model(modelText({b}), GetParam());
  ASSERT_EQ(model.compile(), "");
  for (int64_t rows : {1, 2, 5}) {
    std::vector<int64_t> tokens = someTokens(rows, rows), at = upTo(rows);
    auto expectedRun = model.reference->start(rows), run = model.compiled->start(rows);
    expectSame(see(*model.compiled, *run, tokens, at),
               see(*model.reference, *expectedRun, tokens, at), 1e-5, std::to_string(rows));
  }
}

TEST_P(Ops, PatchOps) {
  int64_t n = odd(), m = odd();
  BlockText b("ops", n);
  TextValue x = b.input(), y = b.unary("activation tanh", b.linear(x, n)), z = b.linear(x, n);
  std::string tn = typeOf(x), tm = typeOf(Shape{m});
  for (bool transposed : {false, true}) {
    TextValue w = b.param(transposed ? Shape{n, m} : Shape{m, n}, "bf16");
    std::string r = b.fresh("%r");
    b.effect(r + ":3 = patch.linears " + w.name + " * (" + x.name + ", " + y.name + ", " + z.name +
             ")" + (transposed ? " transposed" : "") + " : " + typeOf(w.shape, "bf16") + ", (" +
             tn + ", " + tn + ", " + tn + ") -> (" + tm + ", " + tm + ", " + tm + ")");
    for (int i = 0; i < 3; ++i)
      b.output({r + "#" + std::to_string(i), {m}});
    std::string p = b.fresh("%r");
    b.effect(p + ":2 = patch.rank1 to " + r + "#0 from " + r + "#1 at " + y.name + " : " + tm +
             ", " + tn);
    b.output({p + "#0", {m}});
    b.output({p + "#1", {n}});
    b.output(b.op("patch.apply_rank1 " + r + "#1 + " + p + "#0, " + p + "#1 at " + y.name,
                  tm + ", " + tn, {m}));
    std::string zero = b.unary("times", y, " by 0.0").name, o = b.fresh("%r");
    b.effect(o + ":2 = patch.rank1 to " + r + "#0 from " + r + "#1 at " + zero + " : " + tm + ", " +
             tn);
    b.output({o + "#1", {n}});
  }
  for (const char *element : {"f32", "bf16"}) {
    TextValue p = b.param({n}, element);
    TextValue moved = b.op("patch.apply_delta " + p.name + " + " + y.name,
                           typeOf(p.shape, element) + ", " + tn + " -> " + tn, {n});
    b.output(moved);
    b.output(b.op("xf.scale " + x.name + " by " + moved.name + " offset 1.0", tn + ", " + tn, {n}));
    b.output(b.op("xf.bias " + x.name + " + " + moved.name, tn + ", " + tn, {n}));
    for (const char *update : {"naive", "scaled", "least"})
      b.output(b.op("patch.solve_scale " + std::string(update) + " to " + y.name + " by " + p.name +
                        " at " + b.unary("activation exp", b.unary("softcap", x, " at 1.0")).name +
                        " offset 1.0 counts 0",
                    tn + ", " + typeOf(p.shape, element) + " -> " + tn, {n}));
  }
  b.effect("patch.obligation nonzero_vector " + x.name + " counts 1 \"Lemma\" : " + tn);
  agree(b);
}

TEST_P(Ops, PatchesOfExperts) {
  BlockText b("ops", odd());
  TextValue x = b.input();
  b.output(x);
  int64_t in = odd(), out = odd();
  TextValue h = b.reshape(b.linear(x, 3 * in), {3, in}), z = b.linear(x, in);
  TextValue y = b.reshape(b.linear(x, 3 * out), {3, out});
  TextValue u = b.reshape(b.linear(x, 3 * out), {3, out}), v = b.unary("activation tanh", h);
  // Selections that have some experts in common.
  TextValue selected = b.topK(b.linear(x, 5), 3), patched = b.topK(b.linear(x, 5), 3);
  for (const TextValue &data : {h, z})
    b.output(b.op("patch.apply_expert_rank1 " + y.name + " + " + u.name + ", " + v.name + " for " +
                      patched.name + " at " + data.name + "[" + selected.name + "]",
                  typeOf(y) + ", " + typeOf(v) + ", " + typeOf(data) + ", tensor<3xi32>",
                  {3, out}));
  // With one vector for each slot, and with one for all.
  for (auto [data, other, transposed] : {std::tuple(h, v, false), {z, b.linear(x, in), true}})
    for (const TextValue &run :
         b.expertLinears({data, other}, {selected, patched}, 5, out, transposed))
      b.output(run);
  b.output(b.op("patch.squared_norms " + h.name, typeOf(h) + " -> tensor<3xf32>", {3}));
  b.effect("patch.obligation nonzero_vector " + h.name + " for " + u.name +
           " counts 0 \"Lemma\" : " + typeOf(h) + ", " + typeOf(u));
  b.effect("patch.same_selection " + selected.name + ", " + patched.name +
           " counts 1 \"Lemma\" : tensor<3xi32>");
  agree(b);
}

TEST_P(Ops, InvertRmsNorm) {
  for (int64_t n : {7, 33}) {
    BlockText b("ops", n);
    TextValue x = b.input(), target = b.linear(x, n), current = b.linear(x, n), m = b.param({n});
    for (unsigned update = 0; update <= patch::getMaxEnumValForUpdateKind(); ++update)
      b.output(b.op(
          "patch.invert_rms_norm " + stringifyUpdateKind(patch::UpdateKind(update)).str() + " to " +
              target.name + " by " + m.name + " from " + current.name + " eps 1.0e-5 offset 1.0",
          typeOf(target) + ", " + typeOf(m), {n}));
    agree(b, 1e-3); // the inner problem magnifies roundings of its inputs
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Ops, testing::Values(1, 2, 3));

TEST(OpsWithoutCompiledForm, SaySo) {
  const char *ops[] = {"%c = xf.contextual \"mystery\"(%x) : (tensor<3xf32>) -> tensor<3xf32>"};
  for (const char *op : ops) {
    BlockText b("ops", 3);
    b.effect(op);
    b.output({"%c", {3}});
    TextModel model(modelText({b}));
    std::string diagnostic;
    mlir::ScopedDiagnosticHandler handler(&model.context, [&](mlir::Diagnostic &d) {
      llvm::raw_string_ostream(diagnostic) << d.getLocation() << ": " << d;
    });
    EXPECT_NE(model.compile(), "") << op;
    EXPECT_NE(diagnostic.find("has no compiled kernel; the reference engine runs it"),
              std::string::npos)
        << diagnostic;
    EXPECT_NE(diagnostic.find("test.mlir\":"), std::string::npos) << diagnostic;
  }
}

TEST(OpsOnBadTokens, IdsBeyondATableAreErrors) {
  BlockText b("ops", 3);
  TextValue at = b.op("xf.position", "tensor<i32>", {}), places = b.param({4, 3});
  b.output(
      b.op("xf.embed " + places.name + "[" + at.name + "]", typeOf(places) + ", tensor<i32>", {3}));
  TextModel model(modelText({b}));
  ASSERT_EQ(model.compile(), "");
  for (Executor *executor : {model.reference.get(), model.compiled.get()}) {
    auto message = [&](int64_t token, int64_t position) {
      auto run = executor->start(9);
      auto logits = executor->forward(*run, token, position, {});
      return logits ? "no error" : llvm::toString(logits.takeError());
    };
    EXPECT_EQ(message(kVocabulary - 1, 3), "no error");
    EXPECT_NE(message(kVocabulary, 0).find("the table has 19 rows"), std::string::npos);
    EXPECT_NE(message(0, 4).find("the table has 4 rows"), std::string::npos);
  }
}

} // namespace
