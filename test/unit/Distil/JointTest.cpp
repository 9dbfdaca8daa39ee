// One patch that is exact for all tokens of a text.
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

/// With as many tokens as its first matrix reads numbers, one for the token in front, and no more.
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
