// Trials of the plan of one block: the families' plans are exact, and one whose obligation fails is
// not.
#include "ctxc/Evidence/Trial.h"
#include "../Transforms/Blocks.h"
#include "ctxc/Support/Error.h"
#include <map>

using namespace ctxc;
using namespace ctxc::test;
using namespace mlir;
using patch::UpdateKind;

namespace {

/// Random weights, except for parameters whose entries are all equal.
class WithConstant : public Weights {
public:
  WithConstant(std::map<std::string, float> values) : values(std::move(values)) {}
  WithConstant(StringRef name, float value) : values{{name.str(), value}} {}
  llvm::Expected<const void *> get(StringRef asked, RankedTensorType type) override {
    auto value = values.find(asked.str());
    if (value == values.end())
      return others->get(asked, type);
    std::vector<float> &own = numbers[asked.str()];
    own.assign(type.getNumElements(), value->second);
    return static_cast<const void *>(own.data());
  }
  llvm::Expected<std::string> hash() override { return "test"; }

private:
  std::map<std::string, float> values;
  std::map<std::string, std::vector<float>> numbers;
  std::unique_ptr<Weights> others = randomWeights(1);
};

Trial attempt(Blocks &blocks, StringRef name, TrialOptions options = {}) {
  xf::BlockOp block = blocks.block(name);
  PlanOptions planOptions;
  planOptions.update = options.update;
  planOptions.inputsAreSources = options.inputsAreSources;
  Verdict verdict = planBlock(block, planOptions);
  EXPECT_TRUE(verdict.isSuccess());
  llvm::Expected<Trial> trial = tryPlan(block, verdict.plan, options);
  if (trial)
    return *trial;
  ADD_FAILURE() << llvm::toString(trial.takeError());
  return {};
}

TEST(Trial, PlansOfTheFamiliesAreExact) {
  Blocks blocks(gemma() + llama() + parallel() + biased());
  for (StringRef name : {"gemma", "llama", "parallel", "biased"})
    for (UpdateKind update : {UpdateKind::least, UpdateKind::naive, UpdateKind::balanced})
      for (bool inputsAreSources : {false, true}) {
        SCOPED_TRACE(name.str());
        TrialOptions options;
        options.update = update;
        options.inputsAreSources = inputsAreSources;
        Trial trial = attempt(blocks, name, options);
        EXPECT_LT(trial.error, 1e-9);
        EXPECT_TRUE(trial.isExact());
        EXPECT_GT(trial.control, 1e-2);
        EXPECT_EQ(trial.harmful, 0);
        EXPECT_GT(trial.patchNorm, 0);
        EXPECT_GT(trial.drift, 0);
        EXPECT_GE(trial.conditioning(), 1);
      }
  // The blocks that trials build are removed again.
  EXPECT_EQ(countOps<xf::BlockOp>(*blocks.module), 4);
}

TEST(Trial, IsTheSameForTheSameSeedAndAnotherForAnother) {
  Blocks blocks(llama());
  Trial first = attempt(blocks, "llama"), again = attempt(blocks, "llama");
  EXPECT_EQ(first.control, again.control);
  EXPECT_EQ(first.patchNorm, again.patchNorm);
  TrialOptions options;
  options.seed = 2;
  EXPECT_NE(attempt(blocks, "llama", options).control, first.control);
}

TEST(Trial, AnOutputBiasMovesEveryTokenAndAMatrixFewer) {
  // A rank-1 patch has no effect on a token that is orthogonal to z; a bias changes all tokens
  // equally.
  Blocks blocks(biased());
  xf::BlockOp block = blocks.block("biased");
  auto driftOf = [&](StringRef output) {
    llvm::Expected<Trial> trial =
        tryPlan(block, blocks.plan(block, {"fc1.weight"}, output), TrialOptions());
    EXPECT_TRUE(bool(trial));
    EXPECT_TRUE(trial->isExact());
    return trial->drift;
  };
  EXPECT_GT(driftOf("fc2.bias"), 1.2 * driftOf("fc2.weight"));
}

TEST(Trial, AFailedObligationIsCountedAndInexact) {
  // All inputs of the relu are negative in both runs, so that the outer matrix reads zero.
  Blocks blocks(biased());
  xf::BlockOp block = blocks.block("biased");
  WithConstant weights("fc1.bias", -1000);
  TrialOptions options;
  options.weights = &weights;
  BlockPlan plan = blocks.plan(block, {"fc1.weight"}, "fc2.weight");
  llvm::Expected<Trial> trial = tryPlan(block, plan, options);
  ASSERT_TRUE(bool(trial)) << llvm::toString(trial.takeError());
  EXPECT_EQ(trial->harmful, 1);
  EXPECT_FALSE(trial->isExact());
  EXPECT_NEAR(trial->error, trial->control, 1e-12);
  // A bias has no obligation.
  trial = tryPlan(block, blocks.plan(block, {"fc1.weight"}, "fc2.bias"), options);
  ASSERT_TRUE(bool(trial));
  EXPECT_TRUE(trial->isExact());
}

TEST(Trial, APatchThatIsTooLargeIsNotExact) {
  // The hidden vector has magnitude 1e-18, and hence the patch of its matrix 1e18: an error
  // computed in float64 then has no meaning.
  Blocks blocks(biased());
  xf::BlockOp block = blocks.block("biased");
  WithConstant weights({{"fc1.weight", 0}, {"fc1.bias", 1e-18f}});
  TrialOptions options;
  options.weights = &weights;
  llvm::Expected<Trial> trial = tryPlan(block, blocks.plan(block, {}, "fc2.weight"), options);
  ASSERT_TRUE(bool(trial)) << llvm::toString(trial.takeError());
  EXPECT_GT(trial->patchNorm, 1e15);
  EXPECT_EQ(trial->outcome(), TrialOutcome::IllConditioned);
  EXPECT_FALSE(trial->isExact());
  EXPECT_NE(trial->whyNotExact().find("times its parameter"), std::string::npos);
}

TEST(Trial, TheToleranceIsBounded) {
  Trial trial;
  trial.control = 0.5;
  EXPECT_TRUE(trial.isExact());
  EXPECT_EQ(trial.whyNotExact(), "");
  trial.error = 0.4;
  for (double huge : {1e3, 1e9, 1e15, 1e300}) {
    trial.largestValue = huge;
    EXPECT_FALSE(trial.isExact()) << huge;
    EXPECT_LE(trial.tolerance(), 1e-3);
    EXPECT_NE(trial.whyNotExact(), "");
  }
  // A patch that is no better than none is not exact, however small its error is.
  trial.error = trial.control = 1e-5;
  trial.largestValue = 1e6;
  EXPECT_FALSE(trial.isExact());
  // The rounding errors of large outputs are large too.
  trial = Trial();
  trial.largestOutput = trial.control = 1e6;
  trial.error = 1e-6;
  EXPECT_TRUE(trial.isExact());
}

TEST(Trial, SaysBeforeHowMuchMemoryItNeeds) {
  Blocks blocks(R"(
  xf.block @vast(%x: tensor<6xf32>) -> tensor<6xf32> {
    %K = xf.param "conv" : tensor<6x3xf32>
    %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
    %v = xf.add %x, %c : tensor<6xf32>
    %U = xf.param "up" : tensor<1000000000000x6xf32>
    %u = xf.linear %U * %v : tensor<1000000000000x6xf32>, tensor<6xf32>
    %D = xf.param "down" : tensor<6x1000000000000xf32>
    %d = xf.linear %D * %u : tensor<6x1000000000000xf32>, tensor<1000000000000xf32>
    %y = xf.add %v, %d : tensor<6xf32>
    xf.yield %y : tensor<6xf32>
  })");
  xf::BlockOp block = blocks.block("vast");
  llvm::Expected<Trial> trial = tryPlan(block, planBlock(block).plan, {});
  ASSERT_FALSE(bool(trial));
  EXPECT_NE(llvm::toString(trial.takeError()).find("GB to be tried"), std::string::npos);
}

TEST(Trial, ConfirmsWhatIsExactAndNothingElse) {
  Blocks blocks(gemma() + llama() + parallel() + biased());
  for (StringRef name : {"gemma", "llama", "parallel", "biased"}) {
    PlanOptions options;
    options.confirm = confirmByTrial;
    EXPECT_TRUE(planBlock(blocks.block(name), options).isSuccess()) << name.str();
    EXPECT_FALSE(enumeratePlans(blocks.block(name), options).empty());
  }
  // The entries of a layer norm's result add up to zero, which no fact states.
  Blocks others(R"(
  xf.block @cancelling(%x: tensor<2xf32>) -> tensor<2xf32> {
    %K = xf.param "conv" : tensor<2x3xf32>
    %c = xf.conv %K, %x : tensor<2x3xf32>, tensor<2xf32>
    %v = xf.add %x, %c : tensor<2xf32>
    %n = xf.normalize layer %v eps 1.0e-5 : tensor<2xf32>
    %l = xf.slice %n from 0 : tensor<2xf32> to tensor<1xf32>
    %r = xf.slice %n from 1 : tensor<2xf32> to tensor<1xf32>
    %h = xf.add %l, %r : tensor<1xf32>
    %W = xf.param "w" : tensor<2x1xf32>
    %d = xf.linear %W * %h : tensor<2x1xf32>, tensor<1xf32>
    %y = xf.add %v, %d : tensor<2xf32>
    xf.yield %y : tensor<2xf32>
  })");
  PlanOptions options;
  EXPECT_TRUE(planBlock(others.block("cancelling"), options).isSuccess());
  options.confirm = confirmByTrial;
  Verdict verdict = planBlock(others.block("cancelling"), options);
  EXPECT_EQ(verdict.kind, VerdictKind::Undecided);
  ASSERT_EQ(verdict.causes.size(), 1u);
  EXPECT_EQ(verdict.causes[0].rule, rules::UnconfirmedPlan);
  EXPECT_TRUE(enumeratePlans(others.block("cancelling"), options).empty());
}

/// v + (down v) ⊙ h, where `body` computes h from u = up v; everything is `width` wide.
static std::string wide(const std::string &body, int64_t width) {
  std::string text = R"(
  xf.block @wide(%x: V) -> V {
    %K = xf.param "conv" : tensor<Nx3xf32>
    %c = xf.conv %K, %x : tensor<Nx3xf32>, V
    %v = xf.add %x, %c : V
    %U = xf.param "up" : M
    %u = xf.linear %U * %v : M, V
)" + body + R"(
    %D = xf.param "down" : M
    %d = xf.linear %D * %v : M, V
    %p = xf.mul %d, %h : V, V
    %y = xf.add %v, %p : V
    xf.yield %y : V
  })";
  auto replaceAll = [&](StringRef from, const std::string &to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  replaceAll(": V", ": tensor<Nxf32>");
  replaceAll(", V", ", tensor<Nxf32>");
  replaceAll("-> V", "-> tensor<Nxf32>");
  replaceAll(": M", ": tensor<NxNxf32>");
  replaceAll("N", std::to_string(width));
  return text;
}

/// What no fact states of the width 6 is no plan at the width 600 either, though nobody runs that.
TEST(Trial, ConfirmsLargeBlocks) {
  const std::string opposite = "    %n = xf.times %u by -1.0 : V\n",
                    zeros[] = {opposite + "    %a = xf.activation tanh %u : V\n"
                                          "    %b = xf.activation tanh %n : V\n"
                                          "    %h = xf.add %a, %b : V\n",
                               "    %a = xf.activation silu %u : V\n"
                               "    %s = xf.activation sigmoid %u : V\n"
                               "    %b = xf.mul %s, %u : V, V\n"
                               "    %h = xf.sub %a, %b : V\n",
                               "    %o = xf.setting \"ones\" : V = dense<1.0> : V\n"
                               "    %a = xf.mul %u, %o : V, V\n    %h = xf.sub %a, %u : V\n",
                               "    %w = xf.add %u, %v : V\n    %a = xf.linear %U * %w : M, V\n"
                               "    %b = xf.linear %U * %u : M, V\n    %e = xf.sub %a, %b : V\n"
                               "    %h = xf.sub %e, %u : V\n"};
  for (const std::string &body : zeros)
    for (int64_t width : {6, 600}) {
      Blocks blocks(wide(body, width));
      ASSERT_TRUE(bool(blocks.module)) << wide(body, width);
      PlanOptions options;
      EXPECT_TRUE(planBlock(blocks.block("wide"), options).isSuccess()) << body;
      options.confirm = confirmByTrial;
      Verdict verdict = planBlock(blocks.block("wide"), options);
      EXPECT_EQ(verdict.kind, VerdictKind::Undecided) << body << width;
      ASSERT_EQ(verdict.causes.size(), 1u);
      EXPECT_EQ(verdict.causes[0].rule, rules::UnconfirmedPlan);
    }
  Blocks exact(wide("    %h = xf.activation gelu %u : V\n", 600));
  PlanOptions options;
  options.confirm = confirmByTrial;
  EXPECT_TRUE(planBlock(exact.block("wide"), options).isSuccess());
}

/// What a contextual op computes need not be known: an attention stands in for it.
TEST(Trial, ConfirmsWhateverTheContextualOp) {
  auto with = [](const std::string &function) {
    return block("b", "    %a = xf.contextual \"mixer\"(%x) : (tensor<6xf32>) -> tensor<6xf32>\n" +
                          add("v", "x", "a") +
                          "    %U = xf.param \"up\" : tensor<6x6xf32>\n"
                          "    %u = xf.linear %U * %v : tensor<6x6xf32>, tensor<6xf32>\n"
                          "    %n = xf.times %u by -1.0 : tensor<6xf32>\n"
                          "    %s = xf.activation " +
                          function +
                          " %u : tensor<6xf32>\n    %t = xf.activation tanh %n : tensor<6xf32>\n" +
                          add("h", "s", "t") +
                          "    %D = xf.param \"down\" : tensor<6x6xf32>\n"
                          "    %d = xf.linear %D * %h : tensor<6x6xf32>, tensor<6xf32>\n" +
                          add("y", "v", "d"));
  };
  PlanOptions options;
  options.confirm = confirmByTrial;
  Blocks zero(with("tanh")), generic(with("gelu"));
  EXPECT_EQ(planBlock(zero.block("b"), options).kind, VerdictKind::Undecided);
  EXPECT_EQ(planBlock(generic.block("b"), options).kind, VerdictKind::Controllable);
}

/// A member of the bank is bound alone, which no smaller sizes keep.
TEST(Trial, OfBanksThatShareAMember) {
  std::string text = R"(
  xf.block @b(%x: tensor<Nxf32>) -> tensor<Nxf32> {
    %K = xf.param "conv" : tensor<Nx3xf32>
    %a = xf.conv %K, %x : tensor<Nx3xf32>, tensor<Nxf32>
    %v = xf.add %x, %a : tensor<Nxf32>
    %R = xf.param "router" : tensor<70xNxf32>
    %l = xf.linear %R * %v : tensor<70xNxf32>, tensor<Nxf32>
    %sel = xf.top_k %l k 2 : tensor<70xf32>
    %g = xf.gather %l[%sel] : tensor<70xf32>, tensor<2xi32>
    %w = xf.softmax %g : tensor<2xf32>
    %E = xf.param "experts.*.w" : tensor<70xNxNxf32>
    %e = xf.expert_linear %E[%sel] * %v : tensor<70xNxNxf32>, tensor<2xi32>, tensor<Nxf32>
    %m = xf.combine %w, %e : tensor<2xf32>, tensor<2xNxf32>
    %S = xf.param "experts.3.w" : tensor<NxNxf32>
    %s = xf.linear %S * %m : tensor<NxNxf32>, tensor<Nxf32>
    %B = xf.param "bias" : tensor<Nxf32>
    %b = xf.bias %s + %B : tensor<Nxf32>, tensor<Nxf32>
    %y = xf.add %v, %b : tensor<Nxf32>
    xf.yield %y : tensor<Nxf32>
  })";
  for (int64_t width : {6, 1024}) {
    std::string sized = text;
    for (size_t at; (at = sized.find('N')) != std::string::npos;)
      sized.replace(at, 1, std::to_string(width));
    Blocks blocks(sized);
    ASSERT_TRUE(bool(blocks.module));
    PlanOptions options;
    options.confirm = confirmByTrial;
    Verdict verdict = planBlock(blocks.block("b"), options);
    EXPECT_TRUE(verdict.isSuccess()) << width;
  }
}

/// Matrices of any size take no memory; what is computed does.
TEST(Trial, WhatIsTooLargeToTryIsUndecided) {
  std::string text = R"(
  xf.block @b(%x: tensor<6xf32>) -> tensor<6xf32> {
    %K = xf.param "conv" : tensor<6x3xf32>
    %a = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
    %v = xf.add %x, %a : tensor<6xf32>
    %U = xf.param "up" : tensor<Nx6xf32>
    %u = xf.linear %U * %v : tensor<Nx6xf32>, tensor<6xf32>
    %h = xf.activation gelu %u : tensor<Nxf32>
    %D = xf.param "down" : tensor<6xNxf32>
    %d = xf.linear %D * %h : tensor<6xNxf32>, tensor<Nxf32>
    %y = xf.add %v, %d : tensor<6xf32>
    xf.yield %y : tensor<6xf32>
  })";
  for (const char *width : {"16", "100000", "1000000000000"}) {
    std::string sized = text;
    for (size_t at; (at = sized.find('N')) != std::string::npos;)
      sized.replace(at, 1, width);
    Blocks blocks(sized);
    ASSERT_TRUE(bool(blocks.module));
    PlanOptions options;
    options.confirm = confirmByTrial;
    Verdict verdict = planBlock(blocks.block("b"), options);
    bool isTooLarge = StringRef(width).size() > 6;
    EXPECT_EQ(verdict.isSuccess(), !isTooLarge) << width;
    if (!isTooLarge)
      continue;
    ASSERT_EQ(verdict.causes.size(), 1u);
    EXPECT_NE(verdict.causes.front().message.find("GB of memory are free"), std::string::npos);
  }
}

TEST(Trial, IsRememberedForEachPlan) {
  Blocks blocks(gemma() + llama());
  int asked = 0;
  PlanOptions options;
  options.confirm = remembered([&](xf::BlockOp, const PlanOptions &, const PlanCandidate &plan) {
    ++asked;
    return std::string(plan.outputOnly ? "no" : "");
  });
  std::vector<PlanCandidate> first = enumeratePlans(blocks.block("gemma"), options);
  int once = asked;
  EXPECT_GT(once, int(first.size())); // the plans that are contradicted are not listed
  EXPECT_EQ(enumeratePlans(blocks.block("gemma"), options).size(), first.size());
  EXPECT_TRUE(planBlock(blocks.block("gemma"), options).isSuccess());
  EXPECT_EQ(asked, once);
  // Another block, and the same one with another update, are other questions.
  enumeratePlans(blocks.block("llama"), options);
  int both = asked;
  EXPECT_GT(both, once);
  options.update = patch::UpdateKind::balanced;
  enumeratePlans(blocks.block("gemma"), options);
  EXPECT_EQ(asked, both + once);
}

TEST(Trial, AnOpWithoutAMeaningIsAnError) {
  Blocks blocks(
      block("opaque", "    %W = xf.param \"w\" : tensor<6x6xf32>\n"
                      "    %a = xf.contextual \"mixer\"(%x) : (tensor<6xf32>) -> "
                      "tensor<6xf32>\n" +
                          add("v", "x", "a") +
                          "    %d = xf.linear %W * %v : tensor<6x6xf32>, tensor<6xf32>\n" +
                          add("y", "v", "d")));
  xf::BlockOp block = blocks.block("opaque");
  llvm::Expected<Trial> trial = tryPlan(block, planBlock(block).plan, {});
  ASSERT_FALSE(bool(trial));
  EXPECT_NE(llvm::toString(trial.takeError()).find("no meaning"), std::string::npos);
}

} // namespace
