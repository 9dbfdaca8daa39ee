// Which entries xf.top_k selects.
#include "ctxc/Numerics/Selection.h"
#include "gtest/gtest.h"

using namespace ctxc;

using Indices = std::vector<int>;

TEST(Selection, TakesTheLargest) {
  const std::vector<float> scores = {2, 5, -1, 5, 3, 5};
  EXPECT_EQ(selectTop<float>(scores, 2), (Indices{1, 3})); // of equal ones, those before
  EXPECT_EQ(selectTop<float>(scores, 4), (Indices{1, 3, 4, 5}));
  EXPECT_EQ(selectTop<float>(scores, 6), (Indices{0, 1, 2, 3, 4, 5}));
}

TEST(Selection, TakesTheBestGroups) {
  const std::vector<double> scores = {9, 0, 0, 6, 5, 1, 4, 8, 3, 3, 3, 3};
  // The two largest of each third together: 15, 13 and 6.
  EXPECT_EQ(selectTop<double>(scores, 3, 3, 1), (Indices{0, 1, 3}));
  EXPECT_EQ(selectTop<double>(scores, 3, 3, 2), (Indices{0, 3, 7}));
  const std::vector<double> equal = {1, 2, 2, 1};
  EXPECT_EQ(selectTop<double>(equal, 1, 2, 1), (Indices{1}));
}
