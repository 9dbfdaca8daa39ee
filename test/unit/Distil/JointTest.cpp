// One patch that is exact for all tokens of a text.
#include "ctxc/Distil/Joint.h"
#include "Models.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

JointRequest about(int64_t tokens, int64_t texts = 1) {
  JointRequest request;
  request.context = context();
  request.prefix = front;
  for (int64_t i = 0; i < texts; ++i)
    request.texts.push_back({someTokens(tokens, 20 + i), 0});
  return request;
}

} // namespace

/// Pre-norms and post-norms, blocks in parallel, positions by rotations, tables and slopes, sinks,
/// latents, mixtures.
TEST(Joint, IsExactForAllTokensOfATextInEveryFamily) {
  for (llvm::StringRef name : {"gemma3", "gemma2", "llama", "gpt2", "falcon-alibi", "mixtral",
                               "mistral", "gpt-oss", "phi", "deepseek-v3", "opt", "bloom"}) {
    auto model = modelOf(name);
    JointRequest request = about(8);
    JointPatch patch = llvm::cantFail(model->patchJointly(request));
    JointCheck check = llvm::cantFail(model->checkJointly(patch.adapter, request));
    EXPECT_EQ(check.tokens, 8);
    EXPECT_LT(check.difference, 2e-5) << name.str();
    EXPECT_GT(check.control, 1) << name.str();
    EXPECT_EQ(check.agree, 8) << name.str();
  }
}

/// One more token adds one rank, and changes nothing of those before it: the first ranks are the
/// patch of the first tokens.
TEST(Joint, ItsFirstRanksAreThePatchOfTheFirstTokens) {
  auto model = modelOf("llama");
  JointRequest request = about(8);
  JointPatch whole = llvm::cantFail(model->patchJointly(request));
  for (int64_t count : {1, 3, 7}) {
    Adapter first = whole.adapter;
    for (MatrixChange &change : first.matrices) {
      ASSERT_EQ(change.rank, 8);
      std::vector<float> left;
      for (int64_t row = 0; row < change.rows; ++row)
        llvm::append_range(left, llvm::ArrayRef(change.left).slice(row * 8, count));
      change.left = std::move(left);
      change.right.resize(count * change.columns);
      change.rank = count;
    }
    JointRequest begun = request;
    begun.texts.front().tokens.resize(count);
    JointCheck check = llvm::cantFail(model->checkJointly(first, begun));
    EXPECT_LT(check.difference, 2e-5) << count;
    EXPECT_GT(llvm::cantFail(model->checkJointly(first, request)).difference, 1e-2) << count;
  }
}

/// Weights of another type stay as they are, with the factors beside them.
TEST(Joint, LeavesWeightsInTheirTypes) {
  for (DType storage : {DType::BF16, DType::F16}) {
    LoadOptions options;
    options.storage = storage;
    auto model = opened(golden("gemma3"), options);
    JointRequest request = about(12);
    JointPatch patch = llvm::cantFail(model->patchJointly(request));
    JointCheck check = llvm::cantFail(model->checkJointly(patch.adapter, request));
    EXPECT_TRUE(check.verified());
    EXPECT_LT(check.difference, 5e-5);
    EXPECT_GT(patch.sites.front().change, 0);
  }
}

/// Token by token, while the model generates: the same patch, to roundings, as that of the whole
/// text at once, and the full run's tokens; then the weights alone read all of it.
TEST(Joint, GrowsWhileTheModelGenerates) {
  for (llvm::StringRef name : {"gemma3", "llama", "gpt2", "mixtral", "mistral", "deepseek-v3"}) {
    auto model = modelOf(name);
    for (bool staysInPlace : {false, true}) {
      JointRequest request = about(2);
      if (staysInPlace)
        request.kept = std::vector<int64_t>{0};
      std::vector<int64_t> seen;
      JointVerification grown = llvm::cantFail(model->verifyJointly(
          request, 12, [&](const VerifyStep &step) { seen.push_back(step.next); }));
      ASSERT_EQ(grown.steps.size(), 12u);
      EXPECT_EQ(seen.size(), 12u);
      for (const VerifyStep &step : grown.steps) {
        EXPECT_TRUE(step.patched.match) << name.str();
        EXPECT_LT(step.patched.linf, 5e-5) << name.str();
      }
      EXPECT_EQ(grown.reread.tokens, 2 + 11);
      EXPECT_TRUE(grown.reread.verified()) << name.str();
      EXPECT_GT(grown.reread.control, 1) << name.str();
      EXPECT_LE(grown.patch.adapter.rank(), 13);

      seen.pop_back(); // the last one was never run
      llvm::append_range(request.texts.front().tokens, seen);
      JointPatch whole = llvm::cantFail(model->patchJointly(request));
      for (auto [a, b] : llvm::zip_equal(grown.patch.sites, whole.sites)) {
        if (a.matrix != b.matrix) // of a whole text, the one that replays best is changed
          continue;
        EXPECT_NEAR(a.change, b.change, 1e-3 * b.change) << name.str();
        EXPECT_EQ(a.spectrum.size(), b.spectrum.size()) << name.str();
      }
    }
  }
}

/// A text of few different tokens has few independent states in the first layer. Those that it
/// cannot serve are left to the next layer, which brings the full run's residual stream back.
TEST(Joint, LeavesATokenToTheNextLayer) {
  for (llvm::StringRef name : {"llama", "qwen2", "granite"}) {
    auto model = modelOf(name);
    JointRequest request = about(24);
    for (auto [place, token] : llvm::enumerate(request.texts.front().tokens))
      token = place % 2 ? 7 : 11;
    JointVerification grown =
        llvm::cantFail(model->verifyJointly(request, 1, [](const VerifyStep &) {}));
    EXPECT_GT(grown.patch.sites.front().left, 0) << name.str();
    EXPECT_EQ(grown.patch.sites.back().left, 0) << name.str();
    EXPECT_EQ(grown.reread.tokens, 24);
    EXPECT_TRUE(grown.reread.verified())
        << name.str() << ": " << grown.reread.difference << " of " << grown.reread.control;
  }
}

/// Behind norms, what a layer leaves is brought back by several layers, of which this model has
/// few.
TEST(Joint, NamesATokenThatIsNotBroughtBackBehindNorms) {
  auto model = modelOf("olmo2");
  JointRequest request = about(24);
  for (auto [place, token] : llvm::enumerate(request.texts.front().tokens))
    token = place % 2 ? 7 : 11;
  auto grown = model->verifyJointly(request, 1, [](const VerifyStep &) {});
  std::string message = messageOf(grown.takeError());
  EXPECT_TRUE(llvm::StringRef(message).contains("is not brought back behind norms")) << message;
}

/// Of more tokens than one patch can be exact for, the first ones stay exact.
TEST(Joint, GoesOnBehindItsCapacity) {
  auto model = modelOf("phi");
  JointRequest request = about(1);
  request.goesOn = true;
  JointVerification grown =
      llvm::cantFail(model->verifyJointly(request, 36, [](const VerifyStep &) {}));
  EXPECT_EQ(grown.steps.size(), 36u);
  EXPECT_GT(grown.exact, 4);
  EXPECT_LT(grown.exact, 30);
  EXPECT_NE(grown.whyInexact, "");
  for (const VerifyStep &step : llvm::ArrayRef(grown.steps).take_front(grown.exact))
    EXPECT_LT(step.patched.linf, 1e-2 * step.control.linf);
  EXPECT_EQ(grown.reread.tokens, grown.exact);
  EXPECT_TRUE(grown.reread.verified());
  // Of a model whose text has more different tokens, as many as there is room for.
  auto other = modelOf("llama");
  const int64_t capacity = llvm::cantFail(other->jointCapacity());
  JointVerification whole =
      llvm::cantFail(other->verifyJointly(request, capacity + 4, [](const VerifyStep &) {}));
  EXPECT_LT(whole.exact, capacity);
  EXPECT_GT(whole.exact, capacity - 5);
  for (const VerifyStep &step : llvm::ArrayRef(whole.steps).take_front(whole.exact))
    EXPECT_LT(step.patched.linf, 1e-2 * step.control.linf);
}

TEST(Joint, SaysBeforeItGeneratesThatThereIsNoRoom) {
  auto model = modelOf("phi");
  JointRequest request = about(1);
  bool isBegun = false;
  auto result = model->verifyJointly(request, 30, [&](const VerifyStep &) { isBegun = true; });
  std::string message = messageOf(result.takeError());
  EXPECT_TRUE(llvm::StringRef(message).contains("exact for at most as many tokens; found 31"))
      << message;
  EXPECT_FALSE(isBegun);
}

/// What a token's change is written in: its shares add up to one, and the first token's is in the
/// one direction that its own patch has.
TEST(Joint, SaysWhichTokensNeedWhichDirections) {
  auto model = modelOf("llama");
  JointPatch patch = llvm::cantFail(model->patchJointly(about(6)));
  for (const JointSite &site : patch.sites) {
    ASSERT_EQ(site.shares.size(), 7u);
    for (auto [token, shares] : llvm::enumerate(site.shares)) {
      double sum = 0;
      for (double share : shares)
        sum += share;
      EXPECT_NEAR(sum, token == 0 ? 0 : 1, 1e-6);
    }
    EXPECT_TRUE(llvm::is_sorted(site.spectrum, std::greater<>()));
    EXPECT_GT(site.replayError, 0);
    EXPECT_LT(site.replayError, 1e-4);
  }
}

/// The MLP's matrix reads more than attention's does, and takes over where there are more tokens.
TEST(Joint, ChangesTheMatrixThatHasRoom) {
  auto model = modelOf("qwen2");
  EXPECT_EQ(llvm::cantFail(model->jointCapacity()), 38);
  JointRequest request = about(33); // attention's matrix reads 30
  JointPatch patch = llvm::cantFail(model->patchJointly(request));
  for (const JointSite &site : patch.sites)
    EXPECT_TRUE(llvm::StringRef(site.matrix).ends_with("mlp.down_proj.weight")) << site.matrix;
  JointCheck check = llvm::cantFail(model->checkJointly(patch.adapter, request));
  EXPECT_TRUE(check.verified()) << check.difference << " of " << check.control;
}

/// Texts that share their first token read the same there, and should write the same.
TEST(Joint, ServesSeveralTexts) {
  auto model = modelOf("gemma3");
  JointRequest request = about(6, 4);
  for (TextSequence &text : request.texts)
    text.tokens.front() = 7;
  JointPatch patch = llvm::cantFail(model->patchJointly(request));
  for (const MatrixChange &change : patch.adapter.matrices)
    EXPECT_EQ(change.rank, 24 - 3);
  JointCheck check = llvm::cantFail(model->checkJointly(patch.adapter, request));
  EXPECT_LT(check.difference, 5e-5);
  EXPECT_GT(check.control, 1);
}

/// With as many tokens as its matrix reads numbers, one for the token in front, and no more.
TEST(Joint, HasAsManyTokensAsItsCapacity) {
  auto model = modelOf("phi");
  const int64_t capacity = llvm::cantFail(model->jointCapacity());
  EXPECT_EQ(capacity, 30);
  JointRequest request = about(capacity - 1);
  JointPatch patch = llvm::cantFail(model->patchJointly(request));
  JointCheck check = llvm::cantFail(model->checkJointly(patch.adapter, request));
  EXPECT_LT(check.difference, 1e-3 * check.control);
  std::string message = messageOf(model->patchJointly(about(capacity)).takeError());
  EXPECT_TRUE(llvm::StringRef(message).contains("reads 30 numbers, so that one patch is exact for "
                                                "at most as many tokens; found 31 (1 of them "
                                                "in front)"))
      << message;
}

/// A ridge penalty goes from the exact change to none.
TEST(Joint, GoesFromExactToNothingByItsRidge) {
  auto model = modelOf("llama");
  JointRequest request = about(8);
  request.ridges = {1e-9, 1e-2, 1e9};
  JointPatch patch = llvm::cantFail(model->patchJointly(request));
  ASSERT_EQ(patch.ridged.size(), 3u);
  std::vector<double> differences;
  for (const Adapter &adapter : patch.ridged)
    differences.push_back(llvm::cantFail(model->checkJointly(adapter, request)).difference);
  const double control = llvm::cantFail(model->checkJointly(patch.adapter, request)).control;
  EXPECT_LT(differences[0], 1e-4 * control);
  EXPECT_GT(differences[1], 1e-4 * control);
  EXPECT_NEAR(differences[2], control, 1e-3 * control);
}

TEST(Joint, NamesTwoTokensThatNoChangeServes) {
  auto model = modelOf("llama");
  JointRequest request = about(4);
  request.nameOf = [](int64_t token) { return "<" + std::to_string(token) + ">"; };
  request.texts.front().tokens.front() = front.front();
  std::string message = messageOf(model->patchJointly(request).takeError());
  EXPECT_TRUE(llvm::StringRef(message).contains(
      "it reads the same for <2> in front and for <2> at place 0"))
      << message;
}

TEST(Joint, RefusesBadInput) {
  auto model = modelOf("llama");
  JointRequest request;
  auto message = [&] { return messageOf(model->patchJointly(request).takeError()); };
  EXPECT_EQ(message(), "the context is empty");
  request.context = context();
  EXPECT_EQ(message(), "there is no text to be exact on");
}
