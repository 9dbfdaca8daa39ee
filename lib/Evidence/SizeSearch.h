// Smaller numbers in the place of sizes, which keep the relations between them.
//
// A search over intervals: each relation narrows the numbers that its sizes may become, and what is
// left is tried from the smallest on. Sizes of relations that failed most are given their numbers
// first, in searches that begin anew after some failures; so a relation that rules out a number is
// met near the choice of that number, not far below it.
#ifndef CTXC_LIB_EVIDENCE_SIZESEARCH_H
#define CTXC_LIB_EVIDENCE_SIZESEARCH_H

#include "dialects/XF/Sizes.h"
#include <map>
#include <set>
#include <vector>

namespace ctxc {

struct SizeProblem {
  std::set<int64_t> ordered; ///< keep their order, and are at least 2
  std::set<int64_t> others;  ///< are at least 1, such as where a slice begins
  std::vector<xf::SizeRelation> relations;
  /// Together they have at most `mostNumbers` entries.
  std::vector<llvm::SmallVector<int64_t, 4>> tensors;
  int64_t mostNumbers = 0;
};

/// What each size becomes; 1 stays 1.
using NewSizes = std::map<int64_t, int64_t>;

/// Calls `accept` with solutions, which are no larger than the sizes themselves, and returns the
/// first that it takes. The first solutions are small; later ones have wider gaps between sizes
/// that lie far apart. None where `accept` takes none of them.
std::optional<NewSizes> findSizes(const SizeProblem &problem,
                                  llvm::function_ref<bool(const NewSizes &)> accept);

} // namespace ctxc

#endif // CTXC_LIB_EVIDENCE_SIZESEARCH_H
