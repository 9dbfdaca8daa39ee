// Tokens whose keys and values stay, of a context that is dropped.
#include "Models.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

std::vector<int64_t> everyPlace() {
  auto places = llvm::seq<int64_t>(0, context().size());
  return {places.begin(), places.end()};
}

Adapter seeing(std::vector<int64_t> places) {
  Adapter adapter;
  adapter.prefix = context();
  adapter.seen = std::move(places);
  return adapter;
}

/// A fit beside the tokens that attention reads most.
DistilRequest pinning(Model &model, int64_t rank, int64_t count) {
  DistilRequest request = training(rank);
  request.prefix = request.context;
  request.seen = {0};
  llvm::append_range(request.seen,
                     llvm::cantFail(model.mostRead(request.context, 1, count, request.texts)));
  return request;
}

} // namespace

/// All tokens that stay are the context: in front of texts, in the place of which nothing is lost.
TEST(Pinned, AllAreTheContext) {
  for (llvm::StringRef name : {"gemma3", "llama", "gpt2", "falcon-alibi", "mixtral"}) {
    auto model = modelOf(name);
    Card card = llvm::cantFail(model->evaluate(seeing(everyPlace()), heldOut()));
    EXPECT_GT(card.all.klPlain, 1e-5) << name.str();
    EXPECT_LT(card.all.klAdapted, 1e-9) << name.str();
    EXPECT_EQ(card.tokensSaved, 0) << name.str();
    EXPECT_NEAR(card.drift, card.driftOfContext, 1e-9 + 1e-6 * card.driftOfContext) << name.str();
  }
}

/// What later tokens see is what the model kept of these tokens in the context, and not what it
/// makes of the same tokens alone.
TEST(Pinned, AreNotTheTokensThemselves) {
  auto model = modelOf("llama");
  Adapter pinned = seeing({0, 4, 7, 11}), text;
  for (int64_t place : pinned.seen)
    text.prefix.push_back(pinned.prefix[place]);
  Card kept = llvm::cantFail(model->evaluate(pinned, heldOut())),
       read = llvm::cantFail(model->evaluate(text, heldOut()));
  EXPECT_NE(kept.all.klAdapted, read.all.klAdapted);
  EXPECT_EQ(kept.tokensSaved, 8);
  EXPECT_EQ(read.tokensSaved, 8);
}

/// The fit recovers what the kept tokens leave.
TEST(Pinned, RecoverMoreWithAFit) {
  for (llvm::StringRef name : {"gemma3", "llama", "gpt2", "mixtral"}) {
    auto model = modelOf(name);
    DistilRequest request = pinning(*model, 4, 4);
    request.fit.lambda = 1e-3;
    Distilled made = llvm::cantFail(model->distil(request));
    EXPECT_EQ(made.adapter.seen, request.seen);
    EvaluateRequest seen = heldOut();
    seen.texts = request.texts;
    Card alone = llvm::cantFail(model->evaluate(seeing(request.seen), seen)),
         fitted = llvm::cantFail(model->evaluate(made.adapter, seen));
    EXPECT_GT(fitted.all.share(), alone.all.share() + 0.05) << name.str();
  }
}

/// Steps of gradient bring the model nearer to the full run, with what is kept as it is.
TEST(Pinned, AreRefined) {
  for (llvm::StringRef name : {"gemma3", "llama"}) {
    auto model = modelOf(name);
    EvaluateRequest seen = heldOut();
    double share[2];
    for (int passes : {0, 12}) {
      DistilRequest request = pinning(*model, 1, 2);
      request.fit.scales = false;
      request.fit.passes = passes;
      Distilled made = llvm::cantFail(model->distil(request));
      EXPECT_EQ(made.divergenceAfter < made.divergenceBefore, passes > 0) << name.str();
      seen.texts = request.texts;
      share[passes > 0] = llvm::cantFail(model->evaluate(made.adapter, seen)).all.share();
    }
    EXPECT_GT(share[1], share[0] + 0.02) << name.str();
    DistilRequest guarded = pinning(*model, 3, 4); // with unrelated text after what is kept
    guarded.unrelated = heldOut().unrelated;
    guarded.fit.passes = 1;
    EXPECT_EQ(llvm::cantFail(model->distil(guarded)).protectedTokens, 9) << name.str();
  }
}

/// With tokens in front of unrelated text, in the cache or as text, what is protected is the model
/// without any of them: the fit brings the text nearer to that model than the tokens alone leave
/// it, and, also after some steps of gradient, than one that protects the model with the tokens in
/// front.
TEST(Pinned, AreNoPartOfWhatIsProtected) {
  auto model = modelOf("gemma3");
  EvaluateRequest about = heldOut();
  for (bool isText : {false, true}) {
    DistilRequest request = pinning(*model, 16, 5);
    if (isText) {
      request.seen.clear();
      request.prefix.resize(6);
    }
    request.unrelated = about.unrelated;
    request.protection = 10;
    auto driftOf = [&](const Adapter &adapter) {
      return llvm::cantFail(model->evaluate(adapter, about)).drift;
    };
    Adapter alone;
    alone.prefix = request.prefix;
    alone.seen = request.seen;
    for (int passes : {0, 2}) {
      request.fit.passes = passes;
      request.front.reset();
      const double held = driftOf(llvm::cantFail(model->distil(request)).adapter);
      request.front = front;
      const double plain = driftOf(llvm::cantFail(model->distil(request)).adapter);
      EXPECT_LT(plain, 0.8 * held) << isText << passes;
      if (passes == 0)
        EXPECT_LT(plain, 0.8 * driftOf(alone)) << isText;
    }
  }
}

/// The likeliest answers of a model that sees all of the context are those of the full model.
TEST(Pinned, AreSeenByAnswers) {
  auto model = modelOf("gemma3");
  auto answers =
      llvm::cantFail(model->examples(seeing(everyPlace()), heldOut(), 3, 5, /*stops=*/{}));
  ASSERT_FALSE(answers.empty());
  bool differs = false;
  for (const Example &example : answers) {
    EXPECT_EQ(example.adapted, example.full);
    differs |= example.plain != example.full;
  }
  EXPECT_TRUE(differs);
}

/// The last token of the context, and as many others as asked for; other texts read others.
TEST(Pinned, AreTheMostRead) {
  auto model = modelOf("llama");
  std::vector<TextSequence> texts = training(1).texts;
  std::vector<int64_t> last;
  for (int64_t count : {1, 2, 5, 11}) {
    auto places = llvm::cantFail(model->mostRead(context(), 1, count, texts));
    ASSERT_EQ(int64_t(places.size()), count);
    EXPECT_TRUE(llvm::is_sorted(places));
    EXPECT_GE(places.front(), 1);
    EXPECT_EQ(places.back(), 11);
    for (int64_t place : last)
      EXPECT_TRUE(llvm::is_contained(places, place)) << place;
    last = places;
  }
  EXPECT_EQ(llvm::cantFail(model->mostRead(context(), 0, 2, texts)), (std::vector<int64_t>{0, 11}));
}

TEST(Pinned, NeedTokensThatLeaveSomethingEach) {
  for (llvm::StringRef name : {"mamba", "jamba"}) {
    auto model = modelOf(name);
    DistilRequest request = training(2);
    request.prefix = request.context;
    request.seen = {0, 11};
    std::string message = messageOf(model->distil(request).takeError());
    EXPECT_NE(message.find("does not keep tokens one by one"), std::string::npos) << message;
  }
}

/// With other keys, what is kept would not be what the model has for these tokens.
TEST(Pinned, KeepTheMatricesThatMakeThem) {
  auto model = modelOf("llama");
  DistilRequest request = pinning(*model, 2, 2);
  request.fit.passes = 1;
  request.fit.otherRank = 1;
  std::string message = messageOf(model->distil(request).takeError());
  EXPECT_NE(message.find("the matrices that make keys and values cannot change"), std::string::npos)
      << message;
}
