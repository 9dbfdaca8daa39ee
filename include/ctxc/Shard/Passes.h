//===- Passes.h - how blocks are split among ranks, as a pass -------------===//
#ifndef CTXC_SHARD_PASSES_H
#define CTXC_SHARD_PASSES_H

namespace ctxc::shard {

/// `xf-print-local-blocks{ranks=N rank=I}`: prints what LocalBlocks makes of each block of a module
/// for one rank, the segments and the transfers before each. A model's ends have been outlined.
void registerShardPasses();

} // namespace ctxc::shard

#endif // CTXC_SHARD_PASSES_H
