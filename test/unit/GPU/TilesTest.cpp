// Tile kernels on a device compared with float64: random shapes from a single element up, weights
// of every type, results that are overwritten and added to, and vectors with other data between
// them. The memory around a result stays unchanged, and a row's sums do not depend on where in a
// chunk the row is.
#include "TileCase.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

struct GpuTiles : testing::TestWithParam<int> {
  GpuTiles() : random(GetParam()) {}
  int64_t among(std::initializer_list<int64_t> all) { return all.begin()[random() % all.size()]; }
  std::mt19937 random;
};

TEST_P(GpuTiles, AreWithinTheirBound) {
  std::vector<TileCase> cases;
  for (const char *element : {"f32", "bf16", "f16"}) {
    cases.push_back({5, 1, 1, element});
    cases.push_back({among({5, 17, 33, 64}), among({1, 3, 63, 65, 130}), among({1, 7, 15, 17, 33}),
                     element, bool(random() % 2)});
    cases.push_back({among({6, 16, 31, 66}), among({64, 72, 129}), among({8, 24, 64, 136}), element,
                     bool(random() % 2)});
    cases.push_back({among({5, 40}), among({40, 72}), among({8, 48}), element, bool(random() % 2),
                     /*offset=*/8, /*stride=*/72});
    cases.push_back({among({5, 40}), among({40, 72}), among({8, 48}), element, bool(random() % 2),
                     /*offset=*/3, /*stride=*/75});
  }
  for (const TileCase &each : cases) {
    CTXC_OPEN_DEVICE(device);
    if (each.element != "f16" || (*GpuTarget::named(device->target()))->readsFloat16())
      each.check(*device, random);
  }
}

/// Matrices of bfloat16 whose rows are pieces of 16 bytes: these use tensor cores, where the device
/// has them, with tiles of 32, 64 and 128 rows, and x exact and rounded.
TEST_P(GpuTiles, OfPiecesAreWithinTheirBound) {
  for (bool rounded : {false, true})
    for (int64_t rows : {among({5, 32}), among({33, 64}), among({65, 130})}) {
      CTXC_OPEN_DEVICE(device);
      TileCase each{rows, among({1, 8, 127, 129}), among({8, 32, 40, 72, 120, 264}), "bf16",
                    bool(random() % 2)};
      each.rounded = rounded;
      if (random() % 2)
        each.offset = 16, each.stride = each.in + 32;
      each.check(*device, random);
    }
}

TEST_P(GpuTiles, SumTheSameWhereverARowIs) {
  for (const char *element : {"f32", "bf16"}) {
    CTXC_OPEN_DEVICE(device);
    CTXC_OPEN_DEVICE(another);
    TileCase few{5, 33, 40, element}, many{37, 33, 40, element};
    TileData data = many.data(random);
    std::vector<float> all = many.run(*device, data);
    TileData last = data;
    last.x.assign(data.x.end() - 5 * 40, data.x.end());
    last.y.assign(5 * 33, 0);
    std::vector<float> five = few.run(*another, last);
    EXPECT_EQ(five, std::vector<float>(all.end() - 5 * 33, all.end())) << element;
  }
}

/// So many columns that devices with enough memory use larger tiles.
TEST(GpuTilesLarge, AreWithinTheirBound) {
  std::mt19937 random(7);
  TileCase rounded{70, 16300, 72, "bf16"};
  rounded.rounded = true;
  for (TileCase each :
       {TileCase{70, 16300, 9, "f32"}, TileCase{70, 16300, 24, "bf16", true}, rounded}) {
    CTXC_OPEN_DEVICE(device);
    each.check(*device, random);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, GpuTiles, testing::Range(0, 3));

} // namespace
