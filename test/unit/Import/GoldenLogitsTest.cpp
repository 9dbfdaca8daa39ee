// The imported models compute what transformers' models compute: their logits in the float64
// reference agree with the goldens', which transformers computed in float32.
#include "Fixture.h"
#include "ctxc/Program/Weights.h"
#include "ctxc/Reference/Reference.h"
#include "ctxc/Transforms/BuildProgram.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::test;

namespace {

struct GoldenLogits : testing::TestWithParam<std::string> {};

TEST_P(GoldenLogits, EqualTransformers) {
  mlir::DialectRegistry registry;
  registry.insert<xf::XFDialect, patch::PatchDialect>();
  registerReferenceModels(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  ImportedModel model = cantFail(importModel(golden(GetParam()), context));
  auto unpatched = [](xf::LayerOp, xf::BlockOp, int64_t) { return std::optional<BlockPlan>(); };
  mlir::FailureOr<Program> program =
      buildProgram(*model.module, unpatched, patch::UpdateKind::least);
  ASSERT_TRUE(succeeded(program));
  std::unique_ptr<Weights> weights = checkpointWeights(*model.checkpoint);
  std::unique_ptr<Executor> executor = createReferenceExecutor(*program, *weights);

  auto file = cantFail(SafetensorsFile::open(golden(GetParam()) + "/golden.safetensors"));
  const TensorView *tokenView = file->find("tokens"), *logitView = file->find("logits");
  ASSERT_TRUE(tokenView && logitView);
  std::vector<int64_t> tokens(tokenView->elements()), positions;
  std::memcpy(tokens.data(), tokenView->data, tokenView->bytes);
  for (size_t i = 0; i < tokens.size(); ++i)
    positions.push_back(i);
  std::vector<double> expected(logitView->elements());
  readDoubles(logitView->dtype, logitView->data, expected);

  std::unique_ptr<ctxc::Run> run = executor->start(tokens.size());
  ForwardOptions options;
  options.allLogits = true;
  std::vector<double> logits = cantFail(executor->forward(*run, tokens, positions, options));
  ASSERT_EQ(logits.size(), expected.size());
  double worst = 0, largest = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    ASSERT_TRUE(std::isfinite(logits[i])) << i;
    worst = std::max(worst, std::abs(logits[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  RecordProperty("worst", std::to_string(worst));
  RecordProperty("largest", std::to_string(largest));
  EXPECT_GT(largest, 1);
  EXPECT_LT(worst, 5e-6 * largest);
}

INSTANTIATE_TEST_SUITE_P(Goldens, GoldenLogits, testing::ValuesIn(allGoldens()), goldenTestName);

} // namespace
