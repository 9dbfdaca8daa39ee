// Every verdict on a block in the tests has a proof that is accepted, by structure and by numbers.
#include "Fixture.h"
#include "ctxc/Report/Rules.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;
using namespace ctxc::test;

static void expectRight(Model &model) {
  proof::Proof proof = model.prove();
  ASSERT_FALSE(proof.claims.empty());
  proof::Judgement judgement = proof::checkProof(model.module(), proof);
  EXPECT_EQ(llvm::join(judgement.problems, "\n"), "");
  std::vector<std::shared_ptr<const Verdict>> verdicts; // a claim for each case
  for (const VerdictGroup &group : model.groups())
    verdicts.insert(verdicts.end(), group.cases.size(), group.verdict);
  ASSERT_EQ(verdicts.size(), judgement.replays.size());
  for (auto [verdict, claim, replay] : llvm::zip_equal(verdicts, proof.claims, judgement.replays)) {
    EXPECT_EQ(claim.verdict, stringify(verdict->kind).str());
    EXPECT_EQ(replay.done, claim.verdict != "undecided") << replay.skipped;
    if (const Rule *theorem = findTheorem(*verdict))
      EXPECT_EQ(claim.theorem, theorem->id.str());
  }

  // Writing and reading gives the same proof.
  std::string text;
  llvm::raw_string_ostream os(text);
  proof::writeProof(proof, os);
  auto read = proof::parseProof(text, "proof");
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  std::string again;
  llvm::raw_string_ostream second(again);
  proof::writeProof(*read, second);
  EXPECT_EQ(text, again);
}

class Goldens : public testing::TestWithParam<std::string> {};
TEST_P(Goldens, AreProven) {
  Model model(golden(GetParam()));
  expectRight(model);
}
INSTANTIATE_TEST_SUITE_P(Proof, Goldens, testing::ValuesIn(allGoldens()), goldenTestName);

class RuleBlocks : public testing::TestWithParam<std::string> {};
TEST_P(RuleBlocks, AreProven) {
  Model model(ruleFile(GetParam()), ruleOptions(GetParam()));
  expectRight(model);
}
INSTANTIATE_TEST_SUITE_P(Proof, RuleBlocks, testing::ValuesIn(allRuleFiles()), goldenTestName);

TEST(Proof, NamesLemmasAsTheReportDoes) {
  unsigned count = 0;
  for (const Rule &rule : allRules())
    if (!rule.lemma.empty()) {
      EXPECT_EQ(proof::ruleOfLemma(rule.lemma), rule.id.str());
      ++count;
    }
  EXPECT_GE(count, 9u);
  EXPECT_EQ(proof::ruleOfLemma("of an op from elsewhere"), "of an op from elsewhere");
}

TEST(Proof, OfLaterLayersKnowsTheirInputs) {
  ModelOptions options;
  options.startLayer = 1;
  Model model(golden("llama"), options);
  expectRight(model);
  proof::Proof proof = model.prove();
  EXPECT_TRUE(proof.claims.front().inputsDepend);
}

TEST(Proof, OfTheLeastNormSplit) {
  ModelOptions options;
  options.split = xf::Split::LeastNorm;
  Model model(ruleFile("mixture"), options);
  expectRight(model);
  EXPECT_EQ(model.prove().claims.front().outputs.front().split, "least-norm");
}
