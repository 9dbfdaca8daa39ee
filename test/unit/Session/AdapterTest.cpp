#include "ctxc/Session/Adapter.h"
#include "test/unit/Session/Opened.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

using Names = std::vector<std::string>;

TEST(Adapter, SaysWhichMatricesAreStoredInFirst) {
  auto llama = opened("test/goldens/llama");
  AdapterModel of = llvm::cantFail(adapterModel(*llama));
  EXPECT_EQ(of.modelType, "llama");
  EXPECT_EQ(of.directory, "test/goldens/llama");
  EXPECT_TRUE(of.inFirst.empty());

  LoadOptions options;
  options.planning.parameters = {"mlp.c_fc", "mlp.c_proj"};
  auto gpt2 = opened("test/goldens/gpt2", options);
  AdapterModel transposed = llvm::cantFail(adapterModel(*gpt2));
  EXPECT_TRUE(transposed.inFirst.contains("transformer.h.0.mlp.c_fc.weight"));
  EXPECT_FALSE(transposed.inFirst.contains("transformer.h.0.ln_1.weight"));
}

TEST(Adapter, NamesAPlanOfMatricesAlone) {
  auto gpt2 = opened("test/goldens/gpt2"); // whose default plan has a bias
  EXPECT_EQ(llvm::cantFail(planOfMatrices(*gpt2)), Names({"mlp.c_fc.weight", "mlp.c_proj.weight"}));
  auto gemma = opened("test/goldens/gemma3"); // whose plans all have a scale
  EXPECT_EQ(llvm::cantFail(planOfMatrices(*gemma)), Names());
}

TEST(Adapter, NeedsACheckpoint) {
  LoadOptions options;
  options.weights.seed = 1;
  auto model = opened("examples/01-your-own-block/block.mlir", options);
  llvm::Expected<AdapterModel> of = adapterModel(*model);
  ASSERT_FALSE(bool(of));
  EXPECT_NE(llvm::toString(of.takeError()).find("has no checkpoint"), std::string::npos);
}

} // namespace
