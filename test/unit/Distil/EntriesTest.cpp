// Virtual entries in the place of a context.
#include "Models.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

Adapter fitted(Model &model, int64_t count, int64_t texts = 6) {
  EntriesRequest request;
  request.context = context();
  request.count = count;
  for (int64_t i = 0; i < texts; ++i)
    request.texts.push_back({someTokens(8, 20 + i), 2});
  Adapter adapter;
  adapter.entries = llvm::cantFail(model.fitEntries(request));
  return adapter;
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
/// more there are.
TEST(Entries, FewerRecoverMost) {
  for (llvm::StringRef name : {"gemma3", "gemma2", "llama", "gpt2", "falcon-alibi", "mixtral",
                               "mistral", "gpt-oss", "deepseek-v3"}) {
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
    }
    EXPECT_GT(last, 0.3) << name.str();
  }
}
