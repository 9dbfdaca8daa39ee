#include "ctxc/Inspect/ContextParts.h"
#include "gtest/gtest.h"

using namespace ctxc;

namespace {

std::vector<std::pair<int64_t, int64_t>> cut(std::vector<std::string> pieces, Grain grain,
                                             size_t limit = 100) {
  std::vector<std::pair<int64_t, int64_t>> parts;
  for (PositionRange range : cutContext(pieces, grain, limit))
    parts.push_back({range.first, range.last});
  return parts;
}
using Parts = std::vector<std::pair<int64_t, int64_t>>;

TEST(ContextParts, Tokens) {
  EXPECT_EQ(cut({"a", "b", "c"}, Grain::Token), (Parts{{0, 0}, {1, 1}, {2, 2}}));
  EXPECT_EQ(cut({}, Grain::Token), Parts());
}

TEST(ContextParts, SentencesEndWithAMarkOrALineBreak) {
  EXPECT_EQ(cut({"<bos>", "Go", ".", " \"", "No", "!\"", " so", "\n", "end"}, Grain::Sentence),
            (Parts{{0, 2}, {3, 5}, {6, 7}, {8, 8}}));
  EXPECT_EQ(cut({"\n", "a", "\n\n", "?)", "b"}, Grain::Sentence),
            (Parts{{0, 0}, {1, 2}, {3, 3}, {4, 4}}));
}

TEST(ContextParts, NeighboursAreJoinedWhereThereAreTooMany) {
  EXPECT_EQ(cut({"a", "b", "c", "d", "e"}, Grain::Token, 2), (Parts{{0, 2}, {3, 4}}));
  EXPECT_EQ(cut({"a", "b", "c", "d", "e"}, Grain::Token, 5).size(), 5u);
  EXPECT_EQ(cut({"a", "b", "c"}, Grain::Token, 1), (Parts{{0, 2}}));
}

} // namespace
