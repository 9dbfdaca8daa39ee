// Norms of parameters that other ranks hold.
#ifndef CTXC_LIB_SESSION_RANKNORMS_H
#define CTXC_LIB_SESSION_RANKNORMS_H

#include "ctxc/Runtime/Shard/ShardedExecutor.h"
#include "ctxc/Verify/PatchNorms.h"

namespace ctxc {

/// Norms of which each is computed by the ranks whose layer reads the parameter, from what each has
/// of it: by `own` on rank 0, where this is called. `executor` must outlive the result.
std::unique_ptr<PatchNorms> rankNorms(std::unique_ptr<PatchNorms> own, ShardedExecutor &executor);

} // namespace ctxc

#endif // CTXC_LIB_SESSION_RANKNORMS_H
