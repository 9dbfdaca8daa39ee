// Many rows with so many tokens, or so many experts, that a block computes several parts of a
// result.
#include "RowsCase.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

/// A pre-norm layer.
BlockText layer() {
  BlockText b("long", 24);
  TextValue x = b.input(), n = b.unary("normalize rms", x, " eps 1.0e-2");
  auto heads = [&](int64_t count) { return b.reshape(b.linear(n, count * 8, "bf16"), {count, 8}); };
  TextValue q = heads(4), k = heads(2), v = heads(2);
  TextValue mixed = b.reshape(b.attention(q, k, v, 0), {32});
  TextValue y = b.add(x, b.linear(mixed, 24));
  TextValue h = b.unary("normalize rms", y, " eps 1.0e-2");
  TextValue gate = b.mul(b.unary("activation silu", b.linear(h, 20)), b.linear(h, 20));
  b.output(b.add(y, b.linear(gate, 24)));
  return b;
}

// There are so many tokens that a block computes the scores of several tiles.
TEST(GpuRowsLarge, SeeLongContexts) {
  CTXC_OPEN_DEVICE(device);
  TextModel model(modelText({layer()}), /*seed=*/5, /*threads=*/2, /*planned=*/true);
  EXPECT_EQ(model.plans, 1);
  RowsCase(model.program, *model.weights, 5, /*before=*/16500, /*kept=*/16400)
      .expectAgreement(*device, 2e-4);
}

// The experts' matrices have so many rows that a block takes several parts of them.
TEST(GpuRowsLarge, HaveManyExperts) {
  CTXC_OPEN_DEVICE(device);
  BlockText b("experts", 8);
  TextValue scores = b.linear(b.input(), 5), chosen = b.topK(scores, 4);
  TextValue wide = b.expertLinear(b.input(), chosen, 5, 8300, "f32", false, false);
  b.output(b.linear(b.combine(b.gather(scores, chosen), wide), 8));
  TextModel model(modelText({b}), /*seed=*/6);
  RowsCase(model.program, *model.weights, 33, /*before=*/0, /*kept=*/0)
      .expectAgreement(*device, 2e-4);
}

} // namespace
