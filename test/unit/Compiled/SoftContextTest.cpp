// Embeddings in place of tokens, in both executors: the tokens' own embeddings give the same
// results as the tokens, bit for bit; other embeddings give other results; bad ones are refused.
#include "Fixture.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

/// The embedding that stands for a token: its row of the table, times the model's factors.
Input rowOf(Model &model, int64_t token) {
  ProgramStep embedding = model.program.steps.front();
  xf::EmbedOp found;
  double factor = 1;
  for (xf::EmbedOp embed : embedding.block.getBody().getOps<xf::EmbedOp>())
    if (embed.getId().getDefiningOp<xf::TokenOp>())
      found = embed;
  for (xf::TimesOp times : embedding.block.getBody().getOps<xf::TimesOp>())
    factor *= times.getFactor().convertToFloat();
  auto param = found.getTable().getDefiningOp<xf::ParamOp>();
  auto type = mlir::cast<mlir::RankedTensorType>(param.getType());
  const void *table =
      llvm::cantFail(model.weights->get(embedding.layer.getStoredName(param.getName()), type));
  std::vector<double> row(type.getDimSize(1));
  readDoubles(storageOf(type.getElementType()), table, token * row.size(), row);
  for (double &x : row)
    x *= factor;
  return Input::ofEmbedding(row);
}

using Inputs = llvm::ArrayRef<Input>;

std::vector<double> allLogits(Executor &executor, Inputs inputs) {
  auto run = executor.start(inputs.size());
  ForwardOptions options;
  options.allLogits = true;
  auto logits = executor.forward(*run, inputs, upTo(inputs.size()), options);
  EXPECT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
  return logits ? *logits : std::vector<double>();
}

PatchStep patchLast(Executor &executor, Inputs inputs) {
  auto full = executor.start(inputs.size()), reduced = executor.start(1);
  EXPECT_EQ(llvm::toString(readContext(executor, *full, inputs)), "");
  auto step = executor.patch(*full, *reduced, inputs.back(), inputs.size() - 1, {});
  EXPECT_TRUE(bool(step)) << llvm::toString(step.takeError());
  return step ? std::move(*step) : PatchStep();
}

void expectEqual(const Patch &found, const Patch &expected) {
  ASSERT_EQ(found.parameters.size(), expected.parameters.size());
  ASSERT_FALSE(found.parameters.empty());
  for (auto [a, b] : llvm::zip(found.parameters, expected.parameters))
    EXPECT_TRUE(a.u == b.u && a.v == b.v && a.delta == b.delta) << a.parameter;
}

struct SoftContext : testing::TestWithParam<std::string> {};

TEST_P(SoftContext, OfTheTokensOwnRowsIsTheTokenContext) {
  Model model(GetParam());
  std::vector<int64_t> tokens = {5, 17, 3, 8, 22, 9};
  std::vector<Input> mixed = toInputs(tokens), all;
  for (int64_t place : {1, 2, 4})
    mixed[place] = rowOf(model, tokens[place]);
  for (int64_t token : tokens)
    all.push_back(rowOf(model, token));
  for (Executor *executor : {model.reference.get(), model.compiled.get()}) {
    ASSERT_NE(executor, nullptr);
    EXPECT_EQ(executor->embeddingWidth(), int64_t(all.front().embedding().size()));
    std::vector<double> expected = allLogits(*executor, toInputs(tokens));
    PatchStep step = patchLast(*executor, toInputs(tokens));
    for (Inputs inputs : {Inputs(mixed), Inputs(all)}) {
      EXPECT_EQ(allLogits(*executor, inputs), expected);
      PatchStep soft = patchLast(*executor, inputs);
      EXPECT_EQ(soft.fullLogits, step.fullLogits);
      EXPECT_EQ(soft.reducedLogits, step.reducedLogits);
      expectEqual(soft.patch, step.patch);
    }
    // The negative control: another embedding is another context.
    mixed[2] = rowOf(model, tokens[2] + 1);
    EXPECT_GT(largestDifference(allLogits(*executor, mixed), expected), 1e-3);
    mixed[2] = rowOf(model, tokens[2]);
  }
}

TEST_P(SoftContext, PatchesOfManyPositionsAreThoseOfTheTokenContext) {
  Model model(GetParam());
  if (model.compiled->isBidirectional())
    return; // its positions cannot be patched in one pass
  std::vector<int64_t> tokens = {5, 17, 3, 8, 22, 9};
  std::vector<Input> mixed = toInputs(tokens);
  for (int64_t place : {0, 2, 3, 5})
    mixed[place] = rowOf(model, tokens[place]);
  for (Executor *executor : {model.reference.get(), model.compiled.get()}) {
    std::vector<Patch> patches[2];
    std::vector<int64_t> seen;
    for (bool soft : {false, true}) {
      auto full = executor->start(tokens.size()), reduced = executor->start(1);
      PatchEachOptions options;
      options.chunk = 4;
      llvm::Error error =
          executor->patchEach(*full, *reduced, soft ? Inputs(mixed) : Inputs(toInputs(tokens)),
                              upTo(tokens.size()), options, [&](const TokenPatch &token) {
                                if (soft)
                                  seen.push_back(token.token);
                                patches[soft].push_back(llvm::cantFail(token.patch()));
                                return llvm::Error::success();
                              });
      ASSERT_EQ(llvm::toString(std::move(error)), "");
    }
    EXPECT_EQ(seen, (std::vector<int64_t>{-1, 17, -1, -1, 22, -1}));
    for (auto [soft, hard] : llvm::zip_equal(patches[1], patches[0]))
      expectEqual(soft, hard);
  }
}

// A factor after the embedding (gemma3, granite), learned positions (gpt2), a projection (opt), a
// norm (bloom), an encoder (bert), none (llama).
INSTANTIATE_TEST_SUITE_P(Families, SoftContext,
                         testing::Values("gemma3", "granite", "gpt2", "opt", "bloom", "bert",
                                         "llama"));

TEST(SoftContext, RefusesRowsThatDoNotFit) {
  Model model("llama");
  int64_t width = *model.compiled->embeddingWidth();
  for (Executor *executor : {model.reference.get(), model.compiled.get()}) {
    auto run = executor->start(4), other = executor->start(4);
    auto refusal = [&](const Input &input) {
      std::string forward =
          llvm::toString(executor->forward(*run, Inputs(input), 0, {}).takeError());
      EXPECT_EQ(llvm::toString(executor->patch(*run, *other, input, 0, {}).takeError()), forward);
      return forward;
    };
    EXPECT_EQ(refusal(Input::ofEmbedding(std::vector<double>(width + 1))),
              "position 0 is given an embedding of " + std::to_string(width + 1) +
                  " numbers, expected " + std::to_string(width) +
                  ", as many as a token's embedding has");
    for (double bad : {double(NAN), double(INFINITY), 1e300}) {
      std::vector<double> row(width);
      row.back() = bad;
      EXPECT_EQ(refusal(Input::ofEmbedding(row)),
                "position 0 is given an embedding with a number that is not finite as float32");
    }
    EXPECT_EQ(run->size(), 0);
    auto none =
        executor->forward(*run, Inputs(Input::ofEmbedding(std::vector<double>(width, 0.5))), 0, {});
    EXPECT_TRUE(bool(none)) << llvm::toString(none.takeError());
  }
}

} // namespace
