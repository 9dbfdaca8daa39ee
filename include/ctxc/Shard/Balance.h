//===- Balance.h - consecutive groups of about the same weight ------------===//
#ifndef CTXC_SHARD_BALANCE_H
#define CTXC_SHARD_BALANCE_H

#include "llvm/ADT/ArrayRef.h"
#include <cstddef>
#include <vector>

namespace ctxc::shard {

/// Cuts `weights` into `count` consecutive groups, none of them empty, so that the largest sum of a
/// group is as small as possible. Returns the end of each group. Needs at least `count` weights.
std::vector<size_t> leastLargest(llvm::ArrayRef<double> weights, size_t count);

} // namespace ctxc::shard

#endif // CTXC_SHARD_BALANCE_H
