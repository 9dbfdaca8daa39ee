// The order in which splits are preferred.
#ifndef CTXC_LIB_SHARD_SOONEST_H
#define CTXC_LIB_SHARD_SOONEST_H

#include "llvm/ADT/STLExtras.h"
#include <vector>

namespace ctxc::shard {

/// Puts those with the fewest seconds first, equal ones as they were, and keeps `most`.
template <typename T, typename Seconds>
void keepSoonest(std::vector<T> &all, Seconds secondsOf, size_t most) {
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < all.size(); ++i)
    order.push_back({secondsOf(all[i]), i});
  llvm::sort(order);
  order.resize(std::min(order.size(), most));
  std::vector<T> kept;
  for (const auto &[seconds, index] : order)
    kept.push_back(std::move(all[index]));
  all = std::move(kept);
}

} // namespace ctxc::shard

#endif // CTXC_LIB_SHARD_SOONEST_H
