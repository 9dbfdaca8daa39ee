// A context that is kept gives the same results as one that is read anew, whatever was done to it
// before.
#include "ctxc/Session/Context.h"
#include "test/unit/Session/Opened.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

std::vector<int64_t> tokensUpTo(int64_t count) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back((i * 37 + 5) % 89);
  return tokens;
}

Context contextOf(Model &model, int64_t count, std::vector<int64_t> kept = {}) {
  return llvm::cantFail(model.context(tokensUpTo(count), std::move(kept)));
}

/// Compiled kernels, whose sums have one order, agree bit for bit; the reference leaves the order
/// of sums to Eigen.
void expectSame(llvm::ArrayRef<double> found, llvm::ArrayRef<double> expected, Engine engine) {
  ASSERT_EQ(found.size(), expected.size());
  if (engine == Engine::Compiled)
    EXPECT_EQ(found, expected);
  else
    EXPECT_LT(compareLogits(expected, found).linf, 1e-9);
}

void expectSame(Context &found, Context &expected, Engine engine) {
  ASSERT_EQ(found.tokens().size(), expected.tokens().size());
  PatchStep a = llvm::cantFail(found.patch()), b = llvm::cantFail(expected.patch());
  expectSame(a.fullLogits.doubles(), b.fullLogits.doubles(), engine);
  ASSERT_EQ(a.patch.parameters.size(), b.patch.parameters.size());
  for (auto [x, y] : llvm::zip(a.patch.parameters, b.patch.parameters)) {
    EXPECT_EQ(x.parameter, y.parameter);
    if (x.kind == ParameterPatch::Kind::Delta) {
      expectSame(x.delta, y.delta, engine);
      continue;
    }
    expectSame(x.u, y.u, engine);
    expectSame(x.v, y.v, engine);
  }
}

class Contexts : public testing::TestWithParam<Engine> {
protected:
  std::unique_ptr<Model> model(llvm::StringRef path) {
    LoadOptions options;
    options.engine = GetParam();
    return opened(path, options);
  }
};

/// Also beyond the 64 tokens that it first had room for, where the run is copied to a larger one.
TEST_P(Contexts, AreExtended) {
  auto model = this->model("test/goldens/gemma3");
  for (auto [first, count] : {std::pair(4, 5), {4, 9}, {20, 70}}) {
    Context context = contextOf(*model, first);
    std::vector<Input> more;
    for (int64_t token : llvm::ArrayRef<int64_t>(tokensUpTo(count)).drop_front(first))
      more.push_back(Input(token));
    ASSERT_FALSE(bool(context.extend(more)));
    Context anew = contextOf(*model, count);
    expectSame(context, anew, GetParam());
  }
}

/// A patch leaves its context unchanged, and the patched run gives the same results as the context.
TEST_P(Contexts, ArePatchedAgain) {
  auto model = this->model("test/goldens/gemma3");
  for (std::vector<int64_t> kept : {std::vector<int64_t>(), {0, 2}}) {
    Context context = contextOf(*model, 6, kept), anew = contextOf(*model, 6, kept);
    PatchStep step = llvm::cantFail(context.patch());
    expectSame(context, anew, GetParam());
    Logits logits = llvm::cantFail(context.logits());
    EXPECT_TRUE(logits == step.fullLogits);
    EXPECT_EQ(logits.isFloat32(), GetParam() == Engine::Compiled);
    std::vector<double> full = logits.doubles();
    std::vector<double> patched = llvm::cantFail(context.logits(step.patch)).doubles();
    std::vector<double> without = llvm::cantFail(context.logits(Patch())).doubles();
    EXPECT_LT(compareLogits(full, patched).linf, 1e-4);
    EXPECT_GT(compareLogits(full, without).linf, 1e-3);
  }
}

TEST_P(Contexts, AreForked) {
  auto model = this->model("test/goldens/gemma3");
  Context context = contextOf(*model, 6, {1});
  Context other = llvm::cantFail(context.fork());
  ASSERT_FALSE(bool(other.extend(7)));
  Context anew = contextOf(*model, 6, {1});
  expectSame(context, anew, GetParam());
  std::vector<int64_t> tokens = tokensUpTo(6);
  tokens.push_back(7);
  Context longer = llvm::cantFail(model->context(tokens, {1}));
  expectSame(other, longer, GetParam());
}

TEST_P(Contexts, SayWhatIsWrong) {
  auto model = this->model("test/goldens/gemma3");
  std::string message = llvm::toString(model->context(tokensUpTo(1)).takeError());
  EXPECT_NE(message.find("at least two"), std::string::npos) << message;
  message = llvm::toString(model->context(tokensUpTo(4), {3}).takeError());
  EXPECT_NE(message.find("expected positions of the context, from 0 to 2"), std::string::npos)
      << message;
}

INSTANTIATE_TEST_SUITE_P(Engines, Contexts, testing::Values(Engine::Compiled, Engine::Reference));

/// Every token of an encoder sees those after it, so that a context cannot be extended.
TEST(Context, OfAnEncoderDoesNotGoOn) {
  auto model = opened("test/goldens/bert");
  Context context = contextOf(*model, 5);
  ASSERT_TRUE(bool(context.patch()));
  std::string message = llvm::toString(context.extend(7));
  EXPECT_NE(message.find("is bidirectional"), std::string::npos) << message;
}

} // namespace
