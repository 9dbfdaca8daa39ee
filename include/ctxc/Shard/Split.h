//===- Split.h - how ranks share a block: which rank has what --------------===//
//
// Tensor parallelism as a dataflow. On the ranks, each value of a block has one of three forms:
//
//   whole   every rank has the whole value;
//   part    each rank has a part of the value, cut along one dimension;
//   term    each rank has a term of the value's shape, and the value is the sum of these terms.
//
//            whole ──────────► part     a rank takes its part of a whole value: nothing is sent
//              ▲ ▲───────────── │       ranks gather a value from its parts over the network
//              └──── term ◄─────┘       an op that sums over parts makes terms; ranks add these
//
// The inputs and outputs of a block are whole, except that only the first rank has the logits. A
// search decides which parameters are cut, and along which dimension. It looks for the split that
// takes least time, predicted from the bytes that a rank reads and the messages that it waits for.
// Ops say how they can be cut (SplitInterface.td); nothing here depends on a family of models.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SHARD_SPLIT_H
#define CTXC_SHARD_SPLIT_H

#include "ctxc/Shard/SplitRule.h"
#include "dialects/XF/XF.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Error.h"
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "ctxc/Shard/SplitInterface.h.inc"

namespace ctxc::shard {

/// Gives the ops of xf and of patch their SplitOpInterface.
void registerSplitModels(mlir::DialectRegistry &registry);

/// The speed of one rank, and of the network between two.
struct Machine {
  double bandwidth = 0;            ///< of its memory, bytes a second
  std::optional<double> rate;      ///< operations a second; none: unlimited
  double network = 0, latency = 0; ///< bytes a second in one direction; seconds a message
  /// The bytes a second of a matrix that is read for two vectors at once; none: as for one.
  std::optional<double> bandwidthOfTwo = std::nullopt;
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
  int index = -1;                       ///< the rule's index that is cut; −1: none
  llvm::SmallVector<Split, 4> operands; ///< the form that the op needs each in
};

/// How ranks make a whole value.
enum class ExchangeKind {
  Sum,     ///< they add their terms
  Gather,  ///< they put their parts together
  Collect, ///< the same, only on the first rank
};

struct Exchange {
  mlir::Value value;
  ExchangeKind kind = ExchangeKind::Sum;
  int64_t elements = 0;
};

/// Whether the parts of two ranks may differ in size.
enum class Evenness {
  Even, ///< all parts have the same size
  /// Parts may differ by one entry, for the model's ends: a vocabulary may have any size. Only the
  /// first dimension of a matrix is cut, so that a part is contiguous in the checkpoint.
  Uneven,
};

/// The split of a block, or of what surrounds a model's layers, among some ranks.
struct RegionSplit {
  int64_t ranks = 1;
  llvm::MapVector<mlir::Value, Split> values; ///< the form that each is computed in
  llvm::DenseMap<mlir::Operation *, OpSplit> ops;
  std::map<std::string, Split> parameters; ///< by the block's names
  std::vector<Exchange> exchanges;         ///< in order
  /// Of one rank: bytes of parameters that it stores, and that it reads for a token; operations.
  double stored = 0, read = 0, operations = 0;
  double seconds = 0; ///< the least time for a token of each of `streams` runs, which read together
};

/// How a model uses a region.
struct RegionRole {
  Evenness parts = Evenness::Even;
  /// Only the first rank needs the region's results, which are logits.
  bool isForFirst = false;
  /// Where ranks cannot share heads evenly: how many units these have, of which the first ranks
  /// have one more. A unit is a head of keys with those of queries that read it.
  int64_t units = 0;
};

/// The role of a layer's block. Error: it has fewer heads than ranks, or several attentions whose
/// heads differ.
llvm::Expected<RegionRole> roleOfLayer(mlir::Block &body, int64_t ranks);

/// The best split of a region that a search finds. `streams` runs are computed together: two in the
/// dual block. One message carries the values of all of them.
RegionSplit splitRegion(mlir::Block &body, int64_t ranks, int64_t streams, const Machine &machine,
                        RegionRole role = {});

/// The split of a region whose parameters are split as `parameters` says; the others are whole.
RegionSplit splitRegionAs(mlir::Block &body, int64_t ranks, int64_t streams, const Machine &machine,
                          const std::map<std::string, Split> &parameters, RegionRole role = {});

/// For an exchange of a float32 value of `streams` runs among n ranks: the bytes that a rank sends,
/// averaged over the ranks, and the least seconds that the exchange takes. A sum sends 2 (n − 1) /
/// n of the value, a gather (n − 1) / n; in a collect, all ranks together send the first rank what
/// it lacks. At least ⌈log₂ n⌉ messages follow one another.
double bytesSent(const Exchange &exchange, int64_t ranks, int64_t streams);
double secondsOf(const Exchange &exchange, int64_t ranks, int64_t streams, const Machine &machine);

} // namespace ctxc::shard

#endif // CTXC_SHARD_SPLIT_H
