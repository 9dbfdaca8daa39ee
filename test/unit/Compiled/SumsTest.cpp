// What the numbers of a row depend on, and not: threads, the rows beside it, rounding.
#include "TextModel.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::test;

namespace {

/// Everything but attention, whose sums run over what is visible.
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
  // As many rows as take the panels of a prompt, and are shared out; and one by one.
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

/// A token that sees enough slots has its groups of heads shared out, and a thread may have none.
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

/// The root mean square of a, or of a − b.
double rootMeanSquare(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b = {}) {
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i)
    squares += (a[i] - (b.empty() ? 0 : b[i])) * (a[i] - (b.empty() ? 0 : b[i]));
  return std::sqrt(squares / a.size());
}

/// Rounding to eight bits is all that tells a prompt of many rows from the same rows one by one:
/// a column left out, or read beyond the end, would be five times as much.
TEST(RoundedPrompts, AreOffByTheirRounding) {
  if (!CpuTarget::host().bfloatPairs)
    GTEST_SKIP() << "this processor has no avx512_bf16";
  for (int64_t width : {1, 31, 33, 64, 97, 130, 4200}) { // the last is more than one panel of W
    SCOPED_TRACE(width);
    BlockText b("ops", width);
    b.output(b.linear(b.input(), 70, "bf16"));
    BlockText back("back", 70);
    back.output(back.linear(back.input(), width, "bf16"));
    TextModel exact(modelText({b, back}), 1), rounded(modelText({b, back}), 1),
        shared(modelText({b, back}), 1, /*threads=*/3);
    rounded.roundedPrompts = shared.roundedPrompts = true;
    ASSERT_EQ(exact.compile(), "");
    ASSERT_EQ(rounded.compile(), "");
    ASSERT_EQ(shared.compile(), "");
    constexpr int64_t count = 19; // a tile of each size
    std::vector<int64_t> tokens = someTokens(count, 3);
    auto exactRun = exact.compiled->start(count), run = rounded.compiled->start(count);
    Seen expected = see(*exact.compiled, *exactRun, tokens, upTo(count));
    Seen found = see(*rounded.compiled, *run, tokens, upTo(count));
    ASSERT_EQ(found.layers.size(), expected.layers.size());
    EXPECT_EQ(found.layers.front(), expected.layers.front()); // the embedding
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

} // namespace
