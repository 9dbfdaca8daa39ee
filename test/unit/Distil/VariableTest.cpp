#include "lib/Distil/Variable.h"
#include "gtest/gtest.h"
#include <Eigen/Core>

using namespace ctxc;

using Floats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

static MatrixChange changeOf(const Floats &left, const Floats &right) {
  return {"w",
          left.rows(),
          right.cols(),
          left.cols(),
          std::vector<float>(left.data(), left.data() + left.size()),
          std::vector<float>(right.data(), right.data() + right.size()),
          false};
}

/// The product stays, and both factors have the same Gram matrix, which is diagonal.
TEST(Factors, AreBalanced) {
  Floats left(5, 3), right(3, 4);
  left << 1, 2, 0, -3, 1, 1, 0, 2, 5, 1, 1, 1, 2, 0, -1;
  right << 40, 10, -20, 0, 10, 0, 30, 20, -50, 10, 0, 10;
  MatrixChange change = changeOf(left, right);
  balance(change);
  Eigen::Map<Floats> a(change.left.data(), 5, 3), b(change.right.data(), 3, 4);
  EXPECT_LT((a * b - left * right).norm(), 1e-5 * (left * right).norm());
  Floats ofLeft = a.transpose() * a, ofRight = b * b.transpose();
  EXPECT_LT((ofLeft - ofRight).norm(), 1e-5 * ofLeft.norm());
  EXPECT_LT((ofLeft - Floats(ofLeft.diagonal().asDiagonal())).norm(), 1e-5 * ofLeft.norm());
  EXPECT_GT((left.transpose() * left - right * right.transpose()).norm(), 10); // not before
}

/// The product stays where it has a lower rank than its factors, or is zero.
TEST(Factors, OfALowerRankKeepTheirProduct) {
  Floats left(5, 3), right(3, 4);
  left << 1, 2, 3, -3, 1, -2, 0, 2, 2, 1, 1, 2, 2, 0, 2; // the third column is the sum
  right << 40, 10, -20, 0, 10, 0, 30, 20, -50, 10, 0, 10;
  for (const Floats &other : {right, Floats(Floats::Zero(3, 4))}) {
    MatrixChange change = changeOf(left, other);
    balance(change);
    Eigen::Map<Floats> a(change.left.data(), 5, 3), b(change.right.data(), 3, 4);
    EXPECT_TRUE(a.allFinite() && b.allFinite());
    EXPECT_LE((a * b - left * other).norm(), 1e-5 * (left * other).norm());
  }
}

/// Of a rank that says nothing: it has no such factors.
TEST(Factors, StayWhereTheRankIsLarger) {
  Floats left = Floats::Identity(3, 3), right = Floats::Constant(3, 2, 7);
  MatrixChange change = changeOf(left, right);
  balance(change);
  EXPECT_EQ(change.left, changeOf(left, right).left);
  EXPECT_EQ(change.right, changeOf(left, right).right);
}
