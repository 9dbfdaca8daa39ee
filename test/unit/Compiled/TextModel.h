// A model from text with random weights, ready to run with both executors.
#ifndef CTXC_TEST_UNIT_COMPILED_TEXTMODEL_H
#define CTXC_TEST_UNIT_COMPILED_TEXTMODEL_H

#include "BlockText.h"
#include "Fixture.h"
#include "ctxc/Transforms/BuildProgram.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <cstdlib>

namespace ctxc::test {

class TextModel {
public:
  explicit TextModel(std::string source, uint64_t seed = 1, int threads = 2, bool planned = false)
      : TextModel(std::move(source), randomWeights(seed), threads, planned) {}
  TextModel(std::string source, std::unique_ptr<Weights> given, int threads = 2,
            bool planned = false)
      : text(std::move(source)), weights(std::move(given)), threads(threads) {
    mlir::DialectRegistry registry;
    registerCodegenDialects(registry);
    registerReferenceModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context, "test.mlir");
    if (!module) {
      ADD_FAILURE() << "does not parse:\n" << text;
      return;
    }
    auto planOf = [&](xf::LayerOp, xf::BlockOp block, int64_t) -> std::optional<BlockPlan> {
      if (!planned)
        return std::nullopt;
      Verdict verdict = planBlock(block);
      if (!verdict.isSuccess() || verdict.plan.isEmpty())
        return std::nullopt;
      ++plans;
      return verdict.plan;
    };
    auto made = buildProgram(*module, planOf, patch::UpdateKind::least);
    if (mlir::failed(made)) {
      ADD_FAILURE() << "no program of:\n" << text;
      return;
    }
    program = *made;
    reference = createReferenceExecutor(program, *weights);
  }

  /// Compiles the model. Takes kernels from the cache only if `cached`. Returns the text of the
  /// error, or an empty string.
  std::string compile(bool cached = false) {
    if (!reference)
      return "there is no program";
    if (cached)
      ::unsetenv("CTXC_KERNEL_CACHE");
    else
      ::setenv("CTXC_KERNEL_CACHE", "off", /*overwrite=*/1);
    auto built = createCompiledExecutor(program, *weights, {threads, prompts});
    if (!built)
      return llvm::toString(built.takeError());
    compiled = std::move(*built);
    return "";
  }

  std::string text;
  mlir::MLIRContext context;
  std::unique_ptr<Weights> weights;
  int threads;
  PromptProducts prompts = PromptProducts::Exact;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Program program;
  int plans = 0; ///< how many layers have a plan
  std::unique_ptr<Executor> reference, compiled;
};

/// The root mean square of a, or of a − b.
inline double rootMeanSquare(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b = {}) {
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i)
    squares += (a[i] - (b.empty() ? 0 : b[i])) * (a[i] - (b.empty() ? 0 : b[i]));
  return std::sqrt(squares / a.size());
}

/// The results of a call: the outputs of every layer, and all logits.
struct Seen {
  std::vector<std::vector<double>> layers;
  std::vector<double> logits;
};

inline Seen see(Executor &executor, Run &run, llvm::ArrayRef<int64_t> tokens,
                llvm::ArrayRef<int64_t> positions) {
  Seen seen;
  ForwardOptions options;
  options.allLogits = true;
  options.observer = [&](int64_t, llvm::ArrayRef<double> rows, int64_t) {
    seen.layers.push_back(rows.vec());
  };
  auto logits = executor.forward(run, tokens, positions, options);
  if (!logits)
    ADD_FAILURE() << llvm::toString(logits.takeError());
  else
    seen.logits = std::move(*logits);
  return seen;
}

/// The largest |a − b| / max(1, |b|).
inline double relativeDifference(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    double difference = std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i]));
    largest = difference <= largest ? largest : difference; // keeps a NaN
  }
  return largest;
}

inline void expectSame(const Seen &found, const Seen &expected, double tolerance,
                       const std::string &what) {
  ASSERT_EQ(found.layers.size(), expected.layers.size()) << what;
  for (size_t i = 0; i < found.layers.size(); ++i)
    EXPECT_LE(relativeDifference(found.layers[i], expected.layers[i]), tolerance)
        << what << ", layer " << int64_t(i) - 1;
  EXPECT_LE(relativeDifference(found.logits, expected.logits), tolerance) << what << ", logits";
}

inline std::vector<int64_t> someTokens(int64_t count, int64_t seed) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back((seed * 7 + i * i * 5 + i) % kVocabulary);
  return tokens;
}

/// Compares both executors on 1, 2, 3 and 5 tokens at positions with gaps: all at once, then five
/// more in the same run, and token by token.
inline void expectAgreement(TextModel &model, double tolerance = 1e-5) {
  SCOPED_TRACE(model.text);
  ASSERT_EQ(model.compile(), "");
  for (int64_t rows : {1, 2, 3, 5}) {
    std::vector<int64_t> tokens = someTokens(rows, rows), more = someTokens(5, rows + 3);
    std::vector<int64_t> at = upTo(rows), later;
    for (int64_t &position : at)
      position = position * 2 + (rows > 2);
    for (int64_t i = 0; i < 5; ++i)
      later.push_back(at.back() + 3 + i);
    auto expectedRun = model.reference->start(rows + 5), run = model.compiled->start(rows + 5);
    Seen expected = see(*model.reference, *expectedRun, tokens, at);
    std::string what = std::to_string(rows) + " rows";
    expectSame(see(*model.compiled, *run, tokens, at), expected, tolerance, what);
    expectSame(see(*model.compiled, *run, more, later),
               see(*model.reference, *expectedRun, more, later), tolerance, what + " and 5 more");

    auto single = model.compiled->start(rows);
    for (int64_t i = 0; i < rows; ++i) {
      Seen one = see(*model.compiled, *single, tokens[i], at[i]);
      Seen row;
      for (const std::vector<double> &all : expected.layers)
        row.layers.push_back(
            llvm::ArrayRef(all).slice(i * all.size() / rows, all.size() / rows).vec());
      row.logits = llvm::ArrayRef(expected.logits).slice(i * kVocabulary, kVocabulary).vec();
      expectSame(one, row, tolerance, what + ", token " + std::to_string(i) + " by itself");
    }
  }
}

/// The last layer's outputs for 53 tokens, which need tiles that are whole and stored in part.
inline std::vector<double> lastLayer(Executor &executor) {
  constexpr int64_t count = 53;
  auto run = executor.start(count);
  return see(executor, *run, someTokens(count, 3), upTo(count)).layers.back();
}

/// Compares the split products of a compiled model with the exact ones, by the reference's sums.
/// Returns the last layer's outputs with both.
inline std::pair<std::vector<double>, std::vector<double>>
expectAsExactWhenSplit(TextModel &exact, TextModel &split) {
  auto sums = lastLayer(*exact.reference), usual = lastLayer(*exact.compiled),
       found = lastLayer(*split.compiled);
  EXPECT_LE(rootMeanSquare(found, sums),
            3 * rootMeanSquare(usual, sums) + 3e-8 * rootMeanSquare(sums));
  return {found, usual};
}

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_COMPILED_TEXTMODEL_H
