//===- Stage.h - a part of a model's chain of steps, and its neighbours ---===//
//
// A model on several ranks is cut into stages, consecutive steps each. What a stage needs of those
// before it are the values that cross its beginning, in most models the residual stream alone.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_RUNTIME_SHARD_STAGE_H
#define CTXC_RUNTIME_SHARD_STAGE_H

#include "ctxc/Program/Program.h"
#include "ctxc/Shard/LocalBlock.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace ctxc {

/// Consecutive steps of a program, and the values that enter and leave them.
struct Stage {
  size_t first = 0, end = 0;              ///< the steps [first, end)
  llvm::SmallVector<mlir::Value> in, out; ///< which cross the beginning, and the end
  int64_t bytes = 0;                      ///< of the weights that a token reads in it

  bool has(size_t step) const { return first <= step && step < end; }
};

/// The whole program as one stage.
Stage wholeStage(const Program &program);

/// The bytes of a parameter that its block reads for a token: all, but of an embedding's table
/// none, since one row of it is negligible.
int64_t bytesRead(xf::ParamOp param);

/// The bytes of weights that each step reads for a token. A parameter that several steps share
/// counts in each.
std::vector<int64_t> bytesOfSteps(const Program &program);

/// Cuts the program into `count` stages so that the largest reads as few bytes as possible; what
/// stands before the first layer belongs to that layer's stage. Errors: more stages than layers.
llvm::Expected<std::vector<Stage>> cutIntoStages(const Program &program, int64_t count);

/// One value of some tokens, a row for each.
using StreamRows = std::vector<float>;

/// A value that the ranks of a stage make whole together: of each row, `from` is this rank's.
struct SharedRows {
  const shard::Transfer *how;
  const StreamRows *from;
  StreamRows *to;
};

/// Takes streams from the stage before and hands them to the one after, each call all values of
/// Stage::in or Stage::out in order; where both runs are computed, those of the full run and then
/// those of the reduced run. Calls of the two neighbours correspond one to one.
class Neighbours {
public:
  virtual ~Neighbours() = default;
  virtual llvm::Error receive(llvm::ArrayRef<StreamRows *> streams) = 0;
  virtual llvm::Error send(llvm::ArrayRef<const StreamRows *> streams) = 0;
  /// The ranks that share a stage's steps come to each of these calls, with the same values.
  virtual llvm::Error makeWhole(llvm::ArrayRef<SharedRows> values) = 0;
};

} // namespace ctxc

#endif // CTXC_RUNTIME_SHARD_STAGE_H
