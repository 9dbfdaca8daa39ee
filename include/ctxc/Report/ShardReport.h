//===- ShardReport.h - what a model costs on many ranks, as text and JSON --===//
#ifndef CTXC_REPORT_SHARDREPORT_H
#define CTXC_REPORT_SHARDREPORT_H

#include "ctxc/Shard/ShardCost.h"

namespace ctxc {

void writeShardText(const shard::ShardCost &cost, llvm::raw_ostream &os);

/// One line for each split of the same ranks, the fastest first.
void writeShardTable(llvm::ArrayRef<shard::ShardCost> costs, llvm::raw_ostream &os);

/// `others`: the other splits of the same number of ranks, the fastest first.
void writeShardJson(const shard::ShardCost &cost, llvm::ArrayRef<shard::ShardCost> others,
                    llvm::raw_ostream &os);

} // namespace ctxc

#endif // CTXC_REPORT_SHARDREPORT_H
