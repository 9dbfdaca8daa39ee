// Numbers that may be what they are because of a size, and sparse matrices in the place of large
// ones.
#include "lib/Evidence/RelatedNumbers.h"
#include "ctxc/Reference/Evaluation.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace ctxc;
using reference::StoredTensor;

namespace {

TEST(RelatedNumbers, FollowTheirSizes) {
  const NewSizes sizes{{512, 8}, {128, 4}, {64, 3}};
  auto first = [&](double number) {
    auto found = relatedNumbers(float(number), sizes);
    return found.empty() ? 0 : found.front();
  };
  EXPECT_FLOAT_EQ(first(1 / 512.0), 1 / 8.0);
  EXPECT_FLOAT_EQ(first(-1 / 512.0), -1 / 8.0);
  EXPECT_FLOAT_EQ(first(512), 8);
  EXPECT_FLOAT_EQ(first(1 / std::sqrt(128.0)), 1 / std::sqrt(4.0));
  EXPECT_FLOAT_EQ(first(std::sqrt(512.0)), std::sqrt(8.0));
  EXPECT_FLOAT_EQ(first(512.0 * 512), 64);
  EXPECT_FLOAT_EQ(first(3 / 512.0), 3 / 8.0);
  // Either size may be meant.
  auto both = relatedNumbers(1 / 256.0, {{512, 8}, {64, 3}});
  EXPECT_EQ(both.size(), 2u);
  for (double number : {0.0, 1.0, 0.7, 1e-6, 3.0, 1e30})
    EXPECT_TRUE(relatedNumbers(float(number), sizes).empty()) << number;
  EXPECT_TRUE(relatedNumbers(1 / 512.0f, {{512, 512}}).empty());
}

/// Every row and every column has numbers; and what is read at once is what is read one by one.
TEST(CountedMatrix, IsZeroInNoRowAndNoColumn) {
  for (auto [rows, columns] :
       {std::pair<int64_t, int64_t>{300, 300}, {7, 1000}, {1000, 7}, {600, 1000}, {1, 500}}) {
    StoredTensor matrix = StoredTensor::counted(3, {rows, columns});
    std::vector<double> all(rows * columns), ofRow(rows), ofColumn(columns);
    matrix.read(0, all);
    double squares = 0;
    for (int64_t i = 0; i < rows * columns; ++i) {
      ofRow[i / columns] += std::abs(all[i]);
      ofColumn[i % columns] += std::abs(all[i]);
      squares += all[i] * all[i];
    }
    for (double sum : ofRow)
      EXPECT_GT(sum, 0);
    for (double sum : ofColumn)
      EXPECT_GT(sum, 0);
    EXPECT_NEAR(squares, matrix.squaredNorm(), 0.25 * squares);
    std::vector<double> some(rows * columns / 2);
    matrix.read(rows * columns / 3, some);
    for (size_t i = 0; i < some.size(); ++i)
      EXPECT_EQ(some[i], all[rows * columns / 3 + i]);
  }
}

TEST(CountedMatrix, OfABankIsItsMembers) {
  StoredTensor bank = StoredTensor::counted(0, {3, 40, 50});
  bank.counter.reset();
  bank.counters = {5, 6, 7};
  std::vector<double> all(3 * 40 * 50), one(40 * 50);
  bank.read(0, all);
  StoredTensor::counted(6, {40, 50}).read(0, one);
  for (size_t i = 0; i < one.size(); ++i)
    EXPECT_EQ(one[i], all[one.size() + i]);
  EXPECT_EQ(bank.squaredNorm(), 3 * bank.slice(0).squaredNorm());
}

} // namespace
