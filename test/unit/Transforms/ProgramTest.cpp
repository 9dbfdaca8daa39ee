// Parts of a model before and after its layers become blocks; and whole programs.
#include "Blocks.h"
#include "ctxc/Transforms/BuildPatch.h"
#include "ctxc/Transforms/BuildProgram.h"

using namespace ctxc;
using namespace ctxc::test;
using namespace mlir;

namespace {

xf::ModelOp modelOf(Blocks &blocks) { return *blocks.module->getOps<xf::ModelOp>().begin(); }

/// Checks that every op of the model's body except the last is a layer.
void expectOnlyLayers(xf::ModelOp model) {
  for (Operation &op : model.getBody().front())
    EXPECT_TRUE((isa<xf::LayerOp, xf::YieldOp>(op))) << op.getName().getStringRef().str();
}

TEST(OutlineModelEnds, TiedParametersStandInBothEnds) {
  Blocks blocks(llama() + model("llama"));
  ASSERT_TRUE(blocks.module);
  ASSERT_TRUE(succeeded(outlineModelEnds(modelOf(blocks))));
  EXPECT_TRUE(succeeded(verify(*blocks.module)));
  expectOnlyLayers(modelOf(blocks));
  EXPECT_EQ(countOps<xf::LayerOp>(modelOf(blocks)), 5);
  EXPECT_EQ(countOps<xf::ParamOp>(blocks.block("m_embed")), 1);
  EXPECT_EQ(countOps<xf::ParamOp>(blocks.block("m_head")), 1);
  EXPECT_EQ(blocks.block("m_embed").getArgumentTypes().size(), 0u);
  auto first = *modelOf(blocks).getBody().front().getOps<xf::LayerOp>().begin();
  EXPECT_EQ(first.getStoredName("embed.weight"), "embed.weight");
}

TEST(OutlineModelEnds, IsDoneOnce) {
  Blocks blocks(llama() + model("llama"));
  ASSERT_TRUE(succeeded(outlineModelEnds(modelOf(blocks))));
  ASSERT_TRUE(succeeded(outlineModelEnds(modelOf(blocks))));
  EXPECT_EQ(countOps<xf::LayerOp>(modelOf(blocks)), 5);
}

TEST(OutlineModelEnds, HandsTheEmbeddingToTheHeadAsAStream) {
  Blocks blocks(llama() + R"(
  xf.model @m {
    %id = xf.token : tensor<i32>
    %E = xf.param "embed.weight" : tensor<11x6xf32>
    %S = xf.param "start" : tensor<6xf32>
    %e = xf.embed %E[%id] : tensor<11x6xf32>, tensor<i32>
    %x1 = xf.layer @llama(%S) at "layers.0." : (tensor<6xf32>) -> tensor<6xf32>
    %x2 = xf.layer @llama(%e) at "layers.1." : (tensor<6xf32>) -> tensor<6xf32>
    %r = xf.add %x1, %e : tensor<6xf32>
    %t = xf.add %r, %x2 : tensor<6xf32>
    %b = xf.bias %t + %S : tensor<6xf32>, tensor<6xf32>
    xf.yield %b : tensor<6xf32>
  }
)");
  ASSERT_TRUE(blocks.module);
  ASSERT_TRUE(succeeded(outlineModelEnds(modelOf(blocks))));
  EXPECT_TRUE(succeeded(verify(*blocks.module)));
  expectOnlyLayers(modelOf(blocks));
  EXPECT_EQ(blocks.block("m_embed").getResultTypes().size(), 2u);
  EXPECT_EQ(blocks.block("m_head").getArgumentTypes().size(), 3u);
  // The head's bias stays a parameter.
  EXPECT_EQ(countOps<xf::ParamOp>(blocks.block("m_head")), 1);
}

TEST(OutlineModelEnds, AModelWithoutLayersIsOneStep) {
  Blocks blocks(R"(
  xf.model @m {
    %id = xf.token : tensor<i32>
    %E = xf.param "embed.weight" : tensor<11x6xf32>
    %e = xf.embed %E[%id] : tensor<11x6xf32>, tensor<i32>
    %y = xf.linear %E * %e : tensor<11x6xf32>, tensor<6xf32>
    xf.yield %y : tensor<11xf32>
  }
)");
  ASSERT_TRUE(succeeded(outlineModelEnds(modelOf(blocks))));
  EXPECT_TRUE(succeeded(verify(*blocks.module)));
  expectOnlyLayers(modelOf(blocks));
  EXPECT_TRUE(blocks.block("m_forward"));
}

std::string diagnosticOf(Blocks &blocks) {
  std::string text;
  ScopedDiagnosticHandler handler(&blocks.context, [&](Diagnostic &diag) { text = diag.str(); });
  EXPECT_TRUE(failed(outlineModelEnds(modelOf(blocks))));
  return text;
}

TEST(OutlineModelEnds, RefusesOpsBetweenLayers) {
  std::string text = model("llama");
  text.replace(text.find("%x3 = xf.layer @llama(%x2)"), 26,
               "%xx = xf.add %x2, %x0 : tensor<6xf32>\n    %x3 = xf.layer @llama(%xx)");
  Blocks blocks(llama() + text);
  ASSERT_TRUE(blocks.module);
  EXPECT_NE(diagnosticOf(blocks).find("stands between layers of model 'm'"), std::string::npos);
}

TEST(OutlineModelEnds, RefusesATakenName) {
  std::string taken = llama();
  taken.replace(taken.find("@llama"), 6, "@m_head");
  Blocks blocks(taken + model("m_head"));
  EXPECT_NE(diagnosticOf(blocks).find("'m_head'"), std::string::npos);
}

TEST(BuildProgram, BuildsEachBlockOnceAndCountsLayers) {
  Blocks blocks(llama() + model("llama"));
  auto plan = [&](xf::LayerOp, xf::BlockOp block, int64_t index) -> std::optional<BlockPlan> {
    if (index == 1)
      return std::nullopt;
    return blocks.plan(block, {"gate.weight", "up.weight"}, "down.weight");
  };
  FailureOr<Program> program = buildProgram(*blocks.module, plan, patch::UpdateKind::least);
  ASSERT_TRUE(succeeded(program));
  EXPECT_TRUE(succeeded(verify(*blocks.module)));
  EXPECT_EQ(program->vocabulary, 11);
  EXPECT_EQ(program->layers, 3);
  ASSERT_EQ(program->steps.size(), 5u);
  EXPECT_FALSE(program->steps.front().index || program->steps.back().index);
  EXPECT_EQ(program->steps[1].index, 0);
  EXPECT_EQ(program->steps[3].index, 2);
  EXPECT_TRUE(program->steps[1].dual && program->steps[1].applied);
  EXPECT_EQ(program->steps[1].dual, program->steps[3].dual);
  EXPECT_FALSE(program->steps[2].dual || program->steps[2].applied);
  EXPECT_EQ(countOps<xf::LinearOp>(program->steps[1].dual), 0);
  // llama, its dual and applied blocks, the two ends, and the block for embeddings
  EXPECT_EQ(countOps<xf::BlockOp>(*blocks.module), 6);
  xf::BlockOp ofEmbedding = program->steps.front().ofEmbedding;
  ASSERT_TRUE(ofEmbedding);
  EXPECT_EQ(ofEmbedding.getNumArguments(), 1u);
  EXPECT_EQ(countOps<xf::EmbedOp>(ofEmbedding), 0);
  EXPECT_EQ(countOps<xf::ParamOp>(ofEmbedding), 0);
}

TEST(BuildProgram, HasNoPlaceForARowWhereTheTokenIsReadTwice) {
  std::string text = model("llama"), scaled = "xf.times %e by 2.449490e+00 :";
  size_t at = text.find(scaled);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, scaled.size(), "xf.add %e, %again :");
  text.insert(text.find("%x0 ="), "%again = xf.embed %E[%id] : tensor<11x6xf32>, tensor<i32>\n");
  Blocks blocks(llama() + text);
  auto none = [](xf::LayerOp, xf::BlockOp, int64_t) { return std::optional<BlockPlan>(); };
  FailureOr<Program> program = buildProgram(*blocks.module, none, patch::UpdateKind::least);
  ASSERT_TRUE(succeeded(program));
  EXPECT_FALSE(program->steps.front().ofEmbedding);
}

TEST(BuildProgram, DifferentPlansOfABlockGetBlocksOfTheirOwn) {
  Blocks blocks(llama() + model("llama"));
  auto plan = [&](xf::LayerOp, xf::BlockOp block, int64_t index) {
    return index == 0 ? blocks.plan(block, {}, "down.weight")
                      : blocks.plan(block, {"gate.weight", "up.weight"}, "down.weight");
  };
  FailureOr<Program> program = buildProgram(*blocks.module, plan, patch::UpdateKind::least);
  ASSERT_TRUE(succeeded(program));
  EXPECT_NE(program->steps[1].dual, program->steps[2].dual);
  EXPECT_EQ(program->steps[2].dual, program->steps[3].dual);
}

TEST(BuildPatchBlocks, NeedsNoModel) {
  Blocks blocks(llama() + gemma());
  ASSERT_TRUE(succeeded(buildPatchBlocks(*blocks.module, {})));
  EXPECT_TRUE(succeeded(verify(*blocks.module)));
  for (const char *name : {"llama_dual", "llama_applied", "gemma_dual", "gemma_applied"})
    EXPECT_TRUE(blocks.block(name)) << name;
  EXPECT_EQ(countOps<xf::LinearOp>(blocks.block("gemma_dual")), 0);
}

TEST(BuildProgram, NeedsOneModel) {
  Blocks blocks(llama());
  std::string text;
  ScopedDiagnosticHandler handler(&blocks.context, [&](Diagnostic &diag) { text = diag.str(); });
  auto none = [](xf::LayerOp, xf::BlockOp, int64_t) { return std::optional<BlockPlan>(); };
  EXPECT_TRUE(failed(buildProgram(*blocks.module, none, patch::UpdateKind::least)));
  EXPECT_NE(text.find("found 0 xf.model ops, expected one"), std::string::npos);
}

} // namespace
