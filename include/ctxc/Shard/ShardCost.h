//===- ShardCost.h - predicts what a model costs on many ranks --------------===//
//
// Tensor and pipeline parallelism together: T ranks share each layer (Split.h), P groups of them
// have consecutive layers, cut as for a run: the group that reads most bytes reads as few as
// possible, and the head counts as a layer of its bytes. A token goes through the groups one after
// the other; each sends its residual streams to the next. All times are lower bounds: a rank reads
// its weights and its cache once at full speed, and a message takes its latency and the time for
// its bytes.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SHARD_SHARDCOST_H
#define CTXC_SHARD_SHARDCOST_H

#include "ctxc/Program/Program.h"
#include "ctxc/Shard/Split.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace ctxc::shard {

struct ShardRequest {
  int64_t tensor = 1, pipeline = 1;
  Machine machine;
  int64_t visible[2] = {1024, 1}; ///< tokens that the full and the reduced run see
};

/// What a block, of some layers or of one of the model's ends, costs on one of its ranks.
struct PartCost {
  std::string name;
  int64_t layers = 0; ///< how many layers run it; 0 for an end
  RegionSplit split;
  /// Bytes that a rank sends to the ranks that share the block, averaged over the ranks: for a
  /// token in both runs; for a token whose patch is made; for a token that is run with a patch.
  double sent = 0, sentToPatch = 0, sentPatched = 0;
  /// The least seconds of the last two; those of the first are the split's.
  double secondsToPatch = 0, secondsPatched = 0;
  std::vector<std::string> uncut; ///< matrices that every rank has whole
};

/// One group of ranks.
struct StageCost {
  int64_t firstLayer = 0, layers = 0; ///< no layers: it has the head alone
  bool hasHead = false;
  double stored = 0, cache = 0, read = 0, operations = 0, sent = 0; ///< of one rank
  double passed = 0; ///< bytes of both runs that go to the next group for a token
  double seconds = 0, secondsToPatch = 0, secondsPatched = 0;
};

struct ShardCost {
  ShardRequest request;
  std::vector<PartCost> parts;
  std::vector<StageCost> stages;
  double streamBytes = 0;    ///< the most bytes between two groups for a token
  double seconds = 0;        ///< of a token in both runs through all stages
  double secondsToPatch = 0; ///< the same, where its patch is made
  double secondsPatched =
      0; ///< of a token that is run with a patch, and sees the reduced run's tokens
  double tokensPerSecond = 0; ///< where prompts keep all stages busy

  double storedAtMost() const;
};

/// The cost of a token of the model in both runs of Algorithm 1. Errors: more stages than layers.
llvm::Expected<ShardCost> costOf(const Program &program, const ShardRequest &request);

/// The same for every split of `ranks` ranks into tensor times pipeline, the fastest first.
llvm::Expected<std::vector<ShardCost>> costsOf(const Program &program, int64_t ranks,
                                               const ShardRequest &request);

} // namespace ctxc::shard

#endif // CTXC_SHARD_SHARDCOST_H
