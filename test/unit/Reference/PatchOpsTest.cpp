// Every op of the patch dialect, compared with its formula.
#include "Fixture.h"
#include "ctxc/Numerics/NormInversion.h"
#include "llvm/Support/FormatVariadic.h"

namespace ctxc::reference {
namespace {

class PatchOpsTest : public ReferenceTest {
protected:
  /// Evaluates block @b of `text`, and keeps its environment.
  llvm::Expected<llvm::SmallVector<Matrix>> evaluate(llvm::StringRef text,
                                                     llvm::ArrayRef<Matrix> inputs,
                                                     std::vector<BlockPatch> loads = {}) {
    positions.assign(inputs.front().rows(), 0);
    environment.emplace(Environment{weights, nullptr, positions, positions, {}, std::move(loads)});
    Evaluation evaluation(*environment);
    return evaluateBlock(block(parse(text)), inputs, evaluation);
  }
  std::vector<int64_t> positions;
  std::optional<Environment> environment;
};

TEST_F(PatchOpsTest, OneSweepForSeveralVectors) {
  for (const char *transposed : {"", "transposed"}) {
    std::string type = *transposed ? "5x7xf32" : "7x5xf32";
    std::string text = llvm::formatv(R"(
xf.block @b(%x: tensor<5xf32>, %y: tensor<5xf32>) -> (tensor<7xf32>, tensor<7xf32>, tensor<7xf32>) {{
  %W = xf.param "W{0}" : tensor<{1}>
  %p, %q = patch.linears %W * (%x, %y) {0} : tensor<{1}>, (tensor<5xf32>, tensor<5xf32>) -> (tensor<7xf32>, tensor<7xf32>)
  %r = xf.linear %W * %y {0} : tensor<{1}>, tensor<5xf32>
  xf.yield %p, %q, %r : tensor<7xf32>, tensor<7xf32>, tensor<7xf32>
})",
                                     transposed, type);
    Matrix x = noise(3, 5), y = noise(3, 5);
    auto outputs = evaluate(text, {x, y});
    ASSERT_TRUE(bool(outputs));
    EXPECT_EQ((*outputs)[1], (*outputs)[2]);
    const std::vector<double> &w = weights.numbers("W" + std::string(transposed));
    Matrix expected = Matrix::Zero(3, 7);
    for (int64_t t = 0; t < 3; ++t)
      for (int64_t o = 0; o < 7; ++o)
        for (int64_t i = 0; i < 5; ++i)
          expected(t, o) += w[*transposed ? i * 7 + o : o * 5 + i] * x(t, i);
    expectNear((*outputs)[0], expected);
  }
}

TEST_F(PatchOpsTest, OneSweepForTheExpertsOfSeveralVectors) {
  const char *text = R"(
xf.block @b(%x: tensor<5xf32>, %y: tensor<5xf32>) -> (tensor<2x7xf32>, tensor<2x7xf32>, tensor<2x7xf32>, tensor<2x7xf32>) {
  %W = xf.param "W" : tensor<4x7x5xf32>
  %s = xf.top_k %x k 2 : tensor<5xf32>
  %t = xf.top_k %y k 2 : tensor<5xf32>
  %p, %q = patch.expert_linears %W[%s, %t] * (%x, %y) : tensor<4x7x5xf32>, (tensor<2xi32>, tensor<2xi32>), (tensor<5xf32>, tensor<5xf32>) -> (tensor<2x7xf32>, tensor<2x7xf32>)
  %a = xf.expert_linear %W[%s] * %x : tensor<4x7x5xf32>, tensor<2xi32>, tensor<5xf32>
  %b = xf.expert_linear %W[%t] * %y : tensor<4x7x5xf32>, tensor<2xi32>, tensor<5xf32>
  xf.yield %p, %q, %a, %b : tensor<2x7xf32>, tensor<2x7xf32>, tensor<2x7xf32>, tensor<2x7xf32>
})";
  // The last entry, of which there is no expert, is the smallest.
  Matrix x = noise(3, 5), y = noise(3, 5);
  x.col(4).setConstant(-10);
  y.col(4).setConstant(-10);
  auto outputs = evaluate(text, {x, y});
  ASSERT_TRUE(bool(outputs)) << llvm::toString(outputs.takeError());
  EXPECT_EQ((*outputs)[0], (*outputs)[2]);
  EXPECT_EQ((*outputs)[1], (*outputs)[3]);
  EXPECT_NE((*outputs)[0], (*outputs)[1]);
}

TEST_F(PatchOpsTest, Rank1BringsTheOutputToItsTarget) {
  const char *text = R"(
xf.block @b(%t: tensor<3xf32>, %z: tensor<5xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<5xf32>) {
  %W = xf.param "W" : tensor<3x5xf32>
  %y = xf.linear %W * %z : tensor<3x5xf32>, tensor<5xf32>
  %u, %v = patch.rank1 to %t from %y at %z : tensor<3xf32>, tensor<5xf32>
  %r = patch.apply_rank1 %y + %u, %v at %z : tensor<3xf32>, tensor<5xf32>
  xf.yield %r, %u, %v : tensor<3xf32>, tensor<3xf32>, tensor<5xf32>
})";
  Matrix target = noise(3, 3), z = noise(3, 5);
  z.row(1).setZero();
  auto outputs = evaluate(text, {target, z});
  ASSERT_TRUE(bool(outputs));
  for (int64_t t : {0, 2}) {
    expectNear((*outputs)[0].row(t), target.row(t));
    expectNear((*outputs)[2].row(t), z.row(t) / z.row(t).squaredNorm());
  }
  // A patch has no effect on a zero vector: the divisor is 1 then, not 0.
  EXPECT_EQ((*outputs)[0].row(1).norm(), 0);
  EXPECT_EQ((*outputs)[1].row(1), target.row(1));
  EXPECT_EQ((*outputs)[2].row(1).norm(), 0);
}

TEST_F(PatchOpsTest, DeltaOfAMatrixIsEachTokensOwn) {
  const char *text = R"(
xf.block @b(%x: tensor<2xf32>, %d: tensor<3x2xf32>) -> tensor<3xf32> {
  %W = xf.param "W" : tensor<3x2xbf16>
  %p = patch.apply_delta %W + %d : tensor<3x2xbf16>, tensor<3x2xf32> -> tensor<3x2xf32>
  %y = xf.linear %p * %x : tensor<3x2xf32>, tensor<2xf32>
  xf.yield %y : tensor<3xf32>
})";
  Matrix x = noise(3, 2), d = noise(3, 6), expected = Matrix::Zero(3, 3);
  auto outputs = evaluate(text, {x, d});
  ASSERT_TRUE(bool(outputs));
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t o = 0; o < 3; ++o)
      for (int64_t i = 0; i < 2; ++i)
        expected(t, o) += (weights.numbers("W")[2 * o + i] + d(t, 2 * o + i)) * x(t, i);
  expectNear(outputs->front(), expected);
}

TEST_F(PatchOpsTest, PostNormScaleReachesItsTargetUnderEveryUpdate) {
  // The second entry of the scale is exactly 0, as 1 + w sometimes is in real checkpoints.
  weights.set("m", {0.5, -1, 0.25, -2, 1.5}, DType::BF16);
  for (auto [name, update] : llvm::zip(updateNames, allUpdates)) {
    std::string text = llvm::formatv(R"(
xf.block @b(%g: tensor<5xf32>, %d: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) {{
  %m = xf.param "m" : tensor<5xbf16>
  %h = patch.invert_rms_norm {0} to %g by %m from %d eps 1.0e-3 offset 1.0 : tensor<5xf32>, tensor<5xbf16>
  %n = xf.normalize rms %h eps 1.0e-3 : tensor<5xf32>
  %e = patch.solve_scale {0} to %g by %m at %n offset 1.0 counts 2 : tensor<5xf32>, tensor<5xbf16> -> tensor<5xf32>
  %p = patch.apply_delta %m + %e : tensor<5xbf16>, tensor<5xf32> -> tensor<5xf32>
  %y = xf.scale %n by %p offset 1.0 : tensor<5xf32>, tensor<5xf32>
  xf.yield %y, %h, %n : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
})",
                                     name);
    SCOPED_TRACE(name);
    Matrix g = noise(3, 5), d = noise(3, 5);
    auto outputs = evaluate(text, {g, d});
    ASSERT_TRUE(bool(outputs));
    for (int64_t t = 0; t < 3; ++t) {
      std::vector<double> m = {1.5, 0, 1.25, -1, 2.5}, h(5), delta(5), scratch(scratchDoubles(5));
      auto row = [&](const Matrix &rows) { return llvm::ArrayRef(rows.row(t).data(), 5); };
      invertRmsNorm(update, row(g), m, row(d), 1e-3, h, scratch);
      for (int64_t i = 0; i < 5; ++i)
        EXPECT_EQ((*outputs)[1](t, i), h[i]);
      ScaleCounts counts = solveScale(update, row(g), m, row((*outputs)[2]), delta);
      bool exact = counts.harmful == 0;
      for (int64_t i = 0; i < 5 && exact && update != Update::Scaled; ++i)
        EXPECT_NEAR((*outputs)[0](t, i), g(t, i), 1e-9);
      if (update == Update::Least) {
        EXPECT_TRUE(exact);
      }
    }
    ASSERT_EQ(environment->obligations.size(), 3u);
    EXPECT_EQ(environment->obligations[0].harmful, 0);
    if (update == Update::Least || update == Update::Balanced || update == Update::Naive)
      EXPECT_EQ(environment->obligations[2].harmful, 0);
    else // no multiple of 0 gives g
      EXPECT_EQ(environment->obligations[2].harmful, update == Update::Scaled ? 3 : 0);
  }
}

TEST_F(PatchOpsTest, ZeroDivisorsAreCounted) {
  const char *text = R"(
xf.block @b(%g: tensor<3xf32>, %n: tensor<3xf32>) -> tensor<3xf32> {
  %m = xf.param "m" : tensor<3xf32>
  patch.obligation nonzero_vector %n counts 1 "vector" : tensor<3xf32>
  patch.obligation nonzero_elements %n counts 3 "elements" : tensor<3xf32>
  %e = patch.solve_scale naive to %g by %m at %n counts 0 : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  xf.yield %e : tensor<3xf32>
})";
  weights.set("m", {1, 2, 3});
  Matrix g(2, 3), n(2, 3);
  g << 0, 5, 6, 0, 0, 0;
  n << 0, 0, 2, 0, 0, 0;
  auto outputs = evaluate(text, {g, n});
  ASSERT_TRUE(bool(outputs));
  EXPECT_TRUE(outputs->front().allFinite());
  EXPECT_EQ(outputs->front()(0, 0), 0);
  EXPECT_EQ(outputs->front()(0, 2), 0);
  const std::vector<LayerObligations> &counts = environment->obligations;
  ASSERT_EQ(counts.size(), 4u);
  EXPECT_EQ(counts[0].harmless, 4);
  EXPECT_EQ(counts[0].harmful, 1);
  EXPECT_EQ(counts[1].harmful, 1);
  EXPECT_EQ(counts[3].harmful, 5);
}

TEST_F(PatchOpsTest, ChangesOfExpertsApplyWhereTheyAreSelected) {
  for (bool one : {false, true}) { // a vector for each slot, or one for both
    std::string data = one ? "tensor<3xf32>" : "tensor<2x3xf32>";
    std::string text = llvm::formatv(R"(
xf.block @b(%s: tensor<4xf32>, %p: tensor<4xf32>, %u: tensor<2x5xf32>, %v: tensor<2x3xf32>, %z: {0}) -> tensor<2x5xf32> {{
  %selected = xf.top_k %s k 2 : tensor<4xf32>
  %patched = xf.top_k %p k 2 : tensor<4xf32>
  %y = patch.apply_expert_rank1 %u + %u, %v for %patched at %z[%selected] : tensor<2x5xf32>, tensor<2x3xf32>, {0}, tensor<2xi32>
  xf.yield %y : tensor<2x5xf32>
})",
                                     data);
    Matrix s(2, 4), p(2, 4), u = noise(2, 10), v = noise(2, 6), z = noise(2, one ? 3 : 6);
    s << 1, 0, 2, 0, 0, 1, 0, 2; // 0 and 2; 1 and 3
    p << 0, 0, 1, 2, 1, 2, 0, 0; // 2 and 3; 0 and 1
    auto outputs = evaluate(text, {s, p, u, v, z});
    ASSERT_TRUE(bool(outputs)) << llvm::toString(outputs.takeError());
    Matrix expected = u;
    // Token 0: expert 2 is slot 1 and part 0. Token 1: expert 1 is slot 0 and part 1.
    expected.row(0).tail(5) +=
        u.row(0).head(5) * v.row(0).head(3).dot(z.row(0).segment(one ? 0 : 3, 3));
    expected.row(1).head(5) += u.row(1).tail(5) * v.row(1).tail(3).dot(z.row(1).head(3));
    expectNear(outputs->front(), expected);
  }
}

TEST_F(PatchOpsTest, VectorsThatServeNoChangeMayBeZero) {
  const char *text = R"(
xf.block @b(%h: tensor<3x2xf32>, %u: tensor<3x4xf32>, %x: tensor<2xf32>) -> tensor<3xf32> {
  patch.obligation nonzero_vector %h for %u counts 0 "mixture" : tensor<3x2xf32>, tensor<3x4xf32>
  patch.obligation nonzero_vector %x for %u counts 1 "one for all" : tensor<2xf32>, tensor<3x4xf32>
  patch.obligation nonzero_vector %h counts 2 "each" : tensor<3x2xf32>
  %a = xf.setting "a" : tensor<3xf32> = dense<[3.0, 1.0, 2.0]> : tensor<3xf32>
  %b = xf.setting "b" : tensor<3xf32> = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %s = xf.top_k %a k 2 : tensor<3xf32>
  %t = xf.top_k %b k 2 : tensor<3xf32>
  patch.same_selection %s, %t counts 3 "router" : tensor<2xi32>
  %n = patch.squared_norms %h : tensor<3x2xf32> -> tensor<3xf32>
  xf.yield %n : tensor<3xf32>
})";
  Matrix h(1, 6), u = Matrix::Zero(1, 12), x = Matrix::Zero(1, 2), norms(1, 3);
  h << 0, 0, 3, 4, 0, 0;
  u(0, 1) = 1; // the first zero vector has a change, the second has none
  norms << 0, 25, 0;
  auto outputs = evaluate(text, {h, u, x});
  ASSERT_TRUE(bool(outputs)) << llvm::toString(outputs.takeError());
  expectNear(outputs->front(), norms);
  const std::vector<LayerObligations> &counts = environment->obligations;
  ASSERT_EQ(counts.size(), 4u);
  EXPECT_EQ(counts[0].harmful, 1);
  EXPECT_EQ(counts[0].harmless, 1);
  EXPECT_EQ(counts[1].harmful, 1);
  EXPECT_EQ(counts[2].harmful, 2);
  EXPECT_EQ(counts[3].harmful, 1); // {0, 2} and {1, 2}
}

constexpr const char *storeAndLoad = R"(
xf.block @b(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<3xf32>) {
  %d = patch.load "bias" : tensor<2xf32>
  %u, %v = patch.load "W" : tensor<2xf32>, tensor<3xf32>
  patch.store "W" %u, %v : tensor<2xf32>, tensor<3xf32>
  patch.store "bias" %x : tensor<2xf32>
  xf.yield %d, %v : tensor<2xf32>, tensor<3xf32>
})";

TEST_F(PatchOpsTest, PatchesComeInAndGoOut) {
  Matrix u = noise(1, 2), v = noise(1, 3), x = noise(2, 2);
  auto outputs = evaluate(storeAndLoad, {x}, {{"W", {u, v}}});
  ASSERT_TRUE(bool(outputs));
  EXPECT_EQ((*outputs)[0], Matrix::Zero(2, 2)); // a parameter that is not patched
  EXPECT_EQ((*outputs)[1], v.replicate(2, 1));
  ASSERT_EQ(environment->stores.size(), 2u);
  EXPECT_EQ(environment->stores[0].parameter, "W");
  EXPECT_EQ(environment->stores[1].parameter, "bias");
  EXPECT_EQ(environment->stores[1].parts[0], x);
}

TEST_F(PatchOpsTest, PatchesThatDoNotFitAreErrors) {
  EXPECT_EQ(messageOf(evaluate(storeAndLoad, {noise(1, 2)}, {{"W", {noise(1, 6)}}})),
            "test.mlir:4:12: 'patch.load' op is given 1 parts for the patch of 'W', expected 2");
  EXPECT_EQ(messageOf(evaluate(storeAndLoad, {noise(1, 2)}, {{"bias", {noise(1, 3)}}})),
            "test.mlir:3:8: 'patch.load' op is given a patch of 'bias' of 3 numbers, expected 2");
}

} // namespace
} // namespace ctxc::reference
