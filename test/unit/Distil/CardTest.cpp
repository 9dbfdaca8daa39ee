// Cards that do not lie.
#include "Models.h"
#include "ctxc/Report/CardVerdict.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::test;

/// An adapter that changes nothing recovers nothing, and one that puts the whole context in front
/// recovers everything.
TEST(Cards, TellNothingFromEverything) {
  auto model = modelOf("gemma3");
  Adapter nothing, everything;
  nothing.prefix = front;
  everything.prefix = context();
  Card none = llvm::cantFail(model->evaluate(nothing, heldOut()));
  EXPECT_EQ(none.all.share(), 0);
  EXPECT_EQ(none.shareInterval.low, 0);
  EXPECT_EQ(none.shareInterval.high, 0);
  EXPECT_EQ(none.drift, 0);
  EXPECT_GT(none.driftOfContext, 0);
  EXPECT_EQ(none.perplexityAdapted, none.perplexityPlain);
  EXPECT_EQ(none.rightAdapted, none.rightPlain);
  EXPECT_EQ(none.agreedAdapted, none.agreedPlain);
  EXPECT_EQ(none.tokensSaved, 11);
  EXPECT_EQ(none.all.tokens, 4 * 6);

  Card all = llvm::cantFail(model->evaluate(everything, heldOut()));
  EXPECT_EQ(all.all.share(), 1);
  EXPECT_EQ(all.shareInterval.low, 1);
  EXPECT_EQ(all.all.agreementAdapted, 1);
  EXPECT_EQ(all.perplexityAdapted, all.perplexityFull);
  EXPECT_EQ(all.rightAdapted, all.rightFull);
  EXPECT_EQ(all.drift, all.driftOfContext);
  EXPECT_EQ(all.agreedAdapted, 6);
  EXPECT_EQ(all.tokensSaved, 0);
}

/// What does nothing, or harm, is better not used; what is the context itself is good; and between
/// them is what recovers less than the tokens alone that are kept.
TEST(Cards, SayWhatIsBetterNotUsed) {
  auto model = modelOf("gemma3");
  Adapter nothing, teacher;
  nothing.prefix = front;
  teacher.prefix = context();
  Adapter harmful = llvm::cantFail(model->distil(training(2))).adapter;
  scale(harmful, 10);
  auto kindOf = [&](const Adapter &adapter, std::optional<double> keptShare) {
    CardSettings settings;
    settings.keptShare = keptShare;
    return verdictOn(llvm::cantFail(model->evaluate(adapter, heldOut())), settings).kind;
  };
  using Kind = CardVerdict::Kind;
  EXPECT_EQ(kindOf(nothing, std::nullopt), Kind::Harmful);
  EXPECT_EQ(kindOf(harmful, std::nullopt), Kind::Harmful);
  EXPECT_EQ(kindOf(teacher, std::nullopt), Kind::Good);
  EXPECT_EQ(kindOf(teacher, 0.9), Kind::Good);
  EXPECT_EQ(kindOf(teacher, 1.1), Kind::Harmful);
  Card card;
  card.all.klPlain = 1;
  card.all.klAdapted = 0.7;
  card.shareInterval = {0.2, 0.4};
  EXPECT_EQ(verdictOn(card, {}).kind, Kind::Low);
  card.all.klAdapted = 0.2;
  card.shareInterval = {-0.1, 1};
  EXPECT_EQ(verdictOn(card, {}).kind, Kind::Low);
  card.shareInterval = {0.6, 0.9};
  EXPECT_EQ(verdictOn(card, {}).kind, Kind::Good);
  EXPECT_EQ(verdictOn(card, {}).found, "");
}

/// The answers of a conversation's turns have rows of their own, which together are all.
TEST(Cards, TellTurnsApart) {
  auto model = modelOf("gemma3");
  Adapter adapter = llvm::cantFail(model->distil(training(2))).adapter;
  EvaluateRequest request = heldOut();
  EXPECT_TRUE(llvm::cantFail(model->evaluate(adapter, request)).turns.empty());
  request.texts[1].turn = request.texts[3].turn = 3;
  Card card = llvm::cantFail(model->evaluate(adapter, request));
  ASSERT_EQ(card.turns.size(), 2u);
  for (auto [number, turn] : card.turns) {
    EvaluateRequest own = request;
    llvm::erase_if(own.texts,
                   [turn = number](const TextSequence &text) { return text.turn != turn; });
    EXPECT_NEAR(turn.klAdapted, llvm::cantFail(model->evaluate(adapter, own)).all.klAdapted, 1e-9);
  }
}

/// A judge of several adapters says of each what it says of that one alone.
TEST(Cards, AreTheSameFromOneJudge) {
  auto model = modelOf("gemma3");
  Adapter nothing, everything, half = llvm::cantFail(model->distil(training(2))).adapter;
  nothing.prefix = front;
  everything.prefix = context();
  Judge judge(heldOut());
  for (const Adapter *adapter : {&nothing, &half, &everything, &half, &nothing}) {
    Card alone = llvm::cantFail(model->evaluate(*adapter, heldOut()));
    Card card = llvm::cantFail(model->evaluate(*adapter, judge));
    EXPECT_EQ(card.all.klAdapted, alone.all.klAdapted);
    EXPECT_EQ(card.all.klPlain, alone.all.klPlain);
    EXPECT_EQ(card.all.agreementAdapted, alone.all.agreementAdapted);
    EXPECT_EQ(card.shareInterval.low, alone.shareInterval.low);
    EXPECT_EQ(card.perplexityAdapted, alone.perplexityAdapted);
    EXPECT_EQ(card.agreedAdapted, alone.agreedAdapted);
    EXPECT_EQ(card.drift, alone.drift);
    EXPECT_EQ(card.driftOfContext, alone.driftOfContext);
    EXPECT_EQ(card.failures.size(), alone.failures.size());
  }
}

/// What the split model computes for many sequences at once is what the executor computes for each.
TEST(Cards, RestOnTheExecutorsLogits) {
  for (llvm::StringRef name : {"gemma3", "gpt2", "falcon", "mixtral", "llama"}) {
    auto model = modelOf(name);
    EvaluateRequest request = heldOut();
    Executor &executor = llvm::cantFail(model->executor());
    double loss = 0;
    int64_t count = 0, right = 0;
    for (const TextSequence &text : request.texts) {
      std::vector<int64_t> tokens = request.context, positions;
      llvm::append_range(tokens, text.tokens);
      llvm::append_range(positions, llvm::seq<int64_t>(0, tokens.size()));
      auto run = executor.start(tokens.size());
      ForwardOptions options;
      options.allLogits = true;
      std::vector<double> logits =
          llvm::cantFail(executor.forward(*run, tokens, positions, options));
      const int64_t width = executor.vocabulary();
      for (size_t at = request.context.size() + text.prompt; at < tokens.size(); ++at) {
        llvm::ArrayRef<double> row = llvm::ArrayRef(logits).slice((at - 1) * width, width);
        double sum = 0;
        for (double x : row)
          sum += std::exp(x);
        loss -= row[tokens[at]] - std::log(sum);
        right += std::max_element(row.begin(), row.end()) - row.begin() == tokens[at];
        ++count;
      }
    }
    Adapter nothing;
    nothing.prefix = front;
    Card card = llvm::cantFail(model->evaluate(nothing, request));
    EXPECT_NEAR(card.perplexityFull, std::exp(loss / count), 1e-6 * card.perplexityFull)
        << name.str();
    EXPECT_NEAR(card.rightFull, double(right) / count, 1e-12) << name.str();
  }
}

TEST(Cards, RefuseBadInput) {
  auto model = modelOf("llama");
  auto refusal = [&](const Adapter &adapter, const EvaluateRequest &request) {
    return messageOf(model->evaluate(adapter, request).takeError());
  };
  Adapter adapter;
  adapter.prefix = front;
  EvaluateRequest request = heldOut();
  request.context = front;
  EXPECT_NE(refusal(adapter, request).find("changes nothing"), std::string::npos);
  request = heldOut();
  request.texts = {{{5}, 0}};
  EXPECT_EQ(
      refusal(adapter, request),
      "text 1 of 1 has no token to predict: it has 1 token, and the first one has none before "
      "it; write a longer text, or a prompt and an answer");
  request.texts = {{{5, 6}, 0}, {{7, 8, 9}, 3}};
  EXPECT_EQ(refusal(adapter, request), "text 2 of 2 has no token to predict: it is a prompt of 3 "
                                       "tokens without an answer; write the answer behind it");
  adapter.vectors.push_back({"model.layers.0.input_layernorm.weight", {1, 2}});
  EXPECT_NE(refusal(adapter, heldOut()).find("of 2 numbers"), std::string::npos);
  adapter.vectors.back().delta[0] = NAN;
  EXPECT_NE(refusal(adapter, heldOut()).find("not finite"), std::string::npos);
}

/// The tokens that answers take from the context, and the others, are all; both counted by the
/// executor's logits.
TEST(Cards, TellTakenTokensFromOthers) {
  auto model = modelOf("llama");
  EvaluateRequest request = heldOut();
  request.texts[1].tokens = {4, 9, request.context[3], request.context[7], 9, request.context[5]};
  Executor &executor = llvm::cantFail(model->executor());
  auto logarithms = [&](std::vector<int64_t> tokens, const TextSequence &text) {
    const size_t before = tokens.size();
    llvm::append_range(tokens, text.tokens);
    std::vector<double> all = logarithmsOf(executor, tokens);
    return std::vector<double>(all.begin() + before + text.prompt, all.end());
  };
  int64_t taken = 0, all = 0;
  for (const TextSequence &text : request.texts) {
    auto full = logarithms(request.context, text), plain = logarithms(front, text);
    for (auto [i, with, without] : llvm::enumerate(full, plain)) {
      ++all;
      taken += with - without > std::log(2) &&
               llvm::is_contained(llvm::ArrayRef(request.context).drop_front(front.size()),
                                  text.tokens[text.prompt + i]);
    }
  }
  Adapter nothing;
  nothing.prefix = front;
  Card card = llvm::cantFail(model->evaluate(nothing, request));
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, all);
  EXPECT_EQ(card.taken.tokens, taken);
  EXPECT_EQ(card.others.tokens, all - taken);
  EXPECT_NEAR(card.taken.klPlain * taken + card.others.klPlain * (all - taken),
              card.all.klPlain * all, 1e-9 * all);
}

/// The tokens at which an adapter fails are those that the full model predicts otherwise; one that
/// is the context fails nowhere, and one that is fitted to some texts fails on the others.
TEST(Cards, SayWhereTheyFail) {
  auto model = modelOf("gemma3");
  Adapter nothing, everything;
  nothing.prefix = front;
  everything.prefix = context();
  EXPECT_TRUE(llvm::cantFail(model->evaluate(everything, heldOut())).failures.empty());
  Card card = llvm::cantFail(model->evaluate(nothing, heldOut()));
  ASSERT_EQ(card.failures.size(), 3u);
  double last = HUGE_VAL;
  for (const Failure &failure : card.failures) {
    EXPECT_NE(failure.full, failure.adapted);
    EXPECT_GE(failure.at, heldOut().texts[failure.text].prompt);
    EXPECT_LT(failure.at, 8);
    EXPECT_LE(failure.kl, last);
    EXPECT_GT(failure.kl, card.all.klPlain);
    last = failure.kl;
  }
  ASSERT_TRUE(card.worst);
  EXPECT_EQ(card.worst->share, 0);

  DistilRequest request = training(0);
  EvaluateRequest about = heldOut();
  request.texts = {about.texts[0], about.texts[1], about.texts[3]}; // all but the third
  request.fit.lambda = 1e-4;
  Distilled made = llvm::cantFail(model->distil(request));
  Card other = llvm::cantFail(model->evaluate(made.adapter, about));
  ASSERT_TRUE(other.worst);
  EXPECT_EQ(other.worst->text, 2u);
  EXPECT_LT(other.worst->share, other.all.share());
}

/// Reading the context takes time, of which an adapter saves all and the context in front nothing.
TEST(Cards, MeasureWhatIsSaved) {
  auto model = modelOf("gemma3");
  Adapter nothing, everything;
  nothing.prefix = front;
  everything.prefix = context();
  EXPECT_GT(llvm::cantFail(model->evaluate(nothing, heldOut())).secondsOfContext, 0);
  Card all = llvm::cantFail(model->evaluate(everything, heldOut()));
  EXPECT_EQ(all.secondsSaved(), 0);
}
