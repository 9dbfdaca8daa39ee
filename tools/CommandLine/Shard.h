//===- Shard.h - a command that several ranks run together -----------------===//
//
// mpirun starts the same command on every rank. Rank 0 runs it, and is the only one to print and to
// write files; the others open the model and compute what it asks for. All of them end with rank
// 0's exit code.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TOOLS_COMMANDLINE_SHARD_H
#define CTXC_TOOLS_COMMANDLINE_SHARD_H

#include "ctxc/Session/Model.h"
#include "tools/CommandLine/CommandLine.h"

namespace ctxc::driver {

/// --shard
OptionSpec shardOption();

/// How ranks share a model: `tensor` of them have each layer, and `pipeline` groups of these have
/// consecutive layers.
struct RankGrid {
  int64_t tensor = 1, pipeline = 1;
};
/// Reads "tensor=T,pipeline=P", of which one may be left out.
llvm::Expected<RankGrid> parseRanks(llvm::StringRef text);

/// Where a command with shardOption() is given it: joins the other ranks, for the rest of the
/// process. `words`: the command line, which has to be the same on all. Errors: options that do not
/// go with it; those of Ranks::join.
llvm::Error joinRanks(const Command &command, const Arguments &arguments,
                      llvm::ArrayRef<llvm::StringRef> words);

/// Whether this is one of the ranks that only compute.
bool isServing();
/// The ranks that were joined, or null; and how many of them share each layer.
Ranks *joinedRanks();
int joinedTensor();

/// With a model that is ready to run: has rank 0 compare the ranks, and has the others serve until
/// it ends, which is an error there. Without ranks it does nothing.
llvm::Error meetRanks(Model &model);

/// For the end of a command: prints its error, has the other ranks end too, and returns the exit
/// code.
int endCommand(llvm::Expected<int> code);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_COMMANDLINE_SHARD_H
