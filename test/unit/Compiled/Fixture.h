// A model that is ready to run with both executors.
#ifndef CTXC_TEST_UNIT_COMPILED_FIXTURE_H
#define CTXC_TEST_UNIT_COMPILED_FIXTURE_H

#include "ctxc/Checkpoint/Checkpoint.h"
#include "ctxc/Checkpoint/DType.h"
#include "ctxc/Checkpoint/Safetensors.h"
#include "ctxc/Import/Import.h"
#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Planning/Planner.h"
#include "ctxc/Reference/Reference.h"
#include "ctxc/Runtime/CompiledExecutor.h"
#include "ctxc/Transforms/BuildProgram.h"
#include "mlir/IR/MLIRContext.h"
#include "test/unit/Goldens.h"
#include "gtest/gtest.h"

namespace ctxc::test {

struct Model {
  explicit Model(const std::string &name, patch::UpdateKind update = patch::UpdateKind::least,
                 std::optional<DType> storage = {}, bool compile = true) {
    mlir::DialectRegistry registry;
    registerCodegenDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    directory = test::golden(name);
    auto model = importModel(directory, context, {storage, true});
    if (!model) {
      ADD_FAILURE() << llvm::toString(model.takeError());
      return;
    }
    imported = std::move(*model);
    weights = checkpointWeights(*imported.checkpoint);
    auto made = buildProgram(
        *imported.module,
        [&](xf::LayerOp, xf::BlockOp block, int64_t) -> std::optional<BlockPlan> {
          PlanOptions options;
          options.update = update;
          if (isMixerAlone(block)) // it has no other parameters
            options.scope = SiteScope::All;
          Verdict verdict = planBlock(block, options);
          EXPECT_TRUE(verdict.isSuccess());
          return verdict.plan;
        },
        update);
    EXPECT_TRUE(mlir::succeeded(made));
    program = *made;
    reference = createReferenceExecutor(program, *weights);
    if (!compile)
      return;
    auto built = createCompiledExecutor(program, *weights, {2});
    if (!built)
      ADD_FAILURE() << llvm::toString(built.takeError());
    else
      compiled = std::move(*built);
  }

  /// The tokens, and transformers' logits (tokens × vocabulary).
  std::pair<std::vector<int64_t>, std::vector<double>> golden() const {
    auto file = SafetensorsFile::open(directory + "/golden.safetensors");
    if (!file) {
      ADD_FAILURE() << llvm::toString(file.takeError());
      return {};
    }
    std::vector<int64_t> tokens;
    std::vector<double> logits;
    for (const TensorView &tensor : (*file)->tensors()) {
      if (tensor.name == "tokens") {
        tokens.resize(tensor.bytes / 8);
        memcpy(tokens.data(), tensor.data, tensor.bytes);
      } else {
        logits.resize(tensor.bytes / 4);
        readDoubles(tensor.dtype, tensor.data, logits);
      }
    }
    return {tokens, logits};
  }

  /// Whether a block has one residual branch, which reads the context.
  static bool isMixerAlone(xf::BlockOp block) {
    return llvm::range_size(block.getBody().getOps<xf::NormalizeOp>()) == 1 &&
           !block.getBody().getOps<xf::LinearAttentionOp>().empty();
  }

  std::string directory;
  mlir::MLIRContext context;
  ImportedModel imported;
  std::unique_ptr<Weights> weights;
  Program program;
  std::unique_ptr<Executor> reference, compiled;
};

inline double largestDifference(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

inline std::vector<int64_t> upTo(int64_t n) {
  std::vector<int64_t> positions(n);
  for (int64_t i = 0; i < n; ++i)
    positions[i] = i;
  return positions;
}

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_COMPILED_FIXTURE_H
