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

TEST(Joint, IsExactForAllTokensOfATextInEveryFamily) {
  for (llvm::StringRef name : {"gemma3", "gemma2", "llama", "gpt2", "falcon-alibi", "mixtral",
                               "mistral", "gpt-oss", "phi", "deepseek-v3", "opt", "bloom"}) {
    auto model = modelOf(name);
    JointRequest request = about(8);
    JointPatch patch = llvm::cantFail(model->patchJointly(request));
    JointCheck check = llvm::cantFail(model->checkJointly(patch.adapter, request));
    EXPECT_EQ(check.tokens, 8);
    EXPECT_LT(check.difference, 2e-4) << name.str();
    EXPECT_GT(check.control, 100 * check.difference) << name.str();
    EXPECT_EQ(check.agree, 8) << name.str();
    std::fprintf(stderr, "%s: %g, control %g, capacity %ld\n", name.str().c_str(), check.difference,
                 check.control, long(llvm::cantFail(model->jointCapacity())));
  }
}
