//===- Split.h - how ranks share a block: which rank has what --------------===//
//
// Tensor parallelism as a dataflow. Each value of a block is, on a rank, one of
//
//   whole   the same on every rank;
//   part    of one dimension: one of as many parts as there are ranks;
//   term    of the value's shape: the value is the sum over ranks.
//
//            whole ──────────► part          taken, which costs nothing
//              ▲ ▲───────────── │            gathered over the network
//              └──── term ◄─────┘            summed over the network; an op that sums makes terms
//
// What a block takes and gives is whole; logits are on the first rank alone. Which parameters are
// cut, and along which dimension, is searched for: the split in which a rank is done first, by the
// bytes that it reads and what it waits for. Ops say how they can be cut (SplitInterface.td); no
// rule here knows a family.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SHARD_SPLIT_H
#define CTXC_SHARD_SPLIT_H

#include "ctxc/Shard/SplitRule.h"
#include "dialects/XF/XF.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/MapVector.h"
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "ctxc/Shard/SplitInterface.h.inc"

namespace ctxc::shard {

/// Gives the ops of xf and of patch their SplitOpInterface.
void registerSplitModels(mlir::DialectRegistry &registry);

/// One rank, and the network between two.
struct Machine {
  double bandwidth = 0;            ///< of its memory, bytes a second
  std::optional<double> rate;      ///< operations a second; none: they do not bound
  double network = 0, latency = 0; ///< bytes a second in one direction; seconds a message
};

struct Split {
  enum Kind { Whole, Part, Term } kind = Whole;
  int dim = -1; ///< of a part

  bool operator==(const Split &other) const { return kind == other.kind && dim == other.dim; }
  bool operator<(const Split &other) const {
    return std::tie(kind, dim) < std::tie(other.kind, other.dim);
  }
};

/// How ranks compute an op.
struct OpSplit {
  SplitRule rule;
  int index = -1;                       ///< of the rule, that the op is cut along; −1: none
  llvm::SmallVector<Split, 4> operands; ///< as a rank takes each
};

/// How ranks make a value whole together.
enum class ExchangeKind {
  Sum,     ///< of all ranks' terms
  Gather,  ///< from all ranks' parts
  Collect, ///< the same, on the first rank alone
};

struct Exchange {
  mlir::Value value;
  ExchangeKind kind = ExchangeKind::Sum;
  int64_t elements = 0;
};

/// Whether ranks' parts may differ in size.
enum class Evenness {
  Even,
  /// By one entry. Only the first dimension of matrices is cut, so that a part is a stretch of the
  /// checkpoint; for the model's ends, of which the vocabulary is any number of rows.
  Uneven,
};

/// The split of a block, or of what surrounds a model's layers, among some ranks.
struct RegionSplit {
  int64_t ranks = 1;
  llvm::MapVector<mlir::Value, Split> values; ///< as they are made
  llvm::DenseMap<mlir::Operation *, OpSplit> ops;
  std::map<std::string, Split> parameters; ///< by the block's names
  std::vector<Exchange> exchanges;         ///< in order
  /// Of one rank, for one token: bytes of parameters that it has and that it reads, and operations.
  double stored = 0, read = 0, operations = 0;
  double seconds = 0; ///< at the least, for `streams` tokens that take turns with the weights
};

/// What a region is among those of a model.
struct RegionRole {
  Evenness parts = Evenness::Even;
  /// The first rank alone needs the region's results: logits.
  bool isForFirst = false;
};

/// The best split of a region that a search finds. `streams` residual streams go through it
/// together: two in the dual block, whose sums take one message.
RegionSplit splitRegion(mlir::Block &body, int64_t ranks, int64_t streams, const Machine &machine,
                        RegionRole role = {});

/// The split of a region whose parameters are split as `parameters` says; others are whole.
RegionSplit splitRegionAs(mlir::Block &body, int64_t ranks, int64_t streams, const Machine &machine,
                          const std::map<std::string, Split> &parameters, RegionRole role = {});

/// The bytes that a rank sends, on average over the ranks, and the least seconds, for an exchange
/// of `streams` streams of float32 among `ranks` ranks: 2 (n − 1) / n of the value for a sum, (n −
/// 1) / n to gather it, and what the first rank lacks, over n, to collect it there; in no fewer
/// than ⌈log₂ n⌉ messages one after the other.
double bytesSent(const Exchange &exchange, int64_t ranks, int64_t streams);
double secondsOf(const Exchange &exchange, int64_t ranks, int64_t streams, const Machine &machine);

} // namespace ctxc::shard

#endif // CTXC_SHARD_SPLIT_H
