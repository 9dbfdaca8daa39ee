#include "ctxc/Numerics/ExpertGroups.h"
#include "gtest/gtest.h"
#include <vector>

namespace {

using Numbers = std::vector<int64_t>;

struct Groups {
  Numbers products, places, begins;
};

Groups groupsOf(const std::vector<int32_t> &selected, int64_t experts) {
  const auto count = int64_t(selected.size());
  Groups g{Numbers(count, -1), Numbers(count, -1), Numbers(experts + 1, -1)};
  ctxc_group_by_expert(selected.data(), count, experts, g.products.data(), g.places.data(),
                       g.begins.data());
  return g;
}

TEST(ExpertGroups, KeepTheOrderOfProductsOfAnExpert) {
  Groups g = groupsOf({3, 1, 1, 3, 0, 3}, 5);
  EXPECT_EQ(g.begins, (Numbers{0, 1, 3, 3, 6, 6}));
  EXPECT_EQ(g.products, (Numbers{4, 1, 2, 0, 3, 5}));
  EXPECT_EQ(g.places, (Numbers{3, 1, 2, 4, 0, 5}));
}

TEST(ExpertGroups, MayBeOneOrNone) {
  Groups one = groupsOf({0, 0}, 1);
  EXPECT_EQ(one.begins, (Numbers{0, 2}));
  EXPECT_EQ(one.products, (Numbers{0, 1}));
  EXPECT_EQ(groupsOf({}, 2).begins, (Numbers{0, 0, 0}));
}

} // namespace
