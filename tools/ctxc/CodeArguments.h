//===- CodeArguments.h - the options of `ctxc compile` --------------------===//
#ifndef CTXC_TOOLS_CTXC_CODEARGUMENTS_H
#define CTXC_TOOLS_CTXC_CODEARGUMENTS_H

#include "ctxc/Report/CostReport.h"
#include "ctxc/Session/Compile.h"
#include "ctxc/Shard/ShardCost.h"
#include "tools/CommandLine/CommandLine.h"

namespace ctxc::driver {

/// Reads --emit, --target, --prefix, --rows, --round-prompts and --remarks. --emit=xf, patch and
/// cost are not stages of code; for these the result's stage has no meaning.
llvm::Expected<CompileOptions> compileOptions(const Arguments &arguments);

/// Reads --visible, --bandwidth and --rate, which only --emit=cost has.
llvm::Expected<CostOptions> costOptions(const Arguments &arguments);

/// Reads --shard and --network, of the cost on many ranks, beside what costOptions read.
llvm::Expected<shard::ShardRequest> shardRequest(const Arguments &arguments, const CostOptions &at);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_CODEARGUMENTS_H
