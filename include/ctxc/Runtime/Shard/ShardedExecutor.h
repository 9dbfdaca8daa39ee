//===- ShardedExecutor.h - one model over several ranks -------------------===//
//
// A pipeline of stages: each computes consecutive layers (Stage.h) with kernels compiled for its
// ranks' processors, over the tensors of these layers alone. A stage is one rank, or several, which
// share the matrices and heads of its layers (ctxc/Shard/LocalBlock.h). Rank 0 is the one that is
// used: its executor computes its part of the first stage, asks the other ranks for theirs, and
// puts together what they give. Between two stages go a token's values that cross the cut, of both
// runs where a patch is made. A prompt goes in chunks, so that all stages work.
//
// Where each stage is one rank, numbers are, bit for bit, those of one process: the same kernels
// compute the same steps. Sums over ranks round in another way, and always in the ranks' order.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_RUNTIME_SHARD_SHARDEDEXECUTOR_H
#define CTXC_RUNTIME_SHARD_SHARDEDEXECUTOR_H

#include "ctxc/Program/RankFacts.h"
#include "ctxc/Runtime/CompiledExecutor.h"
#include "ctxc/Runtime/Shard/Ranks.h"

namespace ctxc {

class ShardedExecutor : public Executor {
public:
  /// Which elements of a stored parameter, or slice of one, this rank has, where ranks share it;
  /// none where each rank of its layer has it whole.
  virtual std::vector<ElementRun> elementsOf(llvm::StringRef parameter) const = 0;

  /// Answers a question about this rank's layers (ask).
  using Answer = llvm::function_ref<llvm::Expected<double>(llvm::StringRef question)>;

  /// Ranks other than 0: computes what rank 0 asks for, until that ends. Returns the exit code that
  /// it ends with. Errors: RanksLost.
  virtual llvm::Expected<int> serve(Answer answer) = 0;

  // The calls below, and those of Executor, are rank 0's.

  /// The first of the ranks that compute a layer; that of the first or last step for −1 and the
  /// head.
  virtual int rankOf(int64_t layer) const = 0;
  /// How many ranks share a layer.
  virtual int ranksOfLayer() const = 0;
  /// What another rank answers.
  virtual llvm::Expected<double> ask(int rank, llvm::StringRef question) = 0;
  /// Of every rank.
  virtual llvm::Expected<std::vector<RankFacts>> facts() = 0;
};

/// The executor of this rank's stage, which it shares with `tensor` − 1 others, where `tensor`
/// divides the ranks. `program`, `weights` and `ranks` must outlive it. Errors: those of
/// createCompiledExecutor, cutIntoStages and LocalBlocks::add.
llvm::Expected<std::unique_ptr<ShardedExecutor>> createShardedExecutor(const Program &program,
                                                                       Weights &weights,
                                                                       CompiledOptions options,
                                                                       Ranks &ranks, int tensor);

/// Ends `serve` on the other ranks, also where they have not come to it yet.
llvm::Error endRanks(Ranks &ranks, int exitCode);
/// For a rank that fails before it serves: waits for that end.
llvm::Expected<int> awaitEnd(Ranks &ranks);

/// What must be the same on all ranks, with its name: the build, the arguments, the weights.
using Agreement = std::vector<std::pair<std::string, std::string>>;
/// Compares it with the other ranks'. Errors, on rank 0: what differs; what kept a rank from coming
/// here (refuse).
llvm::Error agree(Ranks &ranks, const Agreement &own);
/// For a rank other than 0 that cannot come to `agree`: its reason, which rank 0 reports.
llvm::Error refuse(Ranks &ranks, llvm::StringRef reason);

} // namespace ctxc

#endif // CTXC_RUNTIME_SHARD_SHARDEDEXECUTOR_H
