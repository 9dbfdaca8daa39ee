// Cuts a block into segments of one rank.
#ifndef CTXC_LIB_SHARD_LOCALIZE_H
#define CTXC_LIB_SHARD_LOCALIZE_H

#include "ctxc/Shard/LocalBlock.h"
#include "lib/Shard/Pieces.h"

namespace ctxc::shard {

/// Makes the segments of `block`, split like this, on a rank; their blocks are added to `into`.
void localize(xf::BlockOp block, const RegionSplit &split, const Pieces &pieces, int64_t rank,
              mlir::ModuleOp into, LocalBlock &made);

} // namespace ctxc::shard

#endif // CTXC_LIB_SHARD_LOCALIZE_H
