// Attention of many rows, whose two products are computed in tiles, compared with the processor's:
// with tiles of slots that rows do not see, and with more tiles than blocks.
#include "RowsCase.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

/// `groups` of two heads each; the rows come after `before` tokens.
void agree(int64_t groups, int64_t rows, int64_t before) {
  CTXC_OPEN_DEVICE(device);
  BlockText b("attends", 12);
  TextValue x = b.input();
  auto heads = [&](int64_t count) { return b.reshape(b.linear(x, count * 4), {count, 4}); };
  TextValue q = heads(2 * groups), k = heads(groups), v = heads(groups);
  b.output(b.linear(b.reshape(b.attention(q, k, v, 0), {groups * 8}), 12));
  TextModel model(modelText({b}), /*seed=*/4);
  RowsCase(model.program, *model.weights, rows, before, /*kept=*/3).expectAgreement(*device, 1e-4);
}

TEST(GpuAttentionTiles, ThatNoRowSeesAreLeftOut) { agree(2, 70, 10); }
TEST(GpuAttentionTiles, AreMoreThanBlocks) { agree(16, 33, 1000); }

} // namespace
