//===- Stage.h - a part of a model's chain of steps, and its neighbours ---===//
//
// A model on several ranks is cut into stages of consecutive steps. From the stages before it, a
// stage needs the values that cross its beginning: in most models, only the residual stream.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_RUNTIME_SHARD_STAGE_H
#define CTXC_RUNTIME_SHARD_STAGE_H

#include "ctxc/Program/Program.h"
#include "ctxc/Shard/LocalBlock.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/ErrorHandling.h"
#include <vector>

namespace ctxc {

/// Consecutive steps of a program, and the values that enter and leave them.
struct Stage {
  size_t first = 0, end = 0;              ///< the steps [first, end)
  llvm::SmallVector<mlir::Value> in, out; ///< the values that cross its beginning and its end
  int64_t bytes = 0;                      ///< of weights that the stage reads for a token

  bool has(size_t step) const { return first <= step && step < end; }
};

/// The whole program as one stage.
Stage wholeStage(const Program &program);

/// How many bytes of a parameter its block reads for a token: all of them. An embedding table
/// counts as none, since one row of it is negligible.
int64_t bytesRead(xf::ParamOp param);

/// The bytes of weights that each step reads for a token. A parameter that several steps share
/// counts in each.
std::vector<int64_t> bytesOfSteps(const Program &program);

/// Cuts the program into `count` stages so that the stage that reads most reads as few bytes as
/// possible. The steps before the first layer are in its stage. Errors: more stages than layers.
llvm::Expected<std::vector<Stage>> cutIntoStages(const Program &program, int64_t count);

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

#endif // CTXC_RUNTIME_SHARD_STAGE_H
