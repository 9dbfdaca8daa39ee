// The executor of a rank: rank 0's calls, and what the others do for them.
#ifndef CTXC_LIB_RUNTIME_SHARD_SHARDEDEXECUTOR_H
#define CTXC_LIB_RUNTIME_SHARD_SHARDEDEXECUTOR_H

#include "ctxc/Program/ModelEnds.h"
#include "ctxc/Runtime/Shard/ShardedExecutor.h"
#include "lib/Runtime/CompiledExecutor.h"
#include "lib/Runtime/Shard/Link.h"
#include "lib/Runtime/Shard/Messages.h"
#include "llvm/ADT/DenseMap.h"
#include <map>

namespace ctxc {

enum RankTag { CommandTag = firstFreeTag, ReplyTag, HelloTag };

/// Runs that are no longer used, whose state other ranks may drop.
using DroppedRuns = std::vector<int64_t>;

/// Rank 0's run. The other ranks know it by its number.
class ShardedRun : public Run {
public:
  ShardedRun(int64_t number, int64_t capacity, std::shared_ptr<DroppedRuns> dropped)
      : number(number), capacity(capacity), dropped(std::move(dropped)) {}
  ~ShardedRun() override { dropped->push_back(number); }
  int64_t size() const override { return count; }
  void truncate(int64_t tokens) override { count = std::min(count, tokens); }

  const int64_t number, capacity;
  int64_t count = 0;
  std::unique_ptr<Run> part; ///< the state of this rank's steps; made on first use

private:
  std::shared_ptr<DroppedRuns> dropped;
};

/// A layer's output that an observer is to see.
struct Observed {
  bool isReduced;
  int64_t layer, rows;
  std::vector<double> numbers;
};

class RankExecutor : public ShardedExecutor {
public:
  RankExecutor(const Program &program, Weights &weights, std::vector<Stage> stages, Ranks &ranks,
               CompiledOptions options, const RankOptions &onRanks)
      : program(program), weights(weights), options(std::move(options)), onRanks(onRanks),
        stages(std::move(stages)), ranks(ranks), tensor(onRanks.tensor), link(ranks, tensor) {}
  /// On rank 0, where ranks have devices or it is not the first, it returns when every rank has an
  /// executor, or says why one has none.
  llvm::Error create();
  /// Computes this rank's part of what rank 0 asks for. Errors: RanksLost; others are replied.
  llvm::Error take(Request request, MessageReader &command, Answer answer);

  bool isBidirectional() const override { return local->isBidirectional(); }
  int64_t vocabulary() const override { return idsOf(program); }
  int64_t layers() const override { return program.layers; }
  std::optional<int64_t> embeddingWidth() const override { return local->embeddingWidth(); }

  std::vector<ElementRun> elementsOf(llvm::StringRef parameter) const override;
  int rankOf(int64_t layer) const override;
  int ranksOfLayer() const override { return tensor; }
  llvm::Expected<double> queryRank(int rank, llvm::StringRef question) override;
  llvm::Expected<std::vector<RankFacts>> facts() override;

protected:
  std::unique_ptr<Run> makeRun(int64_t capacity) override {
    return std::make_unique<ShardedRun>(++lastRun, capacity, dropped);
  }
  llvm::Error copyState(const Run &from, Run &to) override;
  llvm::Expected<Logits> computeLogits(Run &run, llvm::ArrayRef<Input> tokens,
                                       llvm::ArrayRef<int64_t> positions,
                                       const ForwardOptions &options) override;
  llvm::Expected<int64_t> computeNext(Run &run, const Input &token, int64_t position,
                                      const ForwardOptions &options) override;
  llvm::Expected<PatchStep> computePatch(Run &full, Run &reduced, const Input &token,
                                         int64_t position, const PatchOptions &options) override;
  llvm::Error computePatchEach(Run &full, Run &reduced, llvm::ArrayRef<Input> tokens,
                               llvm::ArrayRef<int64_t> positions, const PatchEachOptions &options,
                               PatchSink sink) override;
  llvm::Expected<Logits> computeHead(llvm::ArrayRef<double> vectors, int64_t count) override;
  llvm::Error computeStep(const StepRows &rows, Run *run, std::vector<Rows> &outputs) override;

private:
  // Rank 0 (ShardedCalls.cpp).
  MessageWriter begin(Request request);
  Run &partOf(ShardedRun &run);
  static void name(MessageWriter &command, const ShardedRun &run);
  void describe(MessageWriter &command, ShardedRun &run);
  llvm::Error sendToAll(const MessageWriter &command);
  llvm::Error sendForward(Request request, ShardedRun &run, llvm::ArrayRef<Input> tokens,
                          llvm::ArrayRef<int64_t> positions, const ForwardOptions &options);
  Patch partOf(const Patch &patch, int rank) const;
  /// Last words of ranks that ended a call before the others.
  using EarlyReplies = std::map<int, MessageReader>;
  llvm::Expected<MessageReader> lastReply(int rank);
  llvm::Error settle(llvm::Error own, llvm::function_ref<void(int, MessageReader &)> take,
                     EarlyReplies early = {});
  static llvm::Error lost(llvm::Error error, llvm::Error other);
  static void readObserved(MessageReader &reply, const LayerObserver &observer,
                           const LayerObserver &ofReduced);
  llvm::Error giveRow(const TokenPatch &own, PatchSink sink, EarlyReplies &early);
  llvm::Expected<Logits> ownHead(llvm::ArrayRef<double> vectors, int64_t count);
  llvm::Expected<MessageReader> askOne(int rank, MessageWriter command);

  // The others (Serve.cpp).
  llvm::Error takeForward(Request request, MessageReader &command, int64_t number);
  llvm::Error takeBegin(int64_t number);
  llvm::Error takePatch(MessageReader &command, int64_t number);
  llvm::Error takePatchEach(MessageReader &command, int64_t number, Answer answer);
  llvm::Error takeHead(MessageReader &command, int64_t number);
  llvm::Error takeStep(MessageReader &command, int64_t number);
  llvm::Error takeCopy(MessageReader &command);
  llvm::Error end(Link::Call &call, llvm::Error error,
                  llvm::function_ref<void(MessageWriter &)> write);
  llvm::Error reply(llvm::Error error, const MessageWriter &results);
  llvm::Error giveOwnRow(const TokenPatch &row, Answer answer);
  Run &runOf(MessageReader &command);

  llvm::Error makeLocal();
  llvm::Expected<std::unique_ptr<Executor>> makeCompiled();
  llvm::Expected<std::unique_ptr<Executor>> makeOnDevice();
  RankFacts ownFacts() const;
  int64_t ownBytes() const;
  llvm::Error shareBlocks();

  size_t stageOf(int rank) const { return rank / tensor; }
  /// Whether this rank computes a step.
  bool has(size_t step) const { return stages[stageOf(ranks.rank())].has(step); }
  /// Of the ranks of a stage, which compute the same results, one gives them to rank 0.
  bool isSpeaker(int rank) const { return rank % tensor == 0; }
  int lastSpeaker() const { return ranks.count() - tensor; }
  bool hasHead() const { return stageOf(ranks.rank()) + 1 == stages.size(); }

  const Program &program;
  Weights &weights;
  CompiledOptions options;
  const RankOptions onRanks;
  const std::vector<Stage> stages;
  Ranks &ranks;
  const int tensor; ///< how many ranks share a stage
  Link link;
  std::unique_ptr<Executor> local; ///< of this rank's stage
  /// How many tokens local's patchEach takes through the layers together.
  std::function<int64_t(const PatchEachOptions &)> patchChunk;

  int64_t lastRun = 0, lastCall = 0;
  std::shared_ptr<DroppedRuns> dropped = std::make_shared<DroppedRuns>();
  std::vector<PatchableNames> names;          ///< of each stage's steps
  std::unique_ptr<shard::LocalBlocks> blocks; ///< where several ranks share a stage

  llvm::DenseMap<int64_t, std::unique_ptr<Run>> runs; ///< a rank's part of rank 0's, by number
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_SHARD_SHARDEDEXECUTOR_H
