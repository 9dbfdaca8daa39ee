// Smaller sizes keep every relation of a block, and are found where only few of many numbers do.
#include "lib/Evidence/SizeSearch.h"
#include <gtest/gtest.h>

using namespace ctxc;
using xf::SizeRelation;

namespace {

SizeRelation product(std::initializer_list<int64_t> left, std::initializer_list<int64_t> right) {
  return {SizeRelation::Product, left, right};
}
SizeRelation sum(int64_t whole, std::initializer_list<int64_t> parts) {
  return {SizeRelation::Sum, {whole}, parts};
}
SizeRelation multiple(int64_t of, int64_t by, bool fixed = false) {
  return {SizeRelation::Multiple, {of}, {by}, fixed};
}

/// Heads of queries and of keys, cut out of one matrix and turned by halves.
SizeProblem decoder(int64_t hidden, int64_t heads, int64_t groups, int64_t width, int64_t inner,
                    int64_t narrow) {
  int64_t q = heads * width, k = groups * width, all = q + 2 * k;
  SizeProblem problem;
  problem.ordered = {hidden, heads, groups, width, width / 2, inner, narrow, q, k, all};
  problem.others = {q, k, all, 2 * k, q + k};
  problem.relations = {sum(all, {q, 2 * k}),          sum(all, {q, k, k}),
                       sum(all, {k, q + k}),          product({q}, {heads, width}),
                       product({k}, {groups, width}), sum(width, {width / 2, width / 2}),
                       multiple(heads, groups)};
  problem.tensors = {
      {all, hidden}, {hidden, q}, {inner, hidden}, {hidden, inner}, {narrow, hidden}};
  problem.mostNumbers = 400'000;
  return problem;
}

int64_t total(SizeRelation::Kind kind, llvm::ArrayRef<int64_t> of, const NewSizes &to) {
  int64_t result = kind == SizeRelation::Sum ? 0 : 1;
  for (int64_t size : of)
    result = kind == SizeRelation::Sum ? result + to.at(size) : result * to.at(size);
  return result;
}

void expectSolution(const SizeProblem &problem, const NewSizes &to) {
  for (const SizeRelation &r : problem.relations) {
    if (r.kind != SizeRelation::Multiple)
      EXPECT_EQ(total(r.kind, r.left, to), total(r.kind, r.right, to));
    else
      EXPECT_EQ(to.at(r.left[0]) % (r.fixed ? r.right[0] : to.at(r.right[0])), 0);
  }
  int64_t before = 1;
  for (int64_t size : problem.ordered)
    if (size != 1) {
      EXPECT_GT(to.at(size), before) << size;
      before = to.at(size);
    }
  int64_t numbers = 0;
  for (llvm::ArrayRef<int64_t> shape : problem.tensors)
    numbers += total(SizeRelation::Product, shape, to);
  EXPECT_LE(numbers, problem.mostNumbers);
  for (auto [size, small] : to) {
    EXPECT_GE(small, 1);
    EXPECT_LE(small, size);
  }
}

bool any(const NewSizes &) { return true; }

TEST(SizeSearch, ASolutionKeepsAllRelations) {
  for (int64_t narrow : {2, 3, 5, 16, 31, 33, 100, 129, 1000, 4095})
    for (auto [hidden, heads, groups, width, inner] :
         {std::tuple(4096, 32, 8, 128, 14336), std::tuple(512, 8, 2, 64, 2048),
          std::tuple(16384, 128, 8, 128, 53248), std::tuple(2560, 40, 40, 64, 6912),
          std::tuple(1600, 25, 25, 64, 6400), std::tuple(640, 4, 1, 256, 2048),
          std::tuple(7168, 128, 2, 64, 18432)}) {
      SCOPED_TRACE(std::to_string(hidden) + ", narrow " + std::to_string(narrow));
      SizeProblem problem = decoder(hidden, heads, groups, width, inner, narrow);
      auto found = findSizes(problem, any);
      ASSERT_TRUE(found);
      expectSolution(problem, *found);
    }
}

TEST(SizeSearch, TheFirstSolutionIsSmall) {
  SizeProblem problem;
  problem.ordered = {1, 7, 100, 4096};
  problem.mostNumbers = 1000;
  problem.tensors = {{100, 4096}};
  EXPECT_EQ(findSizes(problem, any), (NewSizes{{1, 1}, {7, 2}, {100, 3}, {4096, 4}}));
}

TEST(SizeSearch, NumbersThatStayAreMultiplesOf) {
  SizeProblem problem;
  problem.ordered = {6, 64};
  problem.relations = {multiple(64, 16, /*fixed=*/true)};
  problem.mostNumbers = 1000;
  EXPECT_EQ(findSizes(problem, any), (NewSizes{{1, 1}, {6, 2}, {64, 16}}));
}

TEST(SizeSearch, PowersAndOnes) {
  SizeProblem problem;
  problem.ordered = {12, 144, 145};
  problem.relations = {product({144, 1}, {12, 12}), sum(145, {144, 1})};
  problem.mostNumbers = 1000;
  EXPECT_EQ(findSizes(problem, any), (NewSizes{{1, 1}, {12, 2}, {144, 4}, {145, 5}}));
}

TEST(SizeSearch, WhereOnlyTheSizesThemselvesDoTheyStay) {
  SizeProblem problem;
  problem.ordered = {2, 3, 6};
  problem.relations = {product({2, 3}, {6})};
  problem.mostNumbers = 1000;
  EXPECT_EQ(findSizes(problem, any), (NewSizes{{1, 1}, {2, 2}, {3, 3}, {6, 6}}));
  problem.tensors = {{6, 6, 6, 6}}; // more numbers than there may be
  EXPECT_EQ(findSizes(problem, any), std::nullopt);
}

TEST(SizeSearch, WhatIsRefusedIsTriedWithWiderGaps) {
  SizeProblem problem;
  problem.ordered = {3, 8, 4096};
  problem.mostNumbers = 1000;
  unsigned asked = 0;
  auto found = findSizes(problem, [&](const NewSizes &to) {
    ++asked;
    expectSolution(problem, to);
    return to.at(4096) > 5 * to.at(8);
  });
  ASSERT_TRUE(found);
  EXPECT_GT(found->at(4096), 5 * found->at(8));
  EXPECT_LE(asked, 24u);
  EXPECT_EQ(findSizes(problem, [](const NewSizes &) { return false; }), std::nullopt);
}

} // namespace
