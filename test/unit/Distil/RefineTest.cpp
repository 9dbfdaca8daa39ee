// The passes of gradient descent behind the closed form.
#include "Models.h"

using namespace ctxc;
using namespace ctxc::test;

/// What is recovered of the fitted texts, by the card's divergence over the whole vocabulary: by
/// the closed form, and behind twelve passes.
static std::array<double, 2> sharesOf(llvm::StringRef name, int64_t entries) {
  auto model = modelOf(name);
  EvaluateRequest seen = heldOut();
  seen.texts = training(0).texts;
  std::array<double, 2> share;
  for (int i : {0, 1}) {
    DistilRequest request = training(3);
    request.fit.entries = entries;
    request.fit.passes = i * 12;
    Distilled made = llvm::cantFail(model->distil(request));
    EXPECT_EQ(made.divergenceAfter < made.divergenceBefore, i == 1) << name.str();
    share[i] = llvm::cantFail(model->evaluate(made.adapter, seen)).all.share();
  }
  return share;
}

/// Steps of gradient bring the model nearer to the full run on the text that they are taken on:
/// matrices stored the other way round, blocks in parallel, norms behind matrices.
TEST(Refining, ComesNearer) {
  for (llvm::StringRef name : {"gemma3", "llama", "gpt2", "falcon", "bloom", "gptj"}) {
    auto [before, after] = sharesOf(name, 0);
    EXPECT_GT(after, before + 0.02) << name.str();
  }
}

/// The texts that choose decide: what the gradient made worse there, is not taken.
TEST(Refining, KeepsTheBest) {
  auto model = modelOf("gemma3");
  DistilRequest request = training(3);
  request.choosing = request.texts; // of a random model nothing holds for other texts
  DistilRequest whole = request;
  llvm::append_range(whole.texts, request.choosing);
  Distilled closed = llvm::cantFail(model->distil(whole));
  request.fit.passes = 4;
  Distilled refined = llvm::cantFail(model->distil(request));
  EXPECT_GT(refined.passes, 0);
  EXPECT_LT(refined.divergenceAfter, refined.divergenceBefore);
  EvaluateRequest chosen = heldOut();
  chosen.texts = request.choosing;
  EXPECT_GT(llvm::cantFail(model->evaluate(refined.adapter, chosen)).all.share(),
            llvm::cantFail(model->evaluate(closed.adapter, chosen)).all.share());

  request.fit.rate = 30; // away from anything good
  Distilled spoilt = llvm::cantFail(model->distil(request));
  EXPECT_EQ(spoilt.passes, 0);
  EXPECT_EQ(spoilt.divergenceAfter, spoilt.divergenceBefore);
  ASSERT_EQ(spoilt.adapter.matrices.size(), closed.adapter.matrices.size());
  for (auto [x, y] : llvm::zip(spoilt.adapter.matrices, closed.adapter.matrices)) {
    EXPECT_EQ(x.left, y.left) << x.parameter;
    EXPECT_EQ(x.right, y.right) << x.parameter;
  }
}

/// Passes that make it worse end the refinement only where texts were left out to choose by: on the
/// fitted ones, shorter steps may make up for the first.
TEST(Refining, MakesAllPassesWhereNothingChooses) {
  auto model = modelOf("gemma3");
  auto stepsOf = [&](bool chooses) {
    DistilRequest request = training(3);
    request.fit.passes = 8;
    request.fit.rate = 30;
    if (chooses)
      request.choosing = request.texts;
    std::vector<int64_t> done;
    int64_t all = 0;
    request.stepped = [&](int64_t step, int64_t steps) {
      done.push_back(step);
      all = steps;
    };
    EXPECT_EQ(llvm::cantFail(model->distil(request)).passes, 0);
    return std::pair(int64_t(done.size()), all);
  };
  auto [made, all] = stepsOf(/*chooses=*/false);
  EXPECT_EQ(made, all + 2); // the start, each step, and the judging behind the last one
  EXPECT_LT(stepsOf(/*chooses=*/true).first, made);
}

/// Steps may change all other matrices behind the first site as well, in either orientation: they
/// fit the texts better then, and what reads the adapter reads all of them.
TEST(Refining, ChangesOtherMatrices) {
  for (auto [name, others] : {std::pair("llama", 5), std::pair("gpt2", 2)}) {
    auto model = modelOf(name);
    EvaluateRequest seen = heldOut();
    double share[2];
    size_t matrices[2];
    for (int i : {0, 1}) {
      DistilRequest request = training(1);
      request.fit.passes = 12;
      request.fit.otherRank = 2 * i;
      Distilled made = llvm::cantFail(model->distil(request));
      seen.texts = request.texts;
      share[i] = llvm::cantFail(model->evaluate(made.adapter, seen)).all.share();
      matrices[i] = made.adapter.matrices.size();
      for (const MatrixChange &change :
           llvm::ArrayRef(made.adapter.matrices).drop_front(matrices[0])) {
        EXPECT_EQ(change.rank, 2) << change.parameter;
        for (const std::vector<float> *factor : {&change.left, &change.right})
          EXPECT_TRUE(llvm::any_of(*factor, [](float x) { return x != 0; })) << change.parameter;
      }
    }
    EXPECT_GT(share[1], share[0] + 0.01) << name;
    // Of each layer, but for what is before the first site.
    EXPECT_GE(matrices[1], matrices[0] + others) << name;
  }
}

/// Virtual entries are refined as matrices are, whatever attention does with its scores.
TEST(Refining, BringsEntriesNearer) {
  for (llvm::StringRef name : {"gemma3", "gemma2", "llama", "gpt2", "falcon-alibi", "mistral"}) {
    auto [before, after] = sharesOf(name, 4);
    EXPECT_LT(1 - after, 0.9 * (1 - before)) << name.str();
  }
}

TEST(Refining, RefusesWhatHasNoGradient) {
  auto model = modelOf("mixtral");
  DistilRequest request = training(3);
  request.fit.passes = 1;
  EXPECT_EQ(messageOf(model->distil(request).takeError()),
            "'xf.top_k' has no gradient; this model cannot be refined");
}
