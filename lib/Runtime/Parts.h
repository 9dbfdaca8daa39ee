// Which elements of a stored tensor a rank has.
#ifndef CTXC_LIB_RUNTIME_PARTS_H
#define CTXC_LIB_RUNTIME_PARTS_H

#include "ctxc/Program/Weights.h"
#include "ctxc/Shard/Cut.h"

namespace ctxc {

/// Rank `rank`'s part of a tensor, or of the entry `slice` of its first dimension, of which `cut`
/// is the cut.
inline std::vector<ElementRun> runsOf(const shard::Cut &cut, int64_t rank, int64_t slice = 0) {
  std::vector<ElementRun> runs;
  cut.visitRuns(rank, [&](int64_t inWhole, int64_t, int64_t count) {
    runs.push_back({slice * cut.wholeSize() + inWhole, count});
  });
  return runs;
}

/// The cut of each entry of the first dimension, which is whole, of `count`.
inline shard::Cut cutOfSlice(shard::Cut cut, int64_t count) {
  cut.before /= count;
  return cut;
}

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_PARTS_H
