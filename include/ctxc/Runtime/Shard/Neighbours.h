//===- Neighbours.h - what a rank exchanges with others while it runs -----===//
#ifndef CTXC_RUNTIME_SHARD_NEIGHBOURS_H
#define CTXC_RUNTIME_SHARD_NEIGHBOURS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/ErrorHandling.h"
#include <cstdint>
#include <vector>

namespace ctxc {

namespace shard {
struct Transfer;
} // namespace shard

/// One value for several tokens: a matrix with a row for each token.
using StreamRows = std::vector<float>;

/// A value that a stage's ranks exchange: `from` has this rank's part or term, `to` the result.
struct SharedRows {
  const shard::Transfer *how;
  const StreamRows *from;
  StreamRows *to;
  bool isCounted = true; ///< among the bytes of the model's values
};

/// Exchanges values with the stages before and after. A call of `receive` gets all values of
/// Stage::in, and one of `send` sends all of Stage::out, in order; where both runs are computed,
/// those of the full run come first. Each `send` corresponds to one `receive` of the next stage.
class Neighbours {
public:
  virtual ~Neighbours() = default;
  virtual llvm::Error receive(llvm::ArrayRef<StreamRows *> streams) = 0;
  virtual llvm::Error send(llvm::ArrayRef<const StreamRows *> streams) = 0;
  /// Exchanges parts of values within the stage. All its ranks call it, with the same values.
  virtual llvm::Error makeWhole(llvm::ArrayRef<SharedRows> values) = 0;
  /// For what waits for other ranks in another way: an error where one is gone.
  virtual llvm::Error checkAlive() { return llvm::Error::success(); }
  /// Counts bytes that devices sent within the stage.
  virtual void countShared(uint64_t bytes) {}
  /// Ends the processes of all ranks, with the reason. From any thread, where another one hangs.
  virtual void abandon(llvm::StringRef reason) { llvm::report_fatal_error(reason); }
};

} // namespace ctxc

#endif // CTXC_RUNTIME_SHARD_NEIGHBOURS_H
