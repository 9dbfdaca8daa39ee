// Ranks that share each layer compute what one computes: logits and patches.
#include "TensorRanks.h"
#include "test/unit/Goldens.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::test;

namespace {

/// A checkpoint, and how many ranks can share it.
struct Shared {
  const char *name;
  int64_t ranks;
  double within = 1e-4; ///< of transformers' logits
};

struct Tensor : testing::TestWithParam<Shared> {};

double norm(llvm::ArrayRef<double> x) {
  double squares = 0;
  for (double each : x)
    squares += each * each;
  return std::sqrt(squares);
}

/// Factors within 1e-4 of their norm, whatever their order. The change of a scale or a bias is a
/// quotient or a difference of values, which rounding changes more.
void expectSamePatch(const Patch &found, const Patch &expected) {
  EXPECT_EQ(found.parameters.size(), expected.parameters.size());
  for (const ParameterPatch &wanted : expected.parameters) {
    auto same = llvm::find_if(found.parameters, [&](const ParameterPatch &each) {
      return each.parameter == wanted.parameter;
    });
    ASSERT_NE(same, found.parameters.end()) << wanted.parameter;
    EXPECT_EQ(same->shape, wanted.shape);
    for (auto part : {&ParameterPatch::u, &ParameterPatch::v, &ParameterPatch::delta}) {
      const std::vector<double> &a = (*same).*part, &b = wanted.*part;
      ASSERT_EQ(a.size(), b.size()) << wanted.parameter;
      std::vector<double> apart;
      for (auto [x, y] : llvm::zip(a, b))
        apart.push_back(x - y);
      const bool isDelta = wanted.kind == ParameterPatch::Kind::Delta;
      EXPECT_LE(norm(apart), isDelta ? 3e-4 * norm(b) + 1e-5 : 1e-4 * norm(b)) << wanted.parameter;
    }
  }
}

struct Made {
  std::vector<double> all, patched, full, reduced;
  PatchStep step;
  std::vector<Given> each;
};

/// What can be asked of a model.
Made runAll(Executor &executor, llvm::ArrayRef<int64_t> tokens) {
  Made made;
  auto take = [](auto result) {
    EXPECT_TRUE(bool(result)) << llvm::toString(result.takeError());
    return std::move(*result);
  };
  ForwardOptions all;
  all.allLogits = true;
  auto first = executor.start(tokens.size());
  made.all = take(executor.forward(*first, tokens, upTo(tokens.size()), all));
  auto full = executor.start(tokens.size() + 1), reduced = executor.start(1);
  if (llvm::Error error = readContext(executor, *full, tokens))
    ADD_FAILURE() << llvm::toString(std::move(error));
  const int64_t position = tokens.size() - 1;
  made.step = take(executor.patch(*full, *reduced, tokens.back(), position, {}));
  ForwardOptions patched;
  patched.patch = &made.step.patch;
  made.patched = take(executor.forward(*executor.start(1), tokens.back(), position, patched));
  if (!executor.isBidirectional())
    made.each = patchAll(executor, tokens, {}, 2, {0, true});
  return made;
}

TEST_P(Tensor, RanksGiveWhatOneGives) {
  Model model(GetParam().name);
  TensorRanks ranks(model, GetParam().ranks);
  ASSERT_EQ(ranks.refusal, "");
  auto [tokens, expected] = model.golden();
  const Made one = runAll(*model.compiled, tokens);
  const std::vector<Made> several = ranks.each<Made>(
      [&, &tokens = tokens](Executor &executor) { return runAll(executor, tokens); });
  // The first rank has the logits.
  EXPECT_LE(largestDifference(several.front().all, expected), GetParam().within);
  EXPECT_LE(largestDifference(several.front().patched, one.patched), 1e-4);
  EXPECT_LE(
      largestDifference(several.front().step.fullLogits.doubles(), one.step.fullLogits.doubles()),
      1e-4);
  for (const Made &made : several) {
    expectSamePatch(made.step.patch, one.step.patch);
    for (auto [found, wanted] : llvm::zip_equal(made.step.obligations, one.step.obligations)) {
      EXPECT_EQ(found.harmless, wanted.harmless);
      EXPECT_EQ(found.harmful, wanted.harmful);
    }
    // Rounding itself, which is predicted to within a factor.
    for (auto [found, wanted] : llvm::zip_equal(made.step.replayError, one.step.replayError)) {
      EXPECT_LE(found, 2 * wanted);
      EXPECT_LE(wanted, 2 * found);
    }
    for (auto [found, wanted] : llvm::zip_equal(made.each, one.each))
      expectSamePatch(found.patch, wanted.patch);
    // Bit for bit the same on every rank.
    EXPECT_EQ(made.step.replayError, several.front().step.replayError);
  }
}

// Other families are run by ranks of MPI (test/shard).
INSTANTIATE_TEST_SUITE_P(Goldens, Tensor,
                         testing::Values(Shared{"gemma3", 2}, Shared{"gpt2", 3},
                                         // heads that they cannot share evenly
                                         Shared{"llama-bias", 2}, Shared{"gemma2", 2},
                                         Shared{"mixtral", 2}, Shared{"phi3", 2}, Shared{"bert", 3},
                                         Shared{"falcon-h1", 2},
                                         // transformers computes the delta rule in chunks
                                         Shared{"qwen3-next", 2, 5e-4}),
                         [](const testing::TestParamInfo<Shared> &info) {
                           std::string name = info.param.name;
                           llvm::replace(name, '-', '_');
                           return name;
                         });

/// The first ranks have one unit more in each piece.
TEST(Cut, UnitsAreWhole) {
  const shard::Cut cut{/*before=*/1, /*behind=*/1, /*pieces=*/{9, 6}, /*ranks=*/2, /*units=*/3};
  EXPECT_EQ(cut.extent(0), 6 + 4);
  EXPECT_EQ(cut.extent(1), 3 + 2);
}

TEST(Cut, PartsMakeUpTheWhole) {
  for (int64_t ranks : {1, 2, 3, 4}) {
    const shard::Cut cut{/*before=*/2, /*behind=*/3, /*pieces=*/{7, 5, 4}, ranks};
    std::vector<int> seen(cut.wholeSize());
    int64_t least = cut.wholeSize(), most = 0;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      int64_t inPart = 0;
      cut.visitRuns(rank, [&](int64_t inWhole, int64_t at, int64_t count) {
        EXPECT_EQ(at, inPart);
        for (int64_t i = 0; i < count; ++i)
          ++seen[inWhole + i];
        inPart += count;
      });
      EXPECT_EQ(inPart, cut.partSize(rank));
      EXPECT_EQ(inPart, 2 * cut.extent(rank) * 3);
      least = std::min(least, cut.extent(rank));
      most = std::max(most, cut.extent(rank));
    }
    EXPECT_EQ(seen, std::vector<int>(cut.wholeSize(), 1));
    EXPECT_LE(most - least, 3); // an entry of each piece
  }
}

/// The heads of linear attentions on one of `ranks` ranks, in the model's blocks.
std::vector<int64_t> headsOfOne(const char *name, int64_t ranks) {
  Model model(name, patch::UpdateKind::least, {}, /*compile=*/false);
  mlir::DialectRegistry registry;
  shard::registerSplitModels(registry);
  model.context.appendDialectRegistry(registry);
  shard::LocalBlocks blocks(model.context, 0, ranks);
  EXPECT_EQ(llvm::toString(blocks.add(model.program)), "");
  std::vector<int64_t> heads;
  for (ProgramStep step : model.program.steps)
    if (const shard::LocalBlock *local = blocks.find(step.block))
      for (shard::Segment segment : local->segments)
        if (segment.block)
          segment.block.walk([&](xf::LinearAttentionOp op) {
            auto value = mlir::cast<mlir::RankedTensorType>(op.getValue().getType());
            heads.push_back(value.getDimSize(0));
          });
  return heads;
}

TEST(TensorMixers, RanksHaveTheirHeadsOfLinearAttention) {
  for (auto [name, ranks, expected] : {std::tuple("qwen3-next", 2, 2), {"falcon-h1", 2, 3}}) {
    std::vector<int64_t> heads = headsOfOne(name, ranks);
    EXPECT_FALSE(heads.empty()) << name;
    for (int64_t found : heads)
      EXPECT_EQ(found, expected) << name << " on " << ranks;
  }
}

TEST(TensorRefusals, MoreRanksThanHeads) {
  Model model("llama", patch::UpdateKind::least, {}, /*compile=*/false);
  for (int ranks : {3, 8})
    EXPECT_EQ(TensorRanks(model, ranks).refusal,
              "tensor=" + std::to_string(ranks) +
                  ": block 'llama' has 6 heads over 2 of keys, which " + std::to_string(ranks) +
                  " ranks cannot share; expected no more ranks than 2");
}

} // namespace
