// What of a model's body depends on the context, where layers from a start layer on are patched.
#include "ctxc/Analysis/ModelFlow.h"
#include "ctxc/Proof/Body.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace ctxc;
using namespace mlir;

namespace {

constexpr StringLiteral blocks = R"(
  xf.block @mix(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = xf.contextual "attention"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %y = xf.add %x, %a : tensor<4xf32>
    xf.yield %y : tensor<4xf32>
  }
  xf.block @mlp(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = xf.activation gelu %x : tensor<4xf32>
    xf.yield %y : tensor<4xf32>
  }
  xf.block @cross(%x: tensor<4xf32>, %s: tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %a = xf.contextual "attention"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %y = xf.activation gelu %s : tensor<4xf32>
    xf.yield %a, %x, %y : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
)";

/// A model of `layers` layers after the embedding %x, which ends in `body`.
class Parsed {
public:
  explicit Parsed(const std::string &body) {
    context.loadDialect<xf::XFDialect>();
    module =
        parseSourceString<ModuleOp>(blocks.str() +
                                        "xf.model @m {\n"
                                        "%E = xf.param \"embed\" : tensor<9x4xf32>\n"
                                        "%t = xf.token : tensor<i32>\n"
                                        "%x = xf.embed %E[%t] : tensor<9x4xf32>, tensor<i32>\n" +
                                        body + "}\n",
                                    &context);
    EXPECT_TRUE(module) << body;
  }
  xf::ModelOp model() { return *module->getOps<xf::ModelOp>().begin(); }
  SmallVector<xf::LayerOp> layers() {
    return llvm::to_vector(model().getBody().getOps<xf::LayerOp>());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

std::string layer(const char *block, const char *in, const char *out) {
  return std::string(out) + " = xf.layer @" + block + "(" + in +
         ") at \"\" : (tensor<4xf32>) -> tensor<4xf32>\n";
}

/// Both followers agree, and say of the logits what is expected.
void expectLogits(Parsed &parsed, unsigned startLayer, bool depend) {
  ModelFlow flow(parsed.model(), startLayer);
  proof::Body body(*parsed.module, startLayer);
  EXPECT_EQ(flow.depends(flow.logits()), depend) << "start layer " << startLayer;
  EXPECT_EQ(flow.sourcesOfLogits().empty(), !depend) << "start layer " << startLayer;
  for (Operation &op : parsed.model().getBody().front())
    for (Value result : op.getResults())
      EXPECT_EQ(flow.depends(result), body.depends(result)) << body.nameOf(result);
  for (Operation *source : flow.sourcesOfLogits()) {
    proof::Names path;
    for (Value value : flow.path(source))
      path.push_back(body.nameOf(value));
    EXPECT_EQ(checkPast(body, path), std::vector<std::string>());
  }
  EXPECT_EQ(checkPast(body, {}).empty(), !depend);
}

TEST(ModelFlow, PatchedLayersStopTheContext) {
  Parsed parsed(layer("mix", "%x", "%1") + layer("mix", "%1", "%2") +
                "xf.yield %2 : tensor<4xf32>\n");
  expectLogits(parsed, 0, false);
  expectLogits(parsed, 1, false);
  expectLogits(parsed, 2, true);
  ModelFlow flow(parsed.model(), 1);
  EXPECT_FALSE(bool(flow.sources(parsed.layers()[0])));
  EXPECT_TRUE(flow.sources(parsed.layers()[1]).contains(0));
  EXPECT_TRUE(flow.isUnpatched(parsed.layers()[0]));
  EXPECT_FALSE(flow.isUnpatched(parsed.layers()[1]));
}

TEST(ModelFlow, AnUnpatchedLayerWithoutContextPassesNothing) {
  Parsed parsed(layer("mlp", "%x", "%1") + layer("mix", "%1", "%2") +
                "%l = xf.add %1, %2 : tensor<4xf32>\nxf.yield %l : tensor<4xf32>\n");
  expectLogits(parsed, 1, false);
  ModelFlow flow(parsed.model(), 1);
  EXPECT_FALSE(bool(flow.sources(parsed.layers()[1])));
}

TEST(ModelFlow, ASkipPastAPatchedLayer) {
  Parsed parsed(layer("mix", "%x", "%1") + layer("mix", "%1", "%2") +
                "%l = xf.add %1, %2 : tensor<4xf32>\nxf.yield %l : tensor<4xf32>\n");
  expectLogits(parsed, 0, false);
  expectLogits(parsed, 1, true);
  ModelFlow flow(parsed.model(), 1);
  EXPECT_EQ(flow.sourcesOfLogits(), SmallVector<Operation *>{parsed.layers()[0]});
}

TEST(ModelFlow, OutputsOfAnUnpatchedLayerDependEachOnItsOwn) {
  const char *outputs[] = {"%1#0", "%1#1", "%1#2"};
  for (unsigned i = 0; i < 3; ++i) {
    Parsed parsed("%1:3 = xf.layer @cross(%x, %x) at \"\" : (tensor<4xf32>, tensor<4xf32>) -> "
                  "(tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)\n" +
                  layer("mix", outputs[i], "%2") + "xf.yield " + outputs[i] + " : tensor<4xf32>\n");
    expectLogits(parsed, 1, i == 0);
    EXPECT_EQ(ModelFlow(parsed.model(), 1).sources(parsed.layers()[1]).contains(0), i == 0);
  }
}

TEST(ModelFlow, InputsOfAnUnpatchedLayerReachTheOutputsThatReadThem) {
  for (bool first : {false, true}) {
    Parsed parsed(layer("mix", "%x", "%1") + "%2:3 = xf.layer @cross(" +
                  (first ? "%1, %x" : "%x, %1") +
                  ") at \"\" : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, "
                  "tensor<4xf32>)\nxf.yield %2#2 : tensor<4xf32>\n");
    expectLogits(parsed, 2, !first);
    expectLogits(parsed, 1, false);
    // Of the patched layer the one input depends, and the other does not.
    InputSources sources = ModelFlow(parsed.model(), 1).sources(parsed.layers()[1]);
    EXPECT_EQ(sources.contains(0), first);
    EXPECT_EQ(sources.contains(1), !first);
  }
}

TEST(ModelFlow, EverySourceHasItsPath) {
  Parsed parsed("%c = xf.contextual \"a\"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
                "%d = xf.contextual \"b\"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
                "%unread = xf.contextual \"c\"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n" +
                layer("mix", "%d", "%1") +
                "%s = xf.add %1, %c : tensor<4xf32>\n%l = xf.mul %s, %d : tensor<4xf32>, "
                "tensor<4xf32>\nxf.yield %l : tensor<4xf32>\n");
  expectLogits(parsed, 0, true);
  ModelFlow flow(parsed.model(), 0);
  SmallVector<Operation *> sources = flow.sourcesOfLogits();
  ASSERT_EQ(sources.size(), 2u);
  EXPECT_EQ(flow.path(sources[0]).size(), 3u); // c, s, l
  EXPECT_EQ(flow.path(sources[1]).size(), 2u); // d, l
  EXPECT_TRUE(flow.sources(parsed.layers()[0]).contains(0));
}

} // namespace
