// The proof checker and the planner, which share no code, agree on every plan of the families and
// of the rules' blocks, and on blocks composed at random.
//
// CTXC_PROPERTY_SEEDS=FIRST:COUNT replaces the seeds of the suite.
#include "../Property/RandomDag.h"
#include "Fixture.h"
#include "ctxc/Evidence/Trial.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include <cstdlib>
#include <map>
#include <random>

using namespace ctxc;
using namespace ctxc::test;
using namespace mlir;

static std::string problemsOf(ModuleOp module, ArrayRef<VerdictGroup> groups,
                              const ModelOptions &options) {
  auto proof = makeProof(module, groups, options);
  if (!proof)
    return llvm::toString(proof.takeError());
  return llvm::join(proof::checkProof(module, *proof).problems, "\n");
}

/// Writes proofs for all plans, not only for the one that was chosen.
static unsigned expectAllPlansProven(Model &model, const ModelOptions &options) {
  std::vector<VerdictGroup> groups = model.groups();
  unsigned count = 0;
  for (VerdictGroup &group : groups) {
    std::shared_ptr<const Verdict> chosen = group.verdict;
    for (const PlanCandidate &candidate : enumeratePlans(group.block, *group.options)) {
      auto verdict = std::make_shared<Verdict>();
      verdict->kind = candidate.outputOnly ? VerdictKind::OutputOnly : VerdictKind::Controllable;
      verdict->plan = candidate.plan;
      group.verdict = verdict;
      std::string parameters;
      for (Operation *op : candidate.plan.patchedOps())
        parameters += " " + Sites::name(op);
      EXPECT_EQ(problemsOf(model.module(), groups, options), "") << "the plan of" << parameters;
      ++count;
    }
    group.verdict = chosen;
  }
  return count;
}

TEST(Agreement, OnEveryPlanOfTheFamilies) {
  unsigned count = 0;
  for (const std::string &name : allGoldens())
    for (SiteScope scope : {SiteScope::MLP, SiteScope::All}) {
      SCOPED_TRACE(name);
      ModelOptions options;
      options.scope = scope;
      Model model(golden(name), options);
      count += expectAllPlansProven(model, options);
    }
  std::printf("%u plans of families\n", count);
  EXPECT_GT(count, 100u);
}

TEST(Agreement, OnEveryPlanOfTheRules) {
  unsigned count = 0;
  for (const std::string &name : allRuleFiles())
    for (xf::Split split : {xf::Split::Even, xf::Split::LeastNorm}) {
      SCOPED_TRACE(name);
      ModelOptions options = ruleOptions(name);
      options.split = split;
      Model model(ruleFile(name), options);
      count += expectAllPlansProven(model, options);
    }
  std::printf("%u plans of rules' blocks\n", count);
  EXPECT_GT(count, 100u);
}

TEST(Agreement, OnRandomBlocks) {
  uint64_t first = 1, size = 1500;
  if (const char *given = std::getenv("CTXC_PROPERTY_SEEDS"))
    std::sscanf(given, "%lu:%lu", &first, &size);
  MLIRContext context;
  context.loadDialect<xf::XFDialect, patch::PatchDialect>();
  context.disableMultithreading();
  std::map<std::string, unsigned> counts;
  for (uint64_t seed = first; seed < first + size; ++seed) {
    std::string text = randomDag(seed);
    auto module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << "seed " << seed;
    std::mt19937_64 draw(seed);
    module->walk([&](xf::ParamOp param) {
      if (draw() % 20 == 0)
        param.setFrozen(true);
    });
    ModelOptions options;
    options.scope = draw() % 3 ? SiteScope::MLP : SiteScope::All;
    options.update = draw() % 3 ? patch::UpdateKind::least : patch::UpdateKind::naive;
    options.confirm = confirmByTrial; // as users judge
    std::vector<VerdictGroup> groups = groupVerdicts(checkModel(*module, options));
    StringRef kind = stringify(groups.front().verdict->kind);
    ++counts[kind.str()];
    std::string problems = problemsOf(*module, groups, options);
    // A few seeds need not be enough to show a rejection in numbers.
    bool notShown = StringRef(problems).contains("no weights and context were found");
    counts["rejected, not shown"] += notShown;
    EXPECT_TRUE(problems.empty() || notShown) << "seed " << seed << ", " << kind.str() << "\n"
                                              << problems << "\n"
                                              << text;
  }
  for (const auto &[kind, count] : counts)
    std::printf("%u %s\n", count, kind.c_str());
  for (const char *kind : {"controllable", "output-only", "rejected", "undecided"})
    EXPECT_GT(counts[kind], 0u) << kind;
  EXPECT_LE(counts["rejected, not shown"] * 50, counts["rejected"]);
}
