// Dual and applied blocks of the families, from plans written by hand: their ops and the order of
// these. The tests of the reference show that they compute the right results.
#include "ctxc/Transforms/BuildPatch.h"
#include "Blocks.h"

using namespace ctxc;
using namespace ctxc::test;
using namespace mlir;
using patch::UpdateKind;

namespace {

std::vector<std::string> storedNames(xf::BlockOp dual) {
  std::vector<std::string> names;
  dual.walk([&](patch::StoreOp op) { names.push_back(op.getParameter().str()); });
  return names;
}

std::vector<std::string> loadedNames(xf::BlockOp applied) {
  std::vector<std::string> names;
  applied.walk([&](patch::LoadOp op) { names.push_back(op.getParameter().str()); });
  return names;
}

std::vector<std::string> plannedNames(const BlockPlan &plan) {
  std::vector<std::string> names;
  for (xf::ParamOp p : plannedParameters(plan))
    names.push_back(p.getName().str());
  return names;
}

/// The op whose result is output `i` of the dual block.
template <typename Op> Op yielded(xf::BlockOp block, unsigned i) {
  return block.getBody().front().getTerminator()->getOperand(i).getDefiningOp<Op>();
}

using Names = std::vector<std::string>;

TEST(BuildPatch, GemmaStoresInBlockOrderWhatTheAppliedBlockLoads) {
  Blocks blocks(gemma());
  ASSERT_TRUE(blocks.module);
  xf::BlockOp block = blocks.block("gemma");
  BlockPlan plan = blocks.plan(block, {"gate.weight", "up.weight"}, "post.norm", "down.weight");
  xf::BlockOp dual = buildDualBlock(block, plan, UpdateKind::least, "gemma_dual");
  xf::BlockOp applied = buildAppliedBlock(block, plan, "gemma_applied");
  ASSERT_TRUE(dual && applied);
  EXPECT_TRUE(succeeded(verify(*blocks.module)));
  Names expected = {"gate.weight", "up.weight", "down.weight", "post.norm"};
  EXPECT_EQ(plannedNames(plan), expected);
  EXPECT_EQ(storedNames(dual), expected);
  EXPECT_EQ(loadedNames(applied), expected);
  EXPECT_EQ(countOps<patch::ApplyRank1Op>(applied), 3);
  EXPECT_EQ(countOps<patch::ApplyDeltaOp>(applied), 1);
}

TEST(BuildPatch, DualRunsBothStreamsAndSharesParameters) {
  Blocks blocks(gemma());
  xf::BlockOp block = blocks.block("gemma");
  BlockPlan plan = blocks.plan(block, {"gate.weight", "up.weight"}, "post.norm", "down.weight");
  xf::BlockOp dual = buildDualBlock(block, plan, UpdateKind::least, "gemma_dual");
  ASSERT_TRUE(dual);
  EXPECT_EQ(dual.getArgumentTypes().size(), 2u);
  EXPECT_EQ(dual.getResultTypes().size(), 2u);
  EXPECT_EQ(countOps<xf::ParamOp>(dual), countOps<xf::ParamOp>(block));
  EXPECT_EQ(countOps<xf::SettingOp>(dual), countOps<xf::SettingOp>(block));
  std::vector<std::optional<xf::Run>> runs;
  dual.walk([&](xf::AttentionOp op) { runs.push_back(op.getStateRun()); });
  EXPECT_EQ(runs, (std::vector<std::optional<xf::Run>>{xf::Run::full, xf::Run::reduced}));
  // Every linear is computed twice, but not a third time where it is patched.
  EXPECT_EQ(countOps<xf::LinearOp>(dual), 2 * countOps<xf::LinearOp>(block));
  EXPECT_EQ(yielded<xf::AddOp>(dual, 0).getLhs().getDefiningOp<xf::AddOp>().getLhs(),
            dual.getBody().getArgument(0));
  EXPECT_EQ(yielded<xf::AddOp>(dual, 1).getLhs().getDefiningOp<xf::AddOp>().getLhs(),
            dual.getBody().getArgument(1));
}

TEST(BuildPatch, PostNormInvertsTheNormForTheMatrixThenSolvesTheScale) {
  Blocks blocks(gemma());
  xf::BlockOp block = blocks.block("gemma");
  BlockPlan plan = blocks.plan(block, {"gate.weight", "up.weight"}, "post.norm", "down.weight");
  xf::BlockOp dual = buildDualBlock(block, plan, UpdateKind::balanced, "gemma_dual");
  ASSERT_TRUE(dual);
  // y = w + (1 + m + Δm) ⊙ Norm(d + u (vᵀ p))
  auto scale = yielded<xf::AddOp>(dual, 1).getRhs().getDefiningOp<xf::ScaleOp>();
  EXPECT_EQ(scale.getOffset().convertToFloat(), 1.0f);
  auto delta = scale.getScale().getDefiningOp<patch::ApplyDeltaOp>();
  auto solve = delta.getDelta().getDefiningOp<patch::SolveScaleOp>();
  EXPECT_EQ(solve.getUpdate(), UpdateKind::balanced);
  EXPECT_EQ(solve.getIndex(), 3u);
  EXPECT_EQ(solve.getData(), scale.getData());
  auto norm = scale.getData().getDefiningOp<xf::NormalizeOp>();
  auto down = norm.getData().getDefiningOp<patch::ApplyRank1Op>();
  auto rank1 = down.getU().getDefiningOp<patch::Rank1Op>();
  EXPECT_EQ(rank1.getCurrent(), down.getBase());
  auto invert = rank1.getTarget().getDefiningOp<patch::InvertRmsNormOp>();
  EXPECT_EQ(invert.getUpdate(), UpdateKind::balanced);
  EXPECT_EQ(invert.getEps().convertToDouble(), 1e-6);
  EXPECT_EQ(invert.getOffset().convertToFloat(), 1.0f);
  EXPECT_EQ(invert.getData(), down.getBase());
  // g = T_C − w, the reduced run's own w.
  auto g = invert.getTarget().getDefiningOp<xf::SubOp>();
  EXPECT_EQ(invert.getTarget(), solve.getTarget());
  EXPECT_EQ(g.getLhs(), yielded<xf::AddOp>(dual, 0).getResult());
  EXPECT_EQ(g.getRhs(), yielded<xf::AddOp>(dual, 1).getLhs());
}

TEST(BuildPatch, NaiveLeavesTheNormMatrixAndStoresAZeroForIt) {
  Blocks blocks(gemma());
  xf::BlockOp block = blocks.block("gemma");
  BlockPlan plan = blocks.plan(block, {"gate.weight", "up.weight"}, "post.norm", "down.weight");
  xf::BlockOp dual = buildDualBlock(block, plan, UpdateKind::naive, "gemma_dual");
  ASSERT_TRUE(dual);
  EXPECT_TRUE(succeeded(verify(*blocks.module)));
  EXPECT_EQ(countOps<patch::InvertRmsNormOp>(dual), 0);
  EXPECT_EQ(storedNames(dual), (Names{"gate.weight", "up.weight", "down.weight", "post.norm"}));
  dual.walk([&](patch::StoreOp op) {
    if (op.getParameter() != "down.weight")
      return;
    auto rank1 = op.getParts()[0].getDefiningOp<patch::Rank1Op>();
    EXPECT_EQ(rank1.getTarget(), rank1.getCurrent());
  });
  auto scale = yielded<xf::AddOp>(dual, 1).getRhs().getDefiningOp<xf::ScaleOp>();
  auto norm = scale.getData().getDefiningOp<xf::NormalizeOp>();
  EXPECT_TRUE(norm.getData().getDefiningOp<xf::LinearOp>());
}

TEST(BuildPatch, LlamaTargetsTheFullRunsOutputs) {
  Blocks blocks(llama());
  xf::BlockOp block = blocks.block("llama");
  BlockPlan plan = blocks.plan(block, {"gate.weight", "up.weight"}, "down.weight");
  xf::BlockOp dual = buildDualBlock(block, plan, UpdateKind::least, "llama_dual");
  ASSERT_TRUE(dual);
  EXPECT_TRUE(succeeded(verify(*blocks.module)));
  SmallVector<patch::Rank1Op> rank1;
  dual.walk([&](patch::Rank1Op op) { rank1.push_back(op); });
  ASSERT_EQ(rank1.size(), 3u);
  for (int i : {0, 1}) {
    // Target and current value are products with the same weight, at z_C and at z.
    auto full = rank1[i].getTarget().getDefiningOp<xf::LinearOp>();
    auto reduced = rank1[i].getCurrent().getDefiningOp<xf::LinearOp>();
    EXPECT_EQ(full.getWeight(), reduced.getWeight());
    EXPECT_EQ(reduced.getData(), rank1[i].getData());
    EXPECT_NE(full.getData(), reduced.getData());
  }
  EXPECT_EQ(rank1[2].getTarget().getDefiningOp<xf::SubOp>().getLhs(),
            yielded<xf::AddOp>(dual, 0).getResult());
  SmallVector<int64_t> counted;
  dual.walk([&](patch::ObligationOp op) { counted.push_back(op.getIndex()); });
  EXPECT_EQ(counted, (SmallVector<int64_t>{0, 1, 2}));
}

TEST(BuildPatch, ParallelBlockPatchesTheOutputAlone) {
  Blocks blocks(parallel());
  xf::BlockOp block = blocks.block("parallel");
  BlockPlan plan = blocks.plan(block, {}, "down.weight");
  xf::BlockOp dual = buildDualBlock(block, plan, UpdateKind::least, "dual");
  xf::BlockOp applied = buildAppliedBlock(block, plan, "applied");
  ASSERT_TRUE(dual && applied);
  EXPECT_TRUE(succeeded(verify(*blocks.module)));
  EXPECT_EQ(storedNames(dual), Names{"down.weight"});
  EXPECT_EQ(loadedNames(applied), Names{"down.weight"});
}

TEST(BuildPatch, BiasesAbsorbByADifferenceAndChainsAreSolvedLinkByLink) {
  Blocks blocks(biased());
  xf::BlockOp block = blocks.block("biased");
  BlockPlan plan = blocks.plan(block, {"fc1.bias"}, "fc2.bias");
  ASSERT_EQ(plan.outputs[0].links.size(), 2u);
  xf::BlockOp dual = buildDualBlock(block, plan, UpdateKind::least, "dual");
  xf::BlockOp applied = buildAppliedBlock(block, plan, "applied");
  ASSERT_TRUE(dual && applied);
  EXPECT_TRUE(succeeded(verify(*blocks.module)));
  EXPECT_EQ(storedNames(dual), (Names{"fc1.bias", "fc2.bias"}));
  // Δb₂ = ((T_C − w) by 2) − (o + b₂)
  auto times = yielded<xf::AddOp>(dual, 1).getRhs().getDefiningOp<xf::TimesOp>();
  auto bias = times.getData().getDefiningOp<xf::BiasOp>();
  auto delta = bias.getBias().getDefiningOp<patch::ApplyDeltaOp>().getDelta();
  auto target = delta.getDefiningOp<xf::SubOp>().getLhs().getDefiningOp<xf::TimesOp>();
  EXPECT_EQ(target.getFactor().convertToFloat(), 2.0f);
  EXPECT_EQ(target.getData().getDefiningOp<xf::SubOp>().getLhs(),
            yielded<xf::AddOp>(dual, 0).getResult());
}

TEST(BuildPatch, ChainThroughBiasAndScaleUsesTheirParameters) {
  Blocks blocks(block("chained", rmsNorm("x", "h", "in.norm") + std::string(attention) +
                                     add("w", "x", "a") + R"(
    %W = xf.param "fc.weight" : tensor<6x6xf32>
    %b = xf.param "fc.bias" : tensor<6xf32>
    %m = xf.param "layerscale" : tensor<6xf32>
    %o = xf.linear %W * %w : tensor<6x6xf32>, tensor<6xf32>
    %t = xf.bias %o + %b : tensor<6xf32>, tensor<6xf32>
    %r = xf.scale %t by %m : tensor<6xf32>, tensor<6xf32>
)" + add("y", "w", "r")));
  xf::BlockOp block = blocks.block("chained");
  BlockPlan plan = blocks.plan(block, {}, "fc.weight");
  ASSERT_EQ(plan.outputs[0].links.size(), 3u);
  xf::BlockOp dual = buildDualBlock(block, plan, UpdateKind::least, "dual");
  ASSERT_TRUE(dual);
  EXPECT_TRUE(succeeded(verify(*blocks.module)));
  EXPECT_EQ(countOps<xf::DivOp>(dual), 1);
}

TEST(BuildPatch, SeveralStreamsAreAllDoubled) {
  Blocks blocks(R"(
  xf.block @two(%x: tensor<6xf32>, %s: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
    %c = xf.contextual "mix"(%x) : (tensor<6xf32>) -> tensor<6xf32>
    %W = xf.param "w" : tensor<6x6xf32>
    %o = xf.linear %W * %c : tensor<6x6xf32>, tensor<6xf32>
    %y = xf.add %s, %o : tensor<6xf32>
    xf.yield %s, %y : tensor<6xf32>, tensor<6xf32>
  }
)");
  xf::BlockOp block = blocks.block("two");
  BlockPlan plan = blocks.plan(block, {}, "w");
  xf::BlockOp dual = buildDualBlock(block, plan, UpdateKind::least, "dual");
  ASSERT_TRUE(dual);
  EXPECT_TRUE(succeeded(verify(*blocks.module)));
  EXPECT_EQ(dual.getArgumentTypes().size(), 4u);
  auto yield = dual.getBody().front().getTerminator();
  EXPECT_EQ(yield->getOperand(0), dual.getBody().getArgument(1));
  EXPECT_EQ(yield->getOperand(2), dual.getBody().getArgument(3));
}

TEST(BuildPatch, ContextualOpsKeepTheirOrderInBothRuns) {
  Blocks blocks(R"(
  xf.block @late(%x: tensor<6xf32>, %s: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
    %c = xf.contextual "first"(%x) : (tensor<6xf32>) -> tensor<6xf32>
    %W = xf.param "w" : tensor<6x6xf32>
    %o = xf.linear %W * %c : tensor<6x6xf32>, tensor<6xf32>
    %y = xf.add %x, %o : tensor<6xf32>
    %e = xf.contextual "after the patch"(%y) : (tensor<6xf32>) -> tensor<6xf32>
    %f = xf.contextual "beside it"(%s) : (tensor<6xf32>) -> tensor<6xf32>
    %z = xf.add %e, %f : tensor<6xf32>
    xf.yield %y, %z : tensor<6xf32>, tensor<6xf32>
  }
)");
  xf::BlockOp block = blocks.block("late");
  BlockPlan plan;
  OutputPatch output;
  output.site = blocks.site(block, "w");
  output.links = {{*output.site->user_begin(), 1}};
  output.goal = output.links[0].op->getResult(0);
  plan.outputs = {output};
  xf::BlockOp dual = buildDualBlock(block, plan, UpdateKind::least, "dual");
  ASSERT_TRUE(dual);
  Names reduced;
  dual.walk([&](xf::OpaqueContextualOp op) {
    if (op.getStateRun() == xf::Run::reduced)
      reduced.push_back(op.getNameAttr().str());
  });
  EXPECT_EQ(reduced, (Names{"first", "after the patch", "beside it"}));
}

TEST(BuildPatch, NamesFollowTheEquations) {
  Blocks blocks(llama());
  xf::BlockOp block = blocks.block("llama");
  Operation *gate = blocks.site(block, "gate.weight");
  gate->setLoc(NameLoc::get(StringAttr::get(&blocks.context, "gate")));
  BlockPlan plan = blocks.plan(block, {"gate.weight", "up.weight"}, "down.weight");
  xf::BlockOp dual = buildDualBlock(block, plan, UpdateKind::least, "dual");
  patch::Rank1Op first;
  dual.walk([&](patch::Rank1Op op) {
    if (!first)
      first = op;
  });
  auto nameOf = [](Location loc) {
    auto name = dyn_cast<NameLoc>(loc);
    return name ? name.getName().str() : "";
  };
  EXPECT_EQ(nameOf(first.getTarget().getLoc()), "gate_C");
  EXPECT_EQ(nameOf(first.getCurrent().getLoc()), "gate_0");
}

/// Builds from a wrong plan, and returns the diagnostic.
std::string refusal(Blocks &blocks, xf::BlockOp block, const BlockPlan &plan) {
  std::string text;
  ScopedDiagnosticHandler handler(&blocks.context, [&](Diagnostic &diag) { text = diag.str(); });
  EXPECT_FALSE(buildDualBlock(block, plan, UpdateKind::least, "dual"));
  EXPECT_FALSE(blocks.block("dual"));
  EXPECT_FALSE(buildAppliedBlock(block, plan, "applied"));
  return text;
}

TEST(BuildPatch, RefusesPlansThatCannotBeBuilt) {
  Blocks blocks(gemma() + parallel());
  xf::BlockOp block = blocks.block("gemma");
  BlockPlan good = blocks.plan(block, {"gate.weight", "up.weight"}, "post.norm", "down.weight");
  BlockPlan plan = good;
  plan.outputs.clear();
  EXPECT_NE(refusal(blocks, block, plan).find("no op planned"), std::string::npos);
  plan = good;
  plan.inputSites.push_back(blocks.site(blocks.block("parallel"), "gate.weight"));
  EXPECT_NE(refusal(blocks, block, plan).find("does not stand"), std::string::npos);
  plan = good;
  plan.outputs[0].links.clear();
  EXPECT_NE(refusal(blocks, block, plan).find("does not end in its goal"), std::string::npos);
  plan = good;
  plan.outputs[0].normMatrix = blocks.site(block, "up.weight");
  EXPECT_NE(refusal(blocks, block, plan).find("matrix before a post-norm"), std::string::npos);
  plan = good;
  plan.inputSites.push_back(plan.outputs[0].site);
  EXPECT_NE(refusal(blocks, block, plan).find("depends on the output site"), std::string::npos);
  plan = good;
  xf::ParamOp gate = plannedParameters(plan).front();
  gate.setFrozen(true);
  EXPECT_NE(refusal(blocks, block, plan).find("'gate.weight' is frozen"), std::string::npos);
}

TEST(BuildPatch, RefusesASharedBias) {
  Blocks blocks(R"(
  xf.block @shared(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %b = xf.param "b" : tensor<3xf32>
    %y = xf.bias %x + %b : tensor<2x3xf32>, tensor<3xf32>
    xf.yield %y : tensor<2x3xf32>
  }
)");
  xf::BlockOp block = blocks.block("shared");
  EXPECT_NE(refusal(blocks, block, blocks.plan(block, {}, "b"))
                .find("serves several vectors of its data"),
            std::string::npos);
}

} // namespace
