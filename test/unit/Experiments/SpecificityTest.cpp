// The effect of a patch on other tokens: the measures, and the compiled executor's results compared
// with the float64 reference's.
#include "ctxc/Experiments/Specificity.h"
#include "test/unit/Compiled/Fixture.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::experiments;

namespace {

const std::vector<int64_t> sequence = {5, 17, 3, 60, 22, 9, 31};
constexpr int64_t patchedAt = 3;

Patch patchOf(Executor &executor) {
  auto context = llvm::ArrayRef(sequence).take_front(patchedAt + 1);
  auto full = executor.start(sequence.size()), reduced = executor.start(1);
  EXPECT_EQ(llvm::toString(readContext(executor, *full, context)), "");
  return llvm::cantFail(executor.patch(*full, *reduced, context.back(), patchedAt, {})).patch;
}

TEST(Specificity, MeasuresOfChange) {
  std::vector<double> p = {std::log(0.5), std::log(0.5)},
                      q = {std::log(0.75) + 7, std::log(0.25) + 7};
  AnswerChange change = changeOf(p, q);
  EXPECT_NEAR(change.totalVariation, 0.25, 1e-12);
  EXPECT_NEAR(change.divergence, 0.5 * std::log(0.5 / 0.75) + 0.5 * std::log(0.5 / 0.25), 1e-12);
  EXPECT_NEAR(change.linf, std::log(0.75) + 7 - std::log(0.5), 1e-12);
  EXPECT_TRUE(change.sameToken);
  EXPECT_FALSE(changeOf(p, {0.0, 1.0}).sameToken);
  AnswerChange none = changeOf(q, q);
  EXPECT_EQ(none.totalVariation + none.divergence + none.linf, 0);
}

TEST(Specificity, PartsOfAPatch) {
  test::Model model("gemma3");
  Patch whole = patchOf(*model.compiled);
  Patch matrices = partOf(whole, PatchPart::Matrices), vectors = partOf(whole, PatchPart::Vectors);
  EXPECT_EQ(matrices.parameters.size() + vectors.parameters.size(), whole.parameters.size());
  EXPECT_EQ(vectors.parameters.size(), size_t(model.program.layers));
  for (const ParameterPatch &parameter : matrices.parameters)
    EXPECT_EQ(parameter.kind, ParameterPatch::Kind::Rank1);
  EXPECT_EQ(partOf(whole, PatchPart::Whole).parameters.size(), whole.parameters.size());
}

void expectNear(const AnswerChange &found, const AnswerChange &expected) {
  EXPECT_NEAR(found.totalVariation, expected.totalVariation, 1e-4);
  EXPECT_NEAR(found.divergence, expected.divergence, 1e-3);
  EXPECT_NEAR(found.linf, expected.linf, 1e-3);
  EXPECT_EQ(found.sameToken, expected.sameToken);
}

TEST(Specificity, CompiledIsTheReferences) {
  test::Model model("gemma3");
  Patch patch = patchOf(*model.reference);
  const std::vector<int64_t> positions = {2, 4, 6};
  double largest = 0;
  for (PatchPart part : {PatchPart::Whole, PatchPart::Matrices, PatchPart::Vectors})
    for (auto answers : {answersInContext, answersAlone}) {
      Patch taken = partOf(patch, part);
      std::vector<AnswerChange> changes[2];
      for (int which : {0, 1}) {
        Executor &executor = which ? *model.compiled : *model.reference;
        auto before = answers(executor, sequence, positions, nullptr);
        auto after = answers(executor, sequence, positions, &taken);
        ASSERT_TRUE(before && after);
        for (auto [a, b] : llvm::zip_equal(before->logits, after->logits))
          changes[which].push_back(changeOf(a, b));
      }
      for (auto [compiled, reference] : llvm::zip_equal(changes[1], changes[0])) {
        expectNear(compiled, reference);
        largest = std::max(largest, reference.totalVariation);
      }
    }
  EXPECT_GT(largest, 0.05) << "a patch that changes nothing would show nothing";
}

TEST(Specificity, AnswersOfSomePositionsAreThoseOfAll) {
  test::Model model("gemma3");
  auto run = model.reference->start(sequence.size());
  ForwardOptions options;
  options.allLogits = true;
  auto all = model.reference->forward(*run, sequence, test::upTo(sequence.size()), options);
  auto some = answersInContext(*model.reference, sequence, {2, 5}, nullptr);
  ASSERT_TRUE(all && some);
  int64_t width = model.reference->vocabulary();
  EXPECT_LE(test::largestDifference(some->logits[0], llvm::ArrayRef(*all).slice(2 * width, width)),
            1e-10);
  EXPECT_LE(test::largestDifference(some->logits[1], llvm::ArrayRef(*all).slice(5 * width, width)),
            1e-10);
}

TEST(Specificity, APatchGoesStale) {
  test::Model model("gemma3");
  std::vector<StaleStep> found[2];
  for (int which : {0, 1}) {
    Executor &executor = which ? *model.compiled : *model.reference;
    auto full = answersInContext(executor, sequence, {3, 4, 5, 6}, nullptr);
    ASSERT_TRUE(bool(full));
    auto steps = staleness(executor, sequence, patchedAt, patchOf(executor), *full);
    ASSERT_TRUE(bool(steps)) << llvm::toString(steps.takeError());
    found[which] = std::move(*steps);
  }
  ASSERT_EQ(found[0].size(), 4u);
  EXPECT_LE(found[0][0].alone.linf, 1e-9) << "its own token";
  EXPECT_LE(found[0][0].following.linf, 1e-9);
  EXPECT_GT(found[0][0].aloneControl.linf, 0.1);
  for (auto [i, step] : llvm::enumerate(found[0])) {
    EXPECT_EQ(step.distance, int64_t(i));
    EXPECT_EQ(step.position, patchedAt + int64_t(i));
    if (i > 0) {
      EXPECT_GT(step.alone.totalVariation, 1e-3);
      EXPECT_GT(std::fabs(step.alone.totalVariation - step.following.totalVariation), 1e-6);
    }
    expectNear(found[1][i].alone, step.alone);
    expectNear(found[1][i].following, step.following);
    expectNear(found[1][i].followingControl, step.followingControl);
  }
}

} // namespace
