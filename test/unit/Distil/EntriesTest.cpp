// Virtual entries in the place of a context.
#include "Models.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

DistilRequest requestFor(int64_t count) {
  DistilRequest request;
  request.context = context();
  request.fit.entries = count;
  for (int64_t i = 0; i < 6; ++i)
    request.texts.push_back({someTokens(8, 20 + i), 2});
  return request;
}

Adapter fitted(Model &model, int64_t count) {
  return llvm::cantFail(model.distil(requestFor(count))).adapter;
}

} // namespace

/// As many entries as the context has tokens are the context, at whatever positions.
TEST(Entries, AsManyAsTokensAreTheContext) {
  for (llvm::StringRef name : {"gemma3", "gemma2", "llama", "gpt2", "falcon-alibi", "mixtral",
                               "mistral", "gpt-oss", "phi", "deepseek-v3", "opt", "bloom"}) {
    auto model = modelOf(name);
    Adapter adapter = fitted(*model, 100);
    EXPECT_EQ(adapter.entries.count(), int64_t(context().size())) << name.str();
    Card card = llvm::cantFail(model->evaluate(adapter, heldOut()));
    EXPECT_GT(card.all.klPlain, 1e-5) << name.str();
    EXPECT_LT(card.all.klAdapted, 1e-9) << name.str();
    EXPECT_EQ(card.tokensSaved, 0) << name.str();
    EXPECT_NEAR(card.drift, card.driftOfContext, 1e-9 + 1e-6 * card.driftOfContext) << name.str();
  }
}

/// Fewer entries recover most of the effect on the texts that they were fitted to, and more the
/// more there are; the values of all heads together more than those of single ones, which stay
/// below the mean.
TEST(Entries, FewerRecoverMost) {
  const auto names = {"gemma3",  "gemma2",  "llama",   "gpt2",       "falcon-alibi",
                      "mixtral", "mistral", "gpt-oss", "deepseek-v3"};
  double ofFour = 0;
  for (llvm::StringRef name : names) {
    auto model = modelOf(name);
    EvaluateRequest seen = heldOut();
    seen.texts.clear();
    for (int64_t i = 0; i < 6; ++i)
      seen.texts.push_back({someTokens(8, 20 + i), 2});
    double last = -1;
    for (int64_t count : {1, 4, 8}) {
      Card card = llvm::cantFail(model->evaluate(fitted(*model, count), seen));
      EXPECT_GT(card.all.share(), last - 0.05) << name.str() << " " << count;
      EXPECT_EQ(card.tokensSaved, int64_t(context().size()) - count);
      last = card.all.share();
      ofFour += count == 4 ? last / names.size() : 0;
    }
    EXPECT_GT(last, 0.3) << name.str();
  }
  EXPECT_GT(ofFour, 0.8);
}

/// The answer is the same, bit by bit, with any number of threads.
TEST(Entries, DoNotDependOnThreads) {
  Adapter one = fitted(*modelOf("gemma3", 1), 4), three = fitted(*modelOf("gemma3", 3), 4);
  ASSERT_EQ(one.entries.attentions.size(), three.entries.attentions.size());
  for (auto [a, b] : llvm::zip(one.entries.attentions, three.entries.attentions)) {
    EXPECT_EQ(a.keys, b.keys);
    EXPECT_EQ(a.values, b.values);
  }
}

/// Their number is the least that recovers nearly as much as the best of those that are tried, on
/// texts that are left out.
TEST(Entries, AreAsManyAsNeeded) {
  auto model = modelOf("llama");
  DistilRequest request;
  request.front = front;
  request.context = front;
  llvm::append_range(request.context, someTokens(19, 1));
  for (int64_t i = 0; i < 10; ++i)
    request.texts.push_back({someTokens(8, 20 + i), 2});
  ChosenEntries chosen = llvm::cantFail(model->chooseEntries(request));
  ASSERT_EQ(chosen.tried.size(), 3u);
  EXPECT_EQ(chosen.tried[0].count, 8);
  EXPECT_EQ(chosen.tried[1].count, 16);
  EXPECT_EQ(chosen.tried[2].count, 20);
  EXPECT_NEAR(chosen.tried[2].share, 1, 1e-6); // the context itself
  for (const EntriesTried &tried : llvm::ArrayRef(chosen.tried).drop_back())
    EXPECT_EQ(tried.share >= 0.95 && tried.count <= chosen.made.adapter.entries.count(),
              tried.count == chosen.made.adapter.entries.count());
}

/// A prompt that is behind the entries is answered, and an empty one has no answer.
TEST(Entries, AreSeenByAnswers) {
  auto model = modelOf("llama");
  Adapter all = fitted(*model, 100);
  EvaluateRequest request = heldOut();
  request.texts.push_back({someTokens(8, 50), 0});
  auto found = llvm::cantFail(model->examples(all, request, 5, 4, {}));
  ASSERT_EQ(found.size(), 5u);
  for (const Example &example : found) {
    EXPECT_EQ(example.adapted.empty(), example.prompt.empty());
    if (!example.prompt.empty()) {
      EXPECT_EQ(example.adapted, example.full);
    }
  }
}

TEST(Entries, RefuseBadInput) {
  auto model = modelOf("llama");
  DistilRequest request;
  request.fit.entries = 4;
  auto message = [&] { return messageOf(model->distil(request).takeError()); };
  EXPECT_EQ(message(), "the context is empty");
  request.context = context();
  EXPECT_EQ(message(), "there is no text to fit");
  request.texts.push_back({someTokens(8, 20), 2});
  request.fit.otherRank = 2;
  EXPECT_EQ(message(), "virtual entries change no matrix; expected no rank of other matrices");
  request.fit.otherRank = 0;
  request.others.emplace_back();
  EXPECT_EQ(message(), "found several contexts, expected one: virtual entries stand for one");
  request.others.clear();
  request.seen = {1};
  EXPECT_EQ(message(), "virtual entries stand for the whole context; expected no tokens that are "
                       "kept beside them");
  Adapter adapter = fitted(*model, 4);
  adapter.entries.attentions.pop_back();
  std::string found = messageOf(model->evaluate(adapter, heldOut()).takeError());
  EXPECT_TRUE(llvm::StringRef(found).contains("is given no entries, expected")) << found;
}
