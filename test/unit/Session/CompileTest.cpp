// Model::compile and Model::cost.
#include "ctxc/Session/Compile.h"
#include "ctxc/Session/Model.h"
#include "test/unit/Session/Opened.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

std::unique_ptr<Model> structure(llvm::StringRef path) {
  LoadOptions options;
  options.needWeights = false;
  return opened(path, options);
}

/// A processor whose code is compiled with the least effort.
CpuTarget processor(llvm::StringRef name) {
  CpuTarget target = llvm::cantFail(CpuTarget::named(name));
  target.optimisation = 0;
  return target;
}

std::string problem(const CompileOptions &options) {
  return llvm::toString(checkCompileOptions(options));
}

TEST(Compile, GivesAnObjectFileWithItsInterface) {
  auto model = structure("test/goldens/gemma3");
  CompileOptions options;
  options.processor = processor("x86-64-v3");
  options.prefix = "mine";
  auto made = model->compile(options);
  ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(made->code, "code"));
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  std::vector<std::string> entries;
  for (const llvm::object::SymbolRef &symbol : (*file)->symbols())
    if (llvm::cantFail(symbol.getFlags()) & llvm::object::SymbolRef::SF_Global)
      entries.push_back(llvm::cantFail(symbol.getName()).str());
  auto manifest = llvm::json::parse(made->manifest);
  ASSERT_TRUE(bool(manifest)) << llvm::toString(manifest.takeError());
  const llvm::json::Array *kernels = manifest->getAsObject()->getArray("kernels");
  ASSERT_TRUE(kernels && !kernels->empty());
  for (const llvm::json::Value &kernel : *kernels) {
    std::string name = kernel.getAsObject()->getString("name")->str();
    EXPECT_TRUE(llvm::StringRef(name).starts_with("mine_")) << name;
    EXPECT_TRUE(llvm::is_contained(entries, name)) << name;
    EXPECT_NE(made->header.find(name + "("), std::string::npos) << name;
  }
}

/// A compilation leaves the model as it was: it can be compiled again with the same result, and
/// planned.
TEST(Compile, GivesEachStage) {
  auto model = structure("test/goldens/llama");
  for (auto [stage, part] : {std::pair{CodeStage::Linalg, "linalg."},
                             {CodeStage::LLVM, "target triple"},
                             {CodeStage::Assembly, ".globl"}}) {
    CompileOptions options;
    options.stage = stage;
    options.processor = processor("x86-64-v2");
    auto made = model->compile(options);
    ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
    EXPECT_NE(made->code.find(part), std::string::npos);
    EXPECT_TRUE(made->header.empty() && made->manifest.empty());
    EXPECT_EQ(llvm::cantFail(model->compile(options)).code, made->code);
  }
  CompileOptions options;
  options.gpu = llvm::cantFail(GpuTarget::named("cuda:sm_90"));
  options.stage = CodeStage::GpuCode;
  auto made = model->compile(options);
  ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
  EXPECT_NE(made->code.find(".target sm_90"), std::string::npos);
}

/// Remarks are given on request, as diagnostics.
TEST(Compile, RemarksAreDiagnostics) {
  auto model = structure("test/goldens/gemma3");
  CompileOptions options;
  options.stage = CodeStage::LLVM;
  options.processor = processor("x86-64-v3");
  auto count = [&] {
    EXPECT_TRUE(bool(model->compile(options)));
    return llvm::count_if(model->takeDiagnostics(), [](const ModelDiagnostic &diagnostic) {
      return diagnostic.severity == mlir::DiagnosticSeverity::Remark;
    });
  };
  EXPECT_EQ(count(), 0);
  options.remarks = true;
  EXPECT_GT(count(), 0);
  options.remarks = false;
  EXPECT_EQ(count(), 0);
}

TEST(Compile, CountsWhatATokenCosts) {
  auto model = structure("test/goldens/llama");
  CompileOptions options;
  options.stage = CodeStage::Gpu;
  options.gpu = llvm::cantFail(GpuTarget::named("cuda:sm_90"));
  CostOptions at;
  at.bandwidth = 1e12;
  auto costs = model->cost(options, at);
  ASSERT_TRUE(bool(costs)) << llvm::toString(costs.takeError());
  ASSERT_EQ(costs->tokens.size(), 3u);
  for (const TokenCost &token : costs->tokens) {
    int64_t launches = 0;
    for (auto &[name, times] : token.times)
      launches += times;
    EXPECT_EQ(launches, token.cost.launches) << token.key;
    EXPECT_DOUBLE_EQ(token.cost.seconds, token.cost.bytes() / 1e12) << token.key;
  }
  // Every weight is read once, also where both runs go together.
  EXPECT_EQ(costs->tokens[0].key, "forward");
  EXPECT_GT(costs->tokens[0].cost.weights, 0);
  EXPECT_LT(costs->tokens[2].cost.weights, 1.2 * costs->tokens[0].cost.weights);
}

TEST(Compile, SaysWhichOptionIsWrong) {
  CompileOptions options;
  EXPECT_EQ(problem(options), "");
  options.prefix = "2b";
  EXPECT_EQ(problem(options), "prefix: found '2b', expected a C identifier: letters, digits and _, "
                              "no digit first");
  options = {};
  options.rows = 8;
  EXPECT_EQ(problem(options), "rows: applies to kernels for GPUs");
  options.stage = CodeStage::GpuCode;
  EXPECT_EQ(problem(options), "target: expected a GPU: " + GpuTarget::names());
  options.gpu = llvm::cantFail(GpuTarget::named("vulkan"));
  EXPECT_EQ(problem(options), "");
  options.rows = 5000;
  EXPECT_EQ(problem(options), "rows: found '5000', expected a number from 1 to 4096");
  options.rows = 32;
  options.prompts = PromptProducts::Rounded;
  EXPECT_EQ(problem(options), "rounded prompts: rounds nothing in kernels of vulkan:8; expected "
                              "more rows and a target that has products of bfloat16: cuda:sm_80, "
                              "cuda:sm_90");
  options.prompts = PromptProducts::Exact;
  options.stage = CodeStage::Assembly;
  EXPECT_EQ(problem(options), "target: found 'vulkan:8', expected a processor");
  auto model = structure("test/goldens/llama");
  options = {};
  EXPECT_EQ(llvm::toString(model->cost(options, {}).takeError()),
            "target: expected a GPU: " + GpuTarget::names());
}

} // namespace
