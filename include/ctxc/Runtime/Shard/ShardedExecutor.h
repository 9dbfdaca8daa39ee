//===- ShardedExecutor.h - one model over several ranks -------------------===//
//
// A pipeline of stages. Each computes consecutive layers (Stage.h) with kernels compiled for its
// ranks' processors, and maps only the tensors of these layers. A stage is one rank, or several
// that share the matrices and heads of its layers (ctxc/Shard/LocalBlock.h). Callers use rank 0's
// executor: it computes its part of the first stage, requests the other parts from their ranks, and
// combines the results. Each stage sends the next one the values that cross the cut, of both runs
// where a patch is made. Prompts are sent in chunks, so that all stages compute at once.
//
// If each stage is one rank, the results equal those of one process bit for bit, since the same
// kernels compute the same steps. If ranks share a layer, they differ from these by the rounding of
// sums over ranks, which are added in the order of the ranks, so that every run gives the same.
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
  /// The elements that this rank has of a stored parameter (or slice of one) that ranks share;
  /// empty if each rank of the layer has the whole parameter.
  virtual std::vector<ElementRun> elementsOf(llvm::StringRef parameter) const = 0;

  /// Computes a number about this rank's layers, for rank 0's queryRank.
  using Answer = llvm::function_ref<llvm::Expected<double>(llvm::StringRef question)>;

  // The functions below, and those of Executor, are for rank 0.

  /// The first of the ranks that compute a layer; for −1, of those that compute the first step; for
  /// a number after the last layer, of those that compute the head.
  virtual int rankOf(int64_t layer) const = 0;
  /// How many ranks share a layer.
  virtual int ranksOfLayer() const = 0;
  /// Makes another rank call its Answer, and returns the number.
  virtual llvm::Expected<double> queryRank(int rank, llvm::StringRef question) = 0;
  /// Facts about every rank, in order.
  virtual llvm::Expected<std::vector<RankFacts>> facts() = 0;
};

/// Ranks that compute on GPUs, one each.
struct RankDevice {
  std::string target; ///< as Device::open takes it
  /// Called on the first rank where sums go through the hosts' memory, with the reason.
  std::function<void(llvm::StringRef reason)> onHosts = {};
};

struct RankOptions {
  int tensor = 1; ///< so many ranks share each stage; divides their number
  std::optional<RankDevice> device = std::nullopt;
  int64_t number = 0;     ///< that of the executor: all ranks give the same
  bool hasPieces = false; ///< the program's layers are split into steps (splitLayers)
};

/// The executor of this rank's stage. `program`, `weights` and `ranks` must outlive it. With a
/// device, of `options` only prompts is used. With a device, or a number above 0, rank 0 waits
/// until the others serve. Errors: those of createCompiledExecutor or createGpuExecutor,
/// cutIntoStages and LocalBlocks::add.
llvm::Expected<std::unique_ptr<ShardedExecutor>>
createShardedExecutor(const Program &program, Weights &weights, CompiledOptions options,
                      Ranks &ranks, const RankOptions &onRanks);

/// For ranks other than 0: computes what rank 0's executors request, until rank 0 ends. Returns
/// rank 0's exit code. `executor` gives this rank's executor with a number. Errors: RanksLost, also
/// where `executor` fails.
llvm::Expected<int>
serveRanks(Ranks &ranks,
           llvm::function_ref<llvm::Expected<ShardedExecutor &>(int64_t number)> executor,
           ShardedExecutor::Answer answer);

/// Ends `serve` on the other ranks, also on those that have not called it yet.
llvm::Error endRanks(Ranks &ranks, int exitCode);
/// For a rank that fails before it serves: waits for rank 0's endRanks, and returns the exit code.
llvm::Expected<int> awaitEnd(Ranks &ranks);

/// What must be the same on all ranks, with its name: the build, the arguments, the weights.
using Agreement = std::vector<std::pair<std::string, std::string>>;
/// Compares `own` with that of the other ranks. Errors, on rank 0: something differs; a rank has
/// called `refuse`, with its reason.
llvm::Error agree(Ranks &ranks, const Agreement &own);
/// For a rank other than 0 that cannot call `agree`: sends the reason, which rank 0 reports.
llvm::Error refuse(Ranks &ranks, llvm::StringRef reason);

} // namespace ctxc

#endif // CTXC_RUNTIME_SHARD_SHARDEDEXECUTOR_H
