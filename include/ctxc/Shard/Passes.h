//===- Passes.h - how blocks are split among ranks, as a pass -------------===//
#ifndef CTXC_SHARD_PASSES_H
#define CTXC_SHARD_PASSES_H

namespace ctxc::shard {

/// `xf-print-local-blocks{ranks=N rank=I}`: prints for each block of a module what LocalBlocks
/// makes of it for one rank: the segments, and the transfers before each. It needs a model whose
/// ends have been outlined.
void registerShardPasses();

} // namespace ctxc::shard

#endif // CTXC_SHARD_PASSES_H
