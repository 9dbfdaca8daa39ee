// What the results of a row depend on: neither threads nor the other rows, and rounding only as
// specified.
#include "TextModel.h"
#include "test/unit/WithoutTiles.h"
#include <array>
#include <cmath>

using namespace ctxc;
using namespace ctxc::test;

namespace {

/// Tests everything except attention, whose sums go over the visible tokens.
TEST(RowSums, DependOnNeitherThreadsNorRows) {
  BlockText b("ops", 65);
  TextValue x = b.input();
  TextValue h = b.linear(x, 131, "bf16");
  h = b.linear(b.unary("activation tanh", h), 45, "f16");
  h = b.linear(b.unary("normalize rms", h, " eps 1.0e-5"), 33, "f32", true);
  TextValue scores = b.unary("softmax", b.linear(x, 6)), sel = b.topK(scores, 2);
  TextValue experts = b.expertLinear(h, sel, 6, 49, "bf16", false, true);
  experts = b.expertLinear(experts, sel, 6, 33, "f32", false, false);
  h = b.add(h, b.combine(b.gather(scores, sel), experts));
  b.output(b.linear(h, 65));
  // As many rows as prompts need for panels and for several threads; and one row at a time.
  constexpr int64_t count = 37;
  std::vector<int64_t> tokens = someTokens(count, 3);
  TextModel one(modelText({b}), 1, 1);
  ASSERT_EQ(one.compile(), "");
  auto first = one.compiled->start(count);
  Seen expected = see(*one.compiled, *first, tokens, upTo(count));
  for (int threads : {1, 2, 4}) {
    TextModel other(modelText({b}), 1, threads);
    ASSERT_EQ(other.compile(), "");
    auto together = other.compiled->start(count), single = other.compiled->start(count);
    Seen found = see(*other.compiled, *together, tokens, upTo(count));
    EXPECT_EQ(found.logits, expected.logits) << threads;
    EXPECT_EQ(found.layers, expected.layers) << threads;
    for (int64_t i = 0; i < count; ++i)
      EXPECT_EQ(see(*other.compiled, *single, tokens[i], i).logits,
                llvm::ArrayRef(expected.logits).slice(i * kVocabulary, kVocabulary).vec())
          << i << ", " << threads;
  }
}

/// Matrices stored as (in, out): of every type, in shapes with and without whole vectors, tiles,
/// groups of rows that are read together, and panels; also in experts.
TEST(TransposedSums, DependOnNeitherThreadsNorRows) {
  std::vector<BlockText> blocks;
  for (auto [in, out, element] : {std::tuple(64, 131, "f32"),
                                  {131, 520, "bf16"},
                                  {520, 300, "f16"},
                                  {300, 33, "f32"},
                                  {33, 2111, "bf16"},
                                  {2111, 64, "f32"}}) {
    BlockText &b = blocks.emplace_back("ops" + std::to_string(in), in);
    TextValue x = b.input(), y = b.linear(x, out, element, /*transposed=*/true);
    b.output(b.unary("normalize rms", y, " eps 1.0e-5"));
  }
  BlockText &b = blocks.emplace_back("experts", 64);
  TextValue x = b.input(), scores = b.unary("softmax", b.linear(x, 6, "f32", true)),
            sel = b.topK(scores, 2), y = b.expertLinear(x, sel, 6, 81, "bf16", true, true);
  b.output(b.linear(b.combine(b.gather(scores, sel), y), 64));
  constexpr int64_t count = 37;
  std::vector<int64_t> tokens = someTokens(count, 3);
  std::optional<Seen> first;
  for (int threads : {1, 2, 3, 5}) {
    SCOPED_TRACE(threads);
    TextModel model(modelText(blocks), 1, threads);
    ASSERT_EQ(model.compile(), "");
    // Enough rows for panels and for each size of tile; few rows; pairs, and a row that is left;
    // one at a time.
    for (std::vector<int64_t> parts : {std::vector<int64_t>{37}, {16, 21}, {2, 15, 3, 17}, {}}) {
      if (parts.empty())
        parts.assign(count, 1);
      auto run = model.compiled->start(count);
      std::vector<std::vector<double>> layers(blocks.size() + 1);
      int64_t at = 0;
      for (int64_t part : parts) {
        std::vector<int64_t> positions;
        for (int64_t i = 0; i < part; ++i)
          positions.push_back(at + i);
        Seen seen = see(*model.compiled, *run, llvm::ArrayRef(tokens).slice(at, part), positions);
        ASSERT_EQ(seen.layers.size(), layers.size());
        for (auto [whole, piece] : llvm::zip(layers, seen.layers))
          llvm::append_range(whole, piece);
        at += part;
      }
      if (!first) {
        first = Seen{layers, {}};
        auto exact = model.reference->start(count);
        Seen expected = see(*model.reference, *exact, tokens, upTo(count));
        for (auto [i, layer] : llvm::enumerate(layers))
          EXPECT_LE(relativeDifference(layer, expected.layers[i]), 1e-5) << i;
      }
      EXPECT_EQ(layers, first->layers) << parts.size();
    }
  }
}

/// For a token that sees enough slots, threads divide the groups of heads; some threads may get
/// none.
TEST(GroupsOfHeads, DependOnNoThreads) {
  BlockText b("ops", 33);
  TextValue x = b.input();
  auto heads = [&](int64_t count, int64_t width) {
    return b.reshape(b.linear(x, count * width), {count, width});
  };
  TextValue q = heads(10, 70), k = heads(5, 70), v = heads(5, 85), sinks = b.param({10});
  b.output(x);
  b.output(b.attention(q, k, v, 0));
  b.output(b.attention(q, k, v, 50, "30.0"));
  b.output(b.attention(q, k, v, 0, "", " sinks " + sinks.name + " : tensor<10xf32>"));
  constexpr int64_t before = 77, after = 5;
  std::vector<int64_t> tokens = someTokens(before + after, 3);
  auto seenBy = [&](Executor &executor) {
    auto run = executor.start(before + after);
    std::vector<Seen> all;
    see(executor, *run, llvm::ArrayRef(tokens).take_front(before), upTo(before));
    for (int64_t i = before; i < before + after; ++i)
      all.push_back(see(executor, *run, tokens[i], i));
    return all;
  };
  std::vector<Seen> expected, first;
  for (int threads : {1, 2, 3, 4, 7}) {
    SCOPED_TRACE(threads);
    TextModel model(modelText({b}), 1, threads);
    ASSERT_EQ(model.compile(), "");
    if (expected.empty())
      expected = seenBy(*model.reference);
    std::vector<Seen> found = seenBy(*model.compiled);
    if (first.empty())
      first = found;
    for (int64_t i = 0; i < after; ++i) {
      expectSame(found[i], expected[i], 1e-5, std::to_string(i));
      EXPECT_EQ(found[i].layers, first[i].layers) << i;
    }
  }
}

/// Products of many rows are computed from a copy of the keys, those of one row are not: of whole
/// registers, with a rest, of less than a register, and of so many numbers that they are a loop.
TEST(AttentionSums, DependOnNeitherThreadsNorRows) {
  for (int64_t width : {64, 40, 3, 277}) {
    SCOPED_TRACE(width);
    BlockText b("ops", 33);
    TextValue x = b.input();
    auto heads = [&](int64_t count) {
      return b.reshape(b.linear(x, count * width), {count, width});
    };
    TextValue q = heads(6), k = heads(2), v = heads(2);
    b.output(x);
    b.output(b.attention(q, k, v, 0));
    b.output(b.attention(q, k, v, 50, "30.0"));
    constexpr int64_t count = 150; // two tiles of slots
    std::vector<int64_t> tokens = someTokens(count, 3);
    std::optional<Seen> first;
    for (int threads : {1, 3}) {
      TextModel model(modelText({b}), 1, threads);
      ASSERT_EQ(model.compile(), "");
      auto together = model.compiled->start(count), single = model.compiled->start(count);
      Seen found = see(*model.compiled, *together, tokens, upTo(count));
      if (!first) {
        auto run = model.reference->start(count);
        expectSame(found, see(*model.reference, *run, tokens, upTo(count)), 1e-5, "all");
        first = found;
      }
      EXPECT_EQ(found.layers, first->layers) << threads;
      for (int64_t i = 0; i < count; ++i) {
        Seen alone = see(*model.compiled, *single, tokens[i], i);
        for (auto [layer, all] : llvm::zip_equal(alone.layers, found.layers))
          EXPECT_EQ(layer, llvm::ArrayRef(all).slice(i * layer.size(), layer.size()).vec())
              << i << ", " << threads;
      }
    }
  }
}

/// A prompt of many rows differs from the same rows one by one only by rounding to eight bits. A
/// column that is left out, or a read beyond the end, would give an error five times as large.
void expectOffByTheirRounding() {
  // The last shape has more than one panel of W.
  for (int64_t at = 0; at < 14; ++at) {
    int64_t width = std::array{1, 31, 33, 64, 97, 130, 4200}[at / 2];
    bool transposed = at % 2;
    SCOPED_TRACE(testing::Message() << width << (transposed ? " transposed" : ""));
    BlockText b("ops", width);
    b.output(b.linear(b.input(), 70, "bf16", transposed));
    BlockText back("back", 70);
    back.output(back.linear(back.input(), width, "bf16", transposed));
    TextModel exact(modelText({b, back}), 1), rounded(modelText({b, back}), 1),
        shared(modelText({b, back}), 1, /*threads=*/3);
    rounded.prompts = shared.prompts = PromptProducts::Rounded;
    ASSERT_EQ(exact.compile(), "");
    ASSERT_EQ(rounded.compile(), "");
    ASSERT_EQ(shared.compile(), "");
    constexpr int64_t count = 53; // needs a tile of each size, in vectors and in tile registers
    std::vector<int64_t> tokens = someTokens(count, 3);
    auto exactRun = exact.compiled->start(count), run = rounded.compiled->start(count);
    Seen expected = see(*exact.compiled, *exactRun, tokens, upTo(count));
    Seen found = see(*rounded.compiled, *run, tokens, upTo(count));
    ASSERT_EQ(found.layers.size(), expected.layers.size());
    EXPECT_EQ(found.layers.front(), expected.layers.front()); // of the embedding
    for (size_t i = 1; i < found.layers.size(); ++i) {
      double error = rootMeanSquare(found.layers[i], expected.layers[i]),
             whole = rootMeanSquare(expected.layers[i]);
      EXPECT_GT(error, 1e-5 * whole) << i;
      EXPECT_LT(error, 2e-2 * whole) << i;
    }
    auto sharedRun = shared.compiled->start(count);
    EXPECT_EQ(see(*shared.compiled, *sharedRun, tokens, upTo(count)).layers, found.layers);
    auto single = rounded.compiled->start(count);
    for (int64_t i = 0; i < count; ++i)
      EXPECT_EQ(see(*rounded.compiled, *single, tokens[i], i).logits,
                llvm::ArrayRef(expected.logits).slice(i * kVocabulary, kVocabulary).vec());
  }
}

TEST(RoundedPrompts, AreOffByTheirRounding) {
  if (!CpuTarget::host().bfloatPairs)
    GTEST_SKIP() << "this processor has no avx512_bf16";
  TilesOff off;
  expectOffByTheirRounding();
}

TEST(RoundedPrompts, AreOffByTheirRoundingInTiles) {
  if (!CpuTarget::host().tiles)
    GTEST_SKIP() << "this processor has no AMX, or the system does not give it";
  expectOffByTheirRounding();
}

/// The same products, in another order: 32 numbers at a time instead of two. Some tiles are whole,
/// others are stored in part, of one panel and of several.
TEST(RoundedPrompts, AreTheSameInTilesAsInVectors) {
  if (!CpuTarget::host().tiles)
    GTEST_SKIP() << "this processor has no AMX, or the system does not give it";
  for (int64_t width : {33, 640, 4200})
    for (int64_t count : {16, 19, 32, 53}) {
      SCOPED_TRACE(testing::Message() << width << ", " << count);
      BlockText b("ops", width);
      b.output(b.linear(b.input(), 95, "bf16"));
      TextModel tiles(modelText({b}), 1), vectors(modelText({b}), 1);
      tiles.prompts = vectors.prompts = PromptProducts::Rounded;
      ASSERT_EQ(tiles.compile(), "");
      TilesOff off;
      ASSERT_EQ(vectors.compile(), "");
      std::vector<int64_t> tokens = someTokens(count, 3);
      auto run = tiles.compiled->start(count), other = vectors.compiled->start(count);
      auto found = see(*tiles.compiled, *run, tokens, upTo(count)).layers.back();
      auto expected = see(*vectors.compiled, *other, tokens, upTo(count)).layers.back();
      EXPECT_LE(rootMeanSquare(found, expected), 1e-6 * rootMeanSquare(expected));
      EXPECT_LE(relativeDifference(found, expected), 1e-4);
    }
}

/// Split numbers are multiplied as exactly as in float32, with any storage type, in tiles that are
/// whole or stored in part, of one panel of W and of several.
TEST(SplitPrompts, AreAsExactAsFloat32) {
  if (!CpuTarget::host().tiles)
    GTEST_SKIP() << "this processor has no AMX, or the system does not give it";
  for (const char *element : {"f32", "f16", "bf16"})
    for (int64_t width : {1, 31, 64, 97, 2100})
      for (bool transposed : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << element << ", " << width << (transposed ? " transposed" : ""));
        BlockText b("ops", width);
        b.output(b.linear(b.input(), 70, element, transposed));
        TextModel model(modelText({b}), 1), split(modelText({b}), 1),
            shared(modelText({b}), 1, /*threads=*/3);
        split.prompts = shared.prompts = PromptProducts::Split;
        for (TextModel *each : {&model, &split, &shared})
          ASSERT_EQ(each->compile(), "");
        auto [found, exact] = expectAsExactWhenSplit(model, split);
        EXPECT_EQ(lastLayer(*shared.compiled), found);
        if (width > 64) // in tiles, and so in another order
          EXPECT_NE(found, exact);
      }
}

} // namespace
