// What the facts of a value say of its numbers is so: on random weights and activations, of all
// sizes, every value of a random block lies within the bounds that its facts give.
#include "RandomDag.h"
#include "ctxc/Reference/Evaluation.h"
#include "ctxc/Reference/Registration.h"
#include "dialects/XF/BlockFacts.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <map>
#include <random>

using namespace ctxc;
using namespace ctxc::test;
using namespace mlir;
using reference::Matrix;

namespace {

class FactsJudge {
public:
  FactsJudge() {
    DialectRegistry registry;
    registry.insert<xf::XFDialect, patch::PatchDialect>();
    registerReferenceModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  void judge(uint64_t seed, bool nasty);
  /// How often a fact was held against numbers, by its name.
  std::map<std::string, int> counts;

private:
  void judge(const xf::Facts &facts, const Matrix &rows);

  MLIRContext context;
};

void FactsJudge::judge(const xf::Facts &f, const Matrix &rows) {
  constexpr double rounding = 1e-6; // roots of roundings, where what cancels is a zero
  double least = rows.minCoeff(), most = rows.maxCoeff(),
         longest = rows.rowwise().norm().maxCoeff();
  auto within = [&](const char *what, double found, double limit) {
    ++counts[what];
    EXPECT_LE(found, limit + rounding * (1 + std::abs(limit))) << what;
  };
  if (f.bound)
    within("bound", std::max(-least, most), *f.bound);
  if (f.length)
    within("length", longest, *f.length);
  if (f.ceiling)
    within("ceiling", most, *f.ceiling);
  if (f.floor)
    within("floor", -least, -*f.floor);
}

void FactsJudge::judge(uint64_t seed, bool nasty) {
  std::string text = randomDag(seed, nasty);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module) << "seed " << seed << "\n" << text;
  xf::BlockOp block = *module->getOps<xf::BlockOp>().begin();
  xf::BlockFacts facts(block);
  std::unique_ptr<Weights> weights = randomWeights(seed);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  for (double size : {1.0, 30.0}) {
    constexpr int64_t count = 6;
    SmallVector<Matrix> inputs;
    for (Value argument : block.getBody().getArguments()) {
      Matrix &m =
          inputs.emplace_back(count, cast<RankedTensorType>(argument.getType()).getNumElements());
      for (double &x : m.reshaped())
        x = size * normal(random);
    }
    std::vector<int64_t> tokens(count, 0), positions;
    for (int64_t i = 0; i < count; ++i)
      positions.push_back(i);
    reference::BlockState state;
    reference::Environment environment{*weights, {}, tokens, positions, {{std::nullopt, &state}}};
    reference::Evaluation values(environment);
    auto outputs = reference::evaluateBlock(block, inputs, values);
    ASSERT_TRUE(bool(outputs)) << llvm::toString(outputs.takeError());
    for (Operation &op : block.getBody().front().without_terminator()) {
      bool isFinite = !isa<xf::ParamOp>(op) && llvm::all_of(op.getResults(), [&](Value v) {
        auto type = dyn_cast<RankedTensorType>(v.getType());
        return type && isa<FloatType>(type.getElementType()) && values.rows(v).allFinite();
      });
      if (!isFinite)
        continue;
      SCOPED_TRACE("seed " + std::to_string(seed) + (nasty ? ", nasty" : "") + ", size " +
                   std::to_string(size));
      std::string line;
      llvm::raw_string_ostream(line) << op;
      SCOPED_TRACE(line + "\n" + text);
      judge(facts[op.getResult(0)], values.rows(op.getResult(0)));
    }
  }
}

TEST(Facts, HoldInNumbers) {
  FactsJudge judge;
  for (uint64_t seed = 0; seed < 2000; ++seed)
    judge.judge(seed, /*nasty=*/seed % 2);
  for (const char *what : {"bound", "length", "ceiling", "floor"})
    EXPECT_GT(judge.counts[what], 100) << what;
}

/// Rotations with an amplitude, of all pairs of a head or of some.
TEST(Facts, OfRotationsHoldInNumbers) {
  FactsJudge judge;
  for (uint64_t seed = 14; seed < 14 + 16 * 300; seed += 16)
    judge.judge(seed, /*nasty=*/false);
  EXPECT_GT(judge.counts["length"], 100);
}

} // namespace
