// No false verdict on blocks whose numbers make an identity of their sizes. They are judged with
// whole matrices, on other weights than those that a verdict was confirmed on.
#include "RandomSized.h"
#include "Seeds.h"
#include "ctxc/Evidence/Trial.h"
#include "ctxc/Evidence/Witness.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <map>

using namespace ctxc;
using namespace ctxc::test;
using namespace mlir;

namespace {

class SizedJudge {
public:
  SizedJudge() {
    DialectRegistry registry;
    registry.insert<xf::XFDialect, patch::PatchDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  void judge(uint64_t seed);
  void print(llvm::raw_ostream &os) const {
    for (auto &[what, number] : counts)
      os << "  " << number << " " << what << "\n";
  }
  std::map<std::string, int> counts;

private:
  void count(const std::string &what) { ++counts[what]; }
  MLIRContext context;
};

void SizedJudge::judge(uint64_t seed) {
  std::string text = randomSized(seed);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module) << "seed " << seed << "\n" << text;
  xf::BlockOp block = *module->getOps<xf::BlockOp>().begin();
  PlanOptions options;
  options.confirm = confirmByTrial;
  options.refute = [](xf::BlockOp block, const PlanOptions &options, StringRef rule) {
    return rule.empty() ? Refuted() : refuteByWitness(block, options, rule);
  };
  Verdict verdict = planBlock(block, options);
  SCOPED_TRACE("seed " + std::to_string(seed) + ", " + stringify(verdict.kind).str() + "\n" + text);
  count("cases");
  count(stringify(verdict.kind).str());
  if (verdict.kind == VerdictKind::Undecided)
    return;
  bool conditional = llvm::any_of(verdict.plan.obligations, [](const PlanObligation &o) {
    return o.kind != xf::Obligation::None && o.likelihood == xf::Zeros::OpenSet;
  });
  TrialOptions how;
  how.seed = seed + 1000;
  how.others = 0;
  // Of what is rejected, the trial of an empty plan says what the context changes.
  auto trial = tryPlan(block, verdict.plan, how);
  ASSERT_TRUE(bool(trial)) << llvm::toString(trial.takeError());
  bool isTrue = false;
  if (verdict.kind == VerdictKind::Rejected)
    isTrue = trial->control > 1e-6 * (1 + trial->largestOutput);
  else if (verdict.plan.isEmpty())
    isTrue = trial->control <= 1e-9 * (1 + trial->largestOutput);
  else
    isTrue = conditional || (!trial->harmful && trial->isExact() && trial->relativeNorm < 1e6);
  EXPECT_TRUE(isTrue) << trialText(*trial);
  if (!isTrue)
    count("false verdicts");
}

constexpr uint64_t sizedShards = 8;

struct Sized : testing::TestWithParam<int> {};

TEST_P(Sized, AreNeverFalse) {
  judgeSeeds<SizedJudge>("sized blocks", {GetParam(), sizedShards, 6},
                         [](SizedJudge &judge, uint64_t seed) { judge.judge(seed); }, 50,
                         {"controllable", "rejected", "undecided"});
}

INSTANTIATE_TEST_SUITE_P(Seeds, Sized, testing::Range(0, int(sizedShards)));

} // namespace
