// The ops of mixtures of experts, compared with formulas written out here.
#include "Fixture.h"
#include "ctxc/Program/Weights.h"

namespace ctxc::reference {
namespace {

using MixtureOpsTest = ReferenceTest;

constexpr const char *selection = R"(
xf.block @b(%x: tensor<5xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %s = xf.top_k %x k 3 : tensor<5xf32>
  %g = xf.gather %x[%s] : tensor<5xf32>, tensor<3xi32>
  %i = xf.setting "i" : tensor<5xf32> = dense<[0.0, 1.0, 2.0, 3.0, 4.0]> : tensor<5xf32>
  %j = xf.gather %i[%s] : tensor<5xf32>, tensor<3xi32>
  xf.yield %g, %j : tensor<3xf32>, tensor<3xf32>
})";

TEST_F(MixtureOpsTest, TopKIsAscendingAndTiesGoToTheLowerIndex) {
  Matrix x(4, 5), values(4, 3), indices(4, 3);
  x << 0.1, 0.9, 0.3, 0.2, 0.8, //
      5, 4, 3, 2, 1,            //
      1, 2, 2, 2, 2,            //
      -3, -3, -3, -3, -1;
  indices << 1, 2, 4, //
      0, 1, 2,        //
      1, 2, 3,        //
      0, 1, 4;
  for (int64_t t = 0; t < 4; ++t)
    for (int64_t j = 0; j < 3; ++j)
      values(t, j) = x(t, int64_t(indices(t, j)));
  auto found = run(selection, {x});
  ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError());
  expectNear((*found)[0], values, 0);
  expectNear((*found)[1], indices, 0);
}

TEST_F(MixtureOpsTest, TopKOfNaNStaysInRange) {
  Matrix x = Matrix::Constant(1, 5, std::nan(""));
  auto found = run(selection, {x});
  ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError());
  Matrix indices(1, 3);
  indices << 0, 1, 2;
  expectNear((*found)[1], indices, 0);
}

TEST_F(MixtureOpsTest, TopKOfTheBestGroups) {
  // Groups of two entries, and of three, of which the two largest are added.
  Matrix x(3, 6), pairs(3, 2), triples(3, 2);
  x << 0.9, 0.0, 0.5, 0.5, 0.6, 0.3, // pairs: 0.9, 1.0, 0.9; the first of the equal ones stays
      -1, -2, -3, -1, -4, 0,         // −3, −4, −4; triples −3 and −1
      1, 1, 1, 1, 1, 1;
  pairs << 0, 2, //
      0, 3,      //
      0, 1;
  triples << 0, 2, //
      3, 5,        //
      0, 1;
  const char *text = R"(
xf.block @b(%x: tensor<6xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %i = xf.setting "i" : tensor<6xf32> = dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<6xf32>
  %p = xf.top_k %x k 2 groups 3 keep 2 : tensor<6xf32>
  %a = xf.gather %i[%p] : tensor<6xf32>, tensor<2xi32>
  %t = xf.top_k %x k 2 groups 2 keep 1 : tensor<6xf32>
  %b = xf.gather %i[%t] : tensor<6xf32>, tensor<2xi32>
  xf.yield %a, %b : tensor<2xf32>, tensor<2xf32>
})";
  auto found = run(text, {x});
  ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError());
  expectNear((*found)[0], pairs, 0);
  expectNear((*found)[1], triples, 0);
}

TEST_F(MixtureOpsTest, GatherOfStoredRows) {
  Matrix x = noise(3, 4), expected(3, 6);
  auto found = run(R"(
xf.block @b(%x: tensor<4xf32>) -> tensor<2x3xf32> {
  %s = xf.top_k %x k 2 : tensor<4xf32>
  %B = xf.param "B" : tensor<4x3xbf16>
  %y = xf.gather %B[%s] : tensor<4x3xbf16>, tensor<2xi32>
  xf.yield %y : tensor<2x3xf32>
})",
                   {x});
  ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError());
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t i = 0, slot = 0; i < 4; ++i)
      if ((x.row(t).array() > x(t, i)).count() < 2)
        for (int64_t c = 0; c < 3; ++c)
          expected(t, 3 * slot + c) = weights.numbers("B")[3 * i + c], slot += c == 2;
  expectNear((*found)[0], expected, 0);
}

TEST_F(MixtureOpsTest, NormalizeSum) {
  Matrix x = noise(3, 10).cwiseAbs(), expected = x;
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t i : {0, 5})
      expected.row(t).segment(i, 5) /= x.row(t).segment(i, 5).sum() + 0.25;
  expectNear(runOne(R"(
xf.block @b(%x: tensor<2x5xf32>) -> tensor<2x5xf32> {
  %y = xf.normalize sum %x eps 0.25 : tensor<2x5xf32>
  xf.yield %y : tensor<2x5xf32>
})",
                    {x}),
             expected);
}

TEST_F(MixtureOpsTest, CombineAndOuter) {
  Matrix w = noise(3, 2), y = noise(3, 12), x = noise(3, 5);
  Matrix sum(3, 6), outer(3, 10);
  for (int64_t t = 0; t < 3; ++t) {
    for (int64_t i = 0; i < 6; ++i)
      sum(t, i) = w(t, 0) * y(t, i) + w(t, 1) * y(t, 6 + i);
    for (int64_t i = 0; i < 10; ++i)
      outer(t, i) = w(t, i / 5) * x(t, i % 5);
  }
  auto found = run(R"(
xf.block @b(%w: tensor<2xf32>, %y: tensor<2x3x2xf32>, %x: tensor<5xf32>) -> (tensor<3x2xf32>, tensor<2x5xf32>) {
  %c = xf.combine %w, %y : tensor<2xf32>, tensor<2x3x2xf32>
  %o = xf.outer %w, %x : tensor<2xf32>, tensor<5xf32>
  xf.yield %c, %o : tensor<3x2xf32>, tensor<2x5xf32>
})",
                   {w, y, x});
  ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError());
  expectNear((*found)[0], sum);
  expectNear((*found)[1], outer);
}

TEST_F(MixtureOpsTest, SliceAlongADimension) {
  Matrix x = noise(2, 24), expected(2, 8);
  for (int64_t t = 0; t < 2; ++t)
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 4; ++j)
        expected(t, i * 4 + j) = x(t, i * 12 + 3 * 2 + j); // entries 3 and 4 of 6, of 2 each
  expectNear(runOne(R"(
xf.block @b(%x: tensor<2x6x2xf32>) -> tensor<2x2x2xf32> {
  %y = xf.slice %x from 3 along 1 : tensor<2x6x2xf32> to tensor<2x2x2xf32>
  xf.yield %y : tensor<2x2x2xf32>
})",
                    {x}),
             expected);
}

/// Experts 1 and 3 of 4 for one token, 0 and 2 for the other.
struct ExpertLinear : MixtureOpsTest {
  Matrix scores{2, 4};
  int64_t chosen[2][2] = {{1, 3}, {0, 2}};
  ExpertLinear() { scores << 0, 1, 0, 2, 3, 1, 2, 0; }

  /// `experts` returns the matrix of expert e (3 × 5).
  template <typename Experts>
  void check(const std::string &bank, const std::string &type, bool transposed, Experts experts) {
    for (int64_t slots : {1, 2}) { // one vector for both slots, or one for each
      Matrix x = noise(2, 5 * slots);
      std::string data = slots == 1 ? "tensor<5xf32>" : "tensor<2x5xf32>";
      auto found = run("xf.block @b(%s: tensor<4xf32>, %x: " + data + ") -> tensor<2x3xf32> {\n" +
                           "  %sel = xf.top_k %s k 2 : tensor<4xf32>\n  %W = xf.param \"" + bank +
                           "\" : " + type + "\n  %y = xf.expert_linear %W[%sel] * %x" +
                           (transposed ? " transposed : " : " : ") + type + ", tensor<2xi32>, " +
                           data + "\n  xf.yield %y : tensor<2x3xf32>\n}",
                       {scores, x});
      ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError());
      Matrix expected(2, 6);
      for (int64_t t = 0; t < 2; ++t)
        for (int64_t j = 0; j < 2; ++j) {
          Matrix w = experts(chosen[t][j]);
          expected.row(t).segment(j * 3, 3) =
              x.row(t).segment((slots - 1) * j * 5, 5) * w.transpose();
        }
      expectNear((*found)[0], expected);
    }
  }
};

TEST_F(ExpertLinear, OfOneFusedTensor) {
  check("bank", "tensor<4x3x5xbf16>", false, [&](int64_t e) {
    return Matrix(Eigen::Map<const Matrix>(weights.numbers("bank").data() + e * 15, 3, 5));
  });
  check("other", "tensor<4x5x3xf32>", true, [&](int64_t e) {
    return Matrix(
        Eigen::Map<const Matrix>(weights.numbers("other").data() + e * 15, 5, 3).transpose());
  });
}

TEST_F(ExpertLinear, OfATensorForEachExpert) {
  check("experts.*.weight", "tensor<4x3x5xf16>", false, [&](int64_t e) {
    std::string name = "experts." + std::to_string(e) + ".weight";
    return Matrix(Eigen::Map<const Matrix>(weights.numbers(name).data(), 3, 5));
  });
}

TEST_F(ExpertLinear, NamesTheExpertThatIsMissing) {
  weights.missing = "experts.2.weight";
  auto found = run(R"(
xf.block @b(%s: tensor<4xf32>, %x: tensor<5xf32>) -> tensor<2x3xf32> {
  %sel = xf.top_k %s k 2 : tensor<4xf32>
  %W = xf.param "experts.*.weight" : tensor<4x3x5xf32>
  %y = xf.expert_linear %W[%sel] * %x : tensor<4x3x5xf32>, tensor<2xi32>, tensor<5xf32>
  xf.yield %y : tensor<2x3xf32>
})",
                   {scores, noise(2, 5)});
  EXPECT_EQ(messageOf(std::move(found)), "experts.2.weight: no such tensor");
}

// A parameter of several tensors that is used as a value has all of them, one below the other.
TEST_F(MixtureOpsTest, ABankAsAValue) {
  Matrix x = noise(1, 6);
  Matrix found = runOne(R"(
xf.block @b(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %b = xf.param "bias.*" : tensor<3x2xf32>
  %y = xf.bias %x + %b : tensor<3x2xf32>, tensor<3x2xf32>
  xf.yield %y : tensor<3x2xf32>
})",
                        {x});
  Matrix expected = x;
  for (int64_t i = 0; i < 6; ++i)
    expected(0, i) += weights.numbers("bias." + std::to_string(i / 2))[i % 2];
  expectNear(found, expected);
}

TEST(SliceName, PutsTheIndexWhereTheStarIsOrBehind) {
  EXPECT_EQ(sliceName("layers.0.experts.*.w2.weight", 3), "layers.0.experts.3.w2.weight");
  EXPECT_EQ(sliceName("layers.0.experts.down_proj", 3), "layers.0.experts.down_proj[3]");
}

} // namespace
} // namespace ctxc::reference
