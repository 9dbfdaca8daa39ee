// Distilled contexts.
#include "Models.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::test;

/// The exact end: fitted to one token alone, without a ridge, the adapter gives the full run's
/// logits for it. Before, between and behind norms, beside attention, with biases, with matrices
/// stored the other way round, and of experts, with shared ones too.
TEST(Distilling, OneTokenIsExact) {
  for (llvm::StringRef name : {"llama", "gpt2", "falcon", "gptj", "phi", "opt", "qwen2", "bloom",
                               "mixtral", "mixtral-fused", "gpt-oss", "qwen2-moe", "deepseek-v3"}) {
    auto model = modelOf(name);
    DistilRequest request;
    request.context = context();
    request.texts = {{{17}, 0}};
    request.protection = request.prefixWeight = 0;
    request.fit.lambda = 0;
    request.fit.rank = 1;
    Distilled made = llvm::cantFail(model->distil(request));
    EXPECT_EQ(made.tokens, 1);
    EvaluateRequest about;
    about.context = request.context;
    about.texts = {{{17, 3}, 0}};
    Card card = llvm::cantFail(model->evaluate(made.adapter, about));
    EXPECT_GT(card.all.klPlain, 1e-3) << name.str();
    EXPECT_LT(card.all.klAdapted, 1e-6) << name.str();
  }
}

/// The text that was fitted is reproduced in good part, in every family and with any rank; and more
/// of it where the rank is larger.
TEST(Distilling, RecoversTheContext) {
  for (llvm::StringRef name : {"gemma3", "llama", "gpt2", "falcon", "olmo2", "mixtral"}) {
    auto model = modelOf(name);
    EvaluateRequest seen = heldOut();
    seen.texts = training(0).texts;
    double last = 0;
    for (int64_t rank : {1, 4, 0}) {
      DistilRequest request = training(rank);
      request.fit.lambda = 1e-4;
      Distilled made = llvm::cantFail(model->distil(request));
      Card card = llvm::cantFail(model->evaluate(made.adapter, seen));
      EXPECT_GT(card.all.share(), last) << name.str() << ", rank " << rank;
      last = card.all.share();
    }
    EXPECT_GT(last, 0.5) << name.str();
  }
}

/// To the last bit, also with other threads.
TEST(Distilling, IsDeterministic) {
  auto one = modelOf("gemma3", 1), two = modelOf("gemma3", 2);
  DistilRequest request = training(3);
  request.fit.passes = 3;
  Adapter a = llvm::cantFail(one->distil(request)).adapter;
  for (Model *model : {one.get(), two.get()}) {
    Adapter b = llvm::cantFail(model->distil(request)).adapter;
    ASSERT_EQ(a.matrices.size(), b.matrices.size());
    for (auto [x, y] : llvm::zip(a.matrices, b.matrices)) {
      EXPECT_EQ(x.left, y.left) << x.parameter;
      EXPECT_EQ(x.right, y.right) << x.parameter;
    }
    for (auto [x, y] : llvm::zip(a.vectors, b.vectors))
      EXPECT_EQ(x.delta, y.delta) << x.parameter;
  }
}

/// Two halves of the texts, each after the same context, are the whole.
TEST(SeveralContexts, OfOneAreThatOne) {
  auto model = modelOf("gemma3");
  DistilRequest whole = training(3), halves = training(3);
  whole.unrelated = halves.unrelated = heldOut().unrelated;
  halves.others = {{halves.context, {halves.texts.begin() + 2, halves.texts.end()}, {}}};
  halves.texts.resize(2);
  Distilled a = llvm::cantFail(model->distil(whole)), b = llvm::cantFail(model->distil(halves));
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.protectedTokens, b.protectedTokens);
  for (auto [x, y] : llvm::zip_equal(a.adapter.matrices, b.adapter.matrices)) {
    EXPECT_EQ(x.left, y.left) << x.parameter;
    EXPECT_EQ(x.right, y.right) << x.parameter;
  }
  for (auto [x, y] : llvm::zip_equal(a.adapter.vectors, b.adapter.vectors))
    EXPECT_EQ(x.delta, y.delta) << x.parameter;
}

/// One adapter recovers more of each of two contexts than the other one's own adapter does, before
/// and after a refinement, which improves both together.
TEST(SeveralContexts, AreServedByOneAdapter) {
  auto model = modelOf("llama");
  DistilRequest first = training(0), second = training(0);
  second.context = front;
  llvm::append_range(second.context, someTokens(13, 5));
  second.texts.clear();
  for (int64_t i = 0; i < 6; ++i)
    second.texts.push_back({someTokens(8, 60 + i), 2});
  auto shareOf = [&](const Adapter &adapter, const DistilRequest &of) {
    EvaluateRequest seen = heldOut();
    seen.context = of.context;
    seen.texts = of.texts;
    return llvm::cantFail(model->evaluate(adapter, seen)).all.share();
  };
  Adapter ofFirst = llvm::cantFail(model->distil(first)).adapter;
  Adapter ofSecond = llvm::cantFail(model->distil(second)).adapter;
  DistilRequest both = first;
  both.others = {{second.context, second.texts, {}}};
  Distilled closed = llvm::cantFail(model->distil(both));
  EXPECT_GT(shareOf(closed.adapter, first), shareOf(ofSecond, first) + 0.1);
  EXPECT_GT(shareOf(closed.adapter, second), shareOf(ofFirst, second) + 0.1);
  both.fit.rank = 3; // without a limit the closed form is hardly improved on
  both.fit.passes = 4;
  both.choosing = {first.texts[0]};
  both.others[0].choosing = {second.texts[0]};
  Distilled refined = llvm::cantFail(model->distil(both));
  EXPECT_EQ(refined.tokens, closed.tokens + 16);
  EXPECT_GT(refined.passes, 0);
  EXPECT_LT(refined.divergenceAfter, refined.divergenceBefore);
}

TEST(SeveralContexts, NeedTextsEach) {
  auto model = modelOf("llama");
  DistilRequest request = training(2);
  request.others = {{request.context, {}, {}}};
  EXPECT_EQ(messageOf(model->distil(request).takeError()),
            "a context that is fitted with another one is empty, or has no text");
}

/// By the executor's logits: how much a token surprises, and how much more likely the context makes
/// it in the texts' answers; no token that is left out has more of it than one that is kept.
TEST(Kept, AreTheMostTelling) {
  auto model = modelOf("llama");
  Executor &executor = llvm::cantFail(model->executor());
  auto logarithms = [&](llvm::ArrayRef<int64_t> tokens) { return logarithmsOf(executor, tokens); };
  auto expected = [&](llvm::ArrayRef<int64_t> tokens, llvm::ArrayRef<TextSequence> texts,
                      int64_t count) {
    std::vector<double> surprise = logarithms(tokens), copied(tokens.size());
    for (double &x : surprise)
      x = -x;
    for (const TextSequence &text : texts) {
      std::vector<int64_t> full = tokens.vec(), plain = front;
      llvm::append_range(full, text.tokens);
      llvm::append_range(plain, text.tokens);
      auto with = logarithms(full), without = logarithms(plain);
      for (size_t i = text.prompt; i < text.tokens.size(); ++i)
        for (size_t at = 1; at < tokens.size(); ++at)
          if (tokens[at] == text.tokens[i])
            copied[at] += std::max(with[tokens.size() + i] - without[front.size() + i], 0.0) /
                          llvm::count(tokens.drop_front(), tokens[at]);
    }
    double sums[2] = {};
    for (size_t at = 1; at < tokens.size(); ++at) {
      sums[0] += surprise[at];
      sums[1] += copied[at];
    }
    std::vector<std::pair<double, int64_t>> order;
    for (size_t at = 1; at < tokens.size(); ++at)
      order.push_back(
          {-surprise[at] / sums[0] - (sums[1] > 0 ? copied[at] / sums[1] : 0), int64_t(at)});
    llvm::sort(order);
    std::vector<int64_t> places;
    for (int64_t i = 0; i < count; ++i)
      places.push_back(order[i].second);
    llvm::sort(places);
    return places;
  };
  std::vector<int64_t> tokens = context();
  std::vector<TextSequence> texts = training(1).texts;
  texts[0].tokens = {4, 9, tokens[3], tokens[7], tokens[3], tokens[5]};
  bool differs = false;
  for (int64_t count : {0, 1, 4, 11}) {
    auto bySurprise = expected(tokens, {}, count), byBoth = expected(tokens, texts, count);
    EXPECT_EQ(llvm::cantFail(model->mostTelling(tokens, 1, count)), bySurprise);
    EXPECT_EQ(llvm::cantFail(model->mostTelling(tokens, 1, count, texts)), byBoth);
    differs |= bySurprise != byBoth;
  }
  EXPECT_TRUE(differs);
  EXPECT_EQ(llvm::cantFail(model->mostTelling(tokens, 0, 1)).front(), 0);
}

/// Whole units, by the means of their scores, as far as there is room for them.
TEST(Distilling, KeepsUnits) {
  const double scores[] = {9, 1, 5, 2, 2, 2, 7, 0};
  const int64_t starts[] = {1, 3, 6}; // means 3, 2, 3.5
  using Places = std::vector<int64_t>;
  EXPECT_EQ(mostTelling(scores, 1, 2, starts), (Places{6, 7}));
  EXPECT_EQ(mostTelling(scores, 1, 4, starts), (Places{1, 2, 6, 7}));
  EXPECT_EQ(mostTelling(scores, 1, 3, starts), (Places{6, 7})); // no room for a second one
  EXPECT_EQ(mostTelling(scores, 1, 1, starts), Places());
  EXPECT_EQ(mostTelling(scores, 1, 3), (Places{2, 3, 6}));
}

/// A token of which one alone stands in front of a text that begins with it, however often.
TEST(Distilling, FindsEqualTokensInFront) {
  std::vector<TextSequence> texts = {{{4, 5}, 0}, {{7, 5}, 0}};
  EXPECT_EQ(tokenBeforeItself({7}, texts), 7);
  EXPECT_EQ(tokenBeforeItself({7, 7}, texts), 7);
  EXPECT_EQ(tokenBeforeItself({7, 4}, texts), std::nullopt);
  EXPECT_EQ(tokenBeforeItself({5}, texts), std::nullopt);
  EXPECT_EQ(tokenBeforeItself({}, texts), std::nullopt);
}

/// What should not change changes less where it is protected.
TEST(Distilling, Protects) {
  auto model = modelOf("llama");
  double drift[2];
  for (int i : {0, 1}) {
    DistilRequest request = training(4);
    request.unrelated = heldOut().unrelated;
    request.protection = i * 3.0;
    Distilled made = llvm::cantFail(model->distil(request));
    EXPECT_EQ(made.protectedTokens, i * 9);
    drift[i] = llvm::cantFail(model->evaluate(made.adapter, heldOut())).drift;
  }
  EXPECT_LT(drift[1], 0.5 * drift[0]);
}

/// Which matrices are fitted follows from the ops alone.
TEST(Sites, LeadToWhatTheContextPasses) {
  auto sitesOf = [&](llvm::StringRef name) {
    auto model = modelOf(name);
    std::string text;
    for (const MatrixChange &change : llvm::cantFail(model->distil(training(1))).adapter.matrices)
      if (auto [before, name] = llvm::StringRef(change.parameter).split(".0.");
          !name.empty() && !before.contains("experts"))
        text += (name + " ").str();
    return text;
  };
  EXPECT_EQ(sitesOf("llama"), "self_attn.o_proj.weight mlp.down_proj.weight ");
  EXPECT_EQ(sitesOf("gemma3"), "self_attn.o_proj.weight mlp.down_proj.weight ");
  EXPECT_EQ(sitesOf("gpt2"), "attn.c_proj.weight mlp.c_proj.weight ");
  EXPECT_EQ(sitesOf("falcon"), "self_attention.dense.weight mlp.dense_4h_to_h.weight ");
  // With one expert chosen by no token, it would be missing.
  EXPECT_EQ(sitesOf("mixtral"), "self_attn.o_proj.weight block_sparse_moe.experts.0.w2.weight "
                                "block_sparse_moe.experts.1.w2.weight "
                                "block_sparse_moe.experts.2.w2.weight "
                                "block_sparse_moe.experts.3.w2.weight "
                                "block_sparse_moe.experts.4.w2.weight ");
  EXPECT_EQ(sitesOf("deepseek-v3"), "self_attn.o_proj.weight mlp.down_proj.weight ");
  llvm::StringRef experts = "mlp.experts.0.down_proj.weight mlp.experts.1.down_proj.weight "
                            "mlp.experts.2.down_proj.weight mlp.experts.3.down_proj.weight "
                            "mlp.experts.4.down_proj.weight mlp.experts.5.down_proj.weight "
                            "mlp.experts.6.down_proj.weight ";
  EXPECT_EQ(sitesOf("qwen2-moe"),
            ("self_attn.o_proj.weight " + experts + "mlp.shared_expert.down_proj.weight ").str());
}

/// A mixture's experts as well bring the model nearer to the full run than attention alone: fitted
/// to one token, attention's output and the experts are enough, and one of them is not.
TEST(Distilling, ExpertsAreFittedTogether) {
  auto model = modelOf("mixtral");
  DistilRequest request = training(0);
  request.fit.lambda = 1e-4;
  Distilled made = llvm::cantFail(model->distil(request));
  EvaluateRequest seen = heldOut();
  seen.texts = request.texts;
  double whole = llvm::cantFail(model->evaluate(made.adapter, seen)).all.share();
  for (llvm::StringRef part : {"experts", "o_proj"}) {
    Adapter without = made.adapter;
    llvm::erase_if(without.matrices, [&](const MatrixChange &change) {
      return llvm::StringRef(change.parameter).contains(part);
    });
    EXPECT_LT(without.matrices.size(), made.adapter.matrices.size());
    EXPECT_LT(llvm::cantFail(model->evaluate(without, seen)).all.share(), whole - 0.02)
        << part.str();
  }
}

TEST(Distilling, RefusesBadInput) {
  auto model = modelOf("llama");
  auto refusal = [&](Model &model, const DistilRequest &request) {
    return messageOf(model.distil(request).takeError());
  };
  DistilRequest request = training(16);
  request.texts.resize(1);
  EXPECT_EQ(refusal(*model, request), "the text has 8 tokens, fewer than the rank, 16; expected "
                                      "more text, or a smaller rank");
  request.texts.clear();
  EXPECT_EQ(refusal(*model, request), "there is no text to fit");
  request = training(2);
  request.texts[1].tokens[3] = 100000;
  EXPECT_NE(refusal(*model, request).find("100000"), std::string::npos);
  request = training(2);
  request.context.clear();
  EXPECT_EQ(refusal(*model, request), "the context is empty");

  auto learned = modelOf("gpt2"); // with a table of positions
  request = training(2);
  request.context = someTokens(5000, 3);
  EXPECT_NE(refusal(*learned, request).find("position"), std::string::npos);
  auto encoder = modelOf("bert");
  EXPECT_NE(refusal(*encoder, training(2)).find("those behind them"), std::string::npos);

  LoadOptions frozen;
  frozen.storage = DType::F32;
  frozen.planning.frozen = {"self_attn.o_proj.weight", "mlp.down_proj.weight"};
  auto fixed = opened(golden("llama"), frozen);
  EXPECT_EQ(
      refusal(*fixed, training(2)),
      "no matrix of this model can take a context: none is on the way of all that the context "
      "changes; ctxc check says more");

  LoadOptions narrow;
  narrow.storage = DType::BF16;
  auto half = opened(golden("llama"), narrow);
  EXPECT_NE(refusal(*half, training(2)).find("expected f32"), std::string::npos);
}

/// Nothing of an adapter is nothing; all of it is itself, and half of it lies between, also for
/// norms' scales. What stays in front does.
TEST(Adapters, HaveAStrength) {
  auto model = modelOf("gemma3");
  EvaluateRequest seen = heldOut();
  seen.texts = training(0).texts;
  DistilRequest request = training(4);
  Adapter whole = llvm::cantFail(model->distil(request)).adapter;
  double last = -1;
  for (double strength : {0.0, 0.5, 1.0}) {
    Adapter some = whole;
    scale(some, strength);
    EXPECT_EQ(some.prefix, whole.prefix);
    ASSERT_FALSE(some.vectors.empty());
    EXPECT_EQ(some.vectors[0].delta[0], float(strength) * whole.vectors[0].delta[0]);
    const double share = llvm::cantFail(model->evaluate(some, seen)).all.share();
    EXPECT_GT(share, last);
    if (strength == 0)
      EXPECT_EQ(share, 0);
    last = share;
  }
}

/// Everything that takes long says how far it is: each matrix, each step, each prediction, and the
/// tokens of answers, of which one may end early.
TEST(Distilling, TellsItsProgress) {
  auto model = modelOf("gemma3");
  Told fitted, stepped, compared, written;
  DistilRequest request = training(3);
  request.fitted = fitted.progress();
  request.stepped = stepped.progress();
  request.fit.passes = 2;
  Distilled made = llvm::cantFail(model->distil(request));
  EXPECT_TRUE(fitted.isWhole());
  EXPECT_EQ(fitted.all, int64_t(made.adapter.matrices.size()));
  EXPECT_EQ(fitted.calls.size(), made.adapter.matrices.size() + 1);
  EXPECT_TRUE(stepped.isWhole());

  EvaluateRequest about = heldOut();
  about.unrelated.clear();
  for (int i = 0; i < 5; ++i)
    llvm::append_range(about.texts, heldOut().texts); // more than are compared at once
  about.compared = compared.progress();
  Card card = llvm::cantFail(model->evaluate(made.adapter, about));
  EXPECT_TRUE(compared.isWhole());
  EXPECT_EQ(compared.all, card.all.tokens);

  SampleRequest sampled;
  sampled.context = context();
  sampled.prompts = {{}, {4}, {5, 6}};
  sampled.length = 5;
  sampled.written = written.progress();
  ASSERT_TRUE(bool(model->sample(sampled)));
  EXPECT_TRUE(written.isWhole());
  EXPECT_EQ(written.all, 3 * 5);
}
