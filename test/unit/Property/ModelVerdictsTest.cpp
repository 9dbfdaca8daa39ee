// No false verdict on random models: where every layer has a plan and nothing passes the layers,
// the patched model without the context gives the logits of the model with it, in float64 and
// within what the verification itself allows. Where the verdict says that the context passes them,
// nothing is claimed; how often the logits do differ is counted. Layers that are folded into others
// give the logits that they gave.
//
// CTXC_PROPERTY_SEEDS=FIRST:COUNT runs other seeds than those of the suite.
#include "RandomModel.h"
#include "Seeds.h"
#include "ctxc/Evidence/MakeProof.h"
#include "ctxc/Evidence/Trial.h"
#include "ctxc/Planning/ModelVerdict.h"
#include "ctxc/Proof/CheckProof.h"
#include "ctxc/Reference/Reference.h"
#include "ctxc/Transforms/BuildProgram.h"
#include "ctxc/Transforms/DropOutputs.h"
#include "ctxc/Transforms/FoldLayers.h"
#include "ctxc/Verify/ProgramNorms.h"
#include "ctxc/Verify/Verify.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <map>

using namespace ctxc;
using namespace ctxc::test;
using namespace mlir;

namespace {

class ModelJudge {
public:
  ModelJudge() {
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
  void drop(uint64_t seed, const RandomModel &model, ModuleOp module);
  void fold(uint64_t seed, const RandomModel &model, ModuleOp module, unsigned startLayer);
  void judgeLayers(uint64_t seed, ArrayRef<LayerVerdict> verdicts);
  void judgeProof(uint64_t seed, ModuleOp module, ArrayRef<VerdictGroup> groups,
                  const ModelOptions &options);
  void run(uint64_t seed, const RandomModel &model, ModuleOp module,
           ArrayRef<LayerVerdict> verdicts, const ModelVerdict &whole, const ModelOptions &options);
  void compare(const VerifyStep &step, const ModelVerdict &whole);
  void count(const std::string &what) { ++counts[what]; }

  MLIRContext context;
};

/// The logits of four tokens in the model as it is, without patches.
llvm::Expected<std::vector<double>> logitsOf(ModuleOp module, uint64_t seed, int64_t vocabulary) {
  OwningOpRef<ModuleOp> copy(module.clone());
  auto nothing = [](xf::LayerOp, xf::BlockOp, int64_t) { return std::optional<BlockPlan>(); };
  FailureOr<Program> program = buildProgram(*copy, nothing, patch::UpdateKind::least);
  if (failed(program))
    return llvm::createStringError("it cannot be built");
  std::unique_ptr<Weights> weights = randomWeights(seed);
  std::unique_ptr<Executor> executor = createReferenceExecutor(*program, *weights);
  std::unique_ptr<Run> run = executor->start(4);
  std::vector<int64_t> tokens, positions = {0, 1, 2, 3};
  for (int64_t i : positions)
    tokens.push_back((i * 3 + int64_t(seed % 5)) % vocabulary);
  return executor->forward(*run, tokens, positions, ForwardOptions());
}

/// Drops outputs that the model does not read, as ctxc does with every model that it reads.
void ModelJudge::drop(uint64_t seed, const RandomModel &model, ModuleOp module) {
  OwningOpRef<ModuleOp> before(module.clone());
  if (!dropUnreadOutputs(module))
    return;
  count("with outputs that are not read");
  EXPECT_TRUE(succeeded(mlir::verify(module))) << model.text;
  EXPECT_EQ(dropUnreadOutputs(module), 0u) << model.text;
  auto wanted = logitsOf(*before, seed, model.vocabulary);
  auto found = logitsOf(module, seed, model.vocabulary);
  EXPECT_EQ(bool(wanted), bool(found));
  for (size_t i = 0; wanted && found && i < wanted->size(); ++i) // sums depend on addresses
    EXPECT_NEAR((*wanted)[i], (*found)[i], 1e-9 * (1 + std::abs((*wanted)[i])));
  llvm::consumeError(wanted.takeError());
  llvm::consumeError(found.takeError());
}

/// Folds layers, as ctxc does with every model that it reads.
void ModelJudge::fold(uint64_t seed, const RandomModel &model, ModuleOp module,
                      unsigned startLayer) {
  OwningOpRef<ModuleOp> before(module.clone());
  if (foldLayers(module, startLayer).empty())
    return;
  count("with folded layers");
  EXPECT_TRUE(succeeded(mlir::verify(module)));
  EXPECT_TRUE(foldLayers(module, startLayer).empty());
  auto wanted = logitsOf(*before, seed, model.vocabulary);
  auto found = logitsOf(module, seed, model.vocabulary);
  EXPECT_EQ(bool(wanted), bool(found));
  if (wanted && found)
    EXPECT_EQ(*wanted, *found);
  llvm::consumeError(wanted.takeError());
  llvm::consumeError(found.takeError());
}

void ModelJudge::judge(uint64_t seed) {
  RandomModel model = randomModel(seed);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(model.text, &context);
  ASSERT_TRUE(module) << "seed " << seed << "\n" << model.text;
  ModelOptions options;
  options.startLayer = seed % 2 ? seed / 2 % model.layers : 0;
  drop(seed, model, *module);
  fold(seed, model, *module, options.startLayer);
  options.scope = seed % 5 ? SiteScope::MLP : SiteScope::All;
  options.confirm = confirmByTrial;
  std::vector<LayerVerdict> verdicts = checkModel(*module, options);
  std::vector<VerdictGroup> groups = groupVerdicts(verdicts);
  std::optional<ModelVerdict> whole = judgeModel(*module, groups, options.startLayer);
  ASSERT_TRUE(whole);
  count("models");
  {
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + model.text);
    judgeLayers(seed, verdicts);
  }
  if (!llvm::all_of(groups, [](const VerdictGroup &g) { return g.verdict->isSuccess(); })) {
    EXPECT_FALSE(whole->isSuccess());
    return count("with a layer that has no plan");
  }
  count(whole->isSuccess() ? "that can be patched" : "that the context passes");
  EXPECT_EQ(whole->isSuccess(), whole->causes.empty());
  SCOPED_TRACE("seed " + std::to_string(seed) + ", " + stringify(whole->kind).str() +
               ", start layer " + std::to_string(options.startLayer) + "\n" + model.text);
  judgeProof(seed, *module, groups, options);
  run(seed, model, *module, verdicts, *whole, options);
}

/// Where a plan is exact almost everywhere, no layer divides by zero on all of a few random weights
/// and activations, nor is it wrong on any.
void ModelJudge::judgeLayers(uint64_t seed, ArrayRef<LayerVerdict> verdicts) {
  for (const LayerVerdict &layer : verdicts) {
    const BlockPlan &plan = layer.verdict->plan;
    bool conditional = llvm::any_of(plan.obligations, [](const PlanObligation &o) {
      return o.kind != xf::Obligation::None && o.likelihood == xf::Zeros::OpenSet;
    });
    xf::LayerOp op = layer.op;
    if (plan.isEmpty() || conditional || !op.getSettingsAttr())
      continue;
    bool anyMet = false;
    std::string why;
    for (uint64_t more = 100; more < 103 && !anyMet; ++more) {
      TrialOptions how;
      how.seed = seed + more;
      how.layer = layer.op;
      how.inputsAreSources = layer.options->inputsAreSources;
      how.update = layer.options->update;
      how.others = 0;
      auto trial = tryPlan(layer.block, plan, how);
      anyMet |= !trial || (!trial->harmful && trial->isExact());
      if (trial)
        why = trialText(*trial);
      else
        llvm::consumeError(trial.takeError()); // not finite
    }
    count("layers with settings of their own");
    EXPECT_TRUE(anyMet) << "layer " << layer.layer << ": " << why;
    if (!anyMet)
      count("false verdicts");
  }
}

/// The proof checker sees by itself what the analysis saw.
void ModelJudge::judgeProof(uint64_t seed, ModuleOp module, ArrayRef<VerdictGroup> groups,
                            const ModelOptions &options) {
  llvm::Expected<proof::Proof> made = makeProof(module, groups, options);
  if (!made) {
    ADD_FAILURE() << llvm::toString(made.takeError());
    return;
  }
  proof::CheckOptions how;
  how.numbers = seed % 10 ? 0 : how.numbers; // most by structure alone
  for (const std::string &problem : checkProof(module, *made, how).problems)
    ADD_FAILURE() << problem;
  if (made->past.empty())
    return;
  made->past.clear();
  EXPECT_FALSE(checkProof(module, *made, how).problems.empty());
  count("proofs that hide a way past the layers, seen");
}

void ModelJudge::run(uint64_t seed, const RandomModel &model, ModuleOp module,
                     ArrayRef<LayerVerdict> verdicts, const ModelVerdict &whole,
                     const ModelOptions &options) {
  auto planOf = [&](xf::LayerOp layer, xf::BlockOp, int64_t) -> std::optional<BlockPlan> {
    for (const LayerVerdict &verdict : verdicts)
      if (verdict.op == layer && !verdict.verdict->plan.isEmpty())
        return verdict.verdict->plan;
    return std::nullopt;
  };
  FailureOr<Program> program = buildProgram(module, planOf, options.update);
  ASSERT_TRUE(succeeded(program));
  std::unique_ptr<Weights> weights = randomWeights(seed);
  std::unique_ptr<Executor> executor = createReferenceExecutor(*program, *weights);
  RunRequest request;
  for (int64_t i = 0; i < 4; ++i)
    request.tokens.push_back(int64_t((seed * 7 + i * i * 3 + i) % model.vocabulary));
  if (seed % 3 == 0)
    request.kept = {int64_t(seed / 3 % 3)};
  request.startLayer = options.startLayer;
  auto norms = programNorms(*program, *weights);
  auto result = verify(*executor, request, 2, *norms, [](const VerifyStep &) {});
  if (!result) {
    std::string why = llvm::toString(result.takeError());
    EXPECT_NE(why.find("not finite"), std::string::npos) << why;
    return count("runs beyond the range of numbers");
  }
  for (const VerifyStep &step : result->steps)
    compare(step, whole);
}

void ModelJudge::compare(const VerifyStep &step, const ModelVerdict &whole) {
  count("tokens");
  for (const LayerReport &layer : step.layers)
    if (layer.obligations.harmful)
      return count("tokens with an obligation that failed");
  if (!(step.allowedLinf < 1e-2))
    return count("tokens with numbers too large to tell");
  bool differ = step.patched.linf > step.allowedLinf;
  if (!whole.isSuccess())
    return count(differ ? "tokens that the context passed to" : "tokens that it hardly passed to");
  EXPECT_LE(step.patched.linf, step.allowedLinf) << "without the patch " << step.control.linf;
  if (differ)
    return count("false verdicts");
  count(step.control.linf > step.allowedLinf ? "tokens shown" : "tokens that need no patch");
}

/// A hidden vector h that is not zero, and ‖h‖² is: the patch is not exact, and says so.
TEST(ModelVerdicts, ALengthThatUnderflowsIsZero) {
  ModelJudge judge;
  judge.judge(101253);
  EXPECT_EQ(judge.counts["tokens with an obligation that failed"], 1);
}

/// A matrix that is read twice, once transposed for a value that reaches no output.
TEST(ModelVerdicts, APatchHasTheFormOfTheOpThatIsPatched) {
  ModelJudge judge;
  judge.judge(22017150);
  judge.judge(22028336);
  EXPECT_EQ(judge.counts["models"], 2);
}

/// Layers that give zero but for roundings: (x + s) − s − x. So are the logits, and they differ in
/// the two runs by as much as themselves.
TEST(ModelVerdicts, LogitsThatAreRoundingsAreAllowedToDiffer) {
  for (uint64_t seed : {25443574, 25635082}) {
    ModelJudge judge;
    judge.judge(seed);
    EXPECT_EQ(judge.counts["that can be patched"], 1);
    EXPECT_EQ(judge.counts["tokens that need no patch"], 2);
    EXPECT_EQ(judge.counts["false verdicts"], 0);
  }
}

constexpr uint64_t modelShards = 8;

struct ModelVerdicts : testing::TestWithParam<int> {};

TEST_P(ModelVerdicts, AreNeverFalse) {
  judgeSeeds<ModelJudge>(
      "models", {GetParam(), modelShards, 300},
      [](ModelJudge &judge, uint64_t seed) { judge.judge(seed); }, 75,
      {"that can be patched", "with folded layers", "layers with settings of their own",
       "with outputs that are not read", "that the context passes", "tokens shown",
       "tokens that the context passed to", "proofs that hide a way past the layers, seen"});
}

INSTANTIATE_TEST_SUITE_P(Seeds, ModelVerdicts, testing::Range(0, int(modelShards)));

} // namespace
