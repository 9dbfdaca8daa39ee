//===- Selection.h - which entries of some scores are chosen --------------===//
#ifndef CTXC_NUMERICS_SELECTION_H
#define CTXC_NUMERICS_SELECTION_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

namespace ctxc {

/// Whether fewer than `count` of `scores` precede that at `place`: larger ones, or equal ones with
/// a lower index.
template <typename T> bool isAmong(llvm::ArrayRef<T> scores, size_t place, int64_t count) {
  const T own = scores[place];
  return llvm::count_if(scores, [&](T other) { return other > own; }) +
             llvm::count(scores.take_front(place), own) <
         count;
}

/// The indices of the `count` largest of `scores`, ascending, as xf.top_k selects them: of equal
/// ones, those before. With `groups`, the scores are divided into that many equal parts of at least
/// two, and only those of the `keep` parts whose two largest have the largest sums are selected.
template <typename T>
std::vector<int> selectTop(llvm::ArrayRef<T> scores, int64_t count, int64_t groups = 1,
                           int64_t keep = 1) {
  std::vector<T> kept(scores.begin(), scores.end());
  if (groups > 1) {
    const size_t size = scores.size() / groups;
    std::vector<T> sums;
    for (int64_t group = 0; group < groups; ++group) {
      std::vector<T> entries = scores.slice(group * size, size).vec();
      std::nth_element(entries.begin(), entries.begin() + 1, entries.end(), std::greater<>());
      sums.push_back(entries[0] + entries[1]);
    }
    for (int64_t group = 0; group < groups; ++group)
      if (!isAmong<T>(sums, group, keep))
        std::fill_n(kept.begin() + group * size, size, -std::numeric_limits<T>::infinity());
  }
  std::vector<int> selected;
  for (size_t i = 0; i < kept.size() && int64_t(selected.size()) < count; ++i)
    if (isAmong<T>(kept, i, count))
      selected.push_back(i);
  return selected;
}

} // namespace ctxc

#endif // CTXC_NUMERICS_SELECTION_H
