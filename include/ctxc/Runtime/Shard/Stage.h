//===- Stage.h - a part of a model's chain of steps ---------------------===//
//
// A model on several ranks is cut into stages of consecutive steps. From the stages before it, a
// stage needs the values that cross its beginning: in most models, only the residual stream.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_RUNTIME_SHARD_STAGE_H
#define CTXC_RUNTIME_SHARD_STAGE_H

#include "ctxc/Program/Program.h"
#include "ctxc/Runtime/Shard/Neighbours.h"
#include "ctxc/Shard/LocalBlock.h"
#include "llvm/Support/Error.h"
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

} // namespace ctxc

#endif // CTXC_RUNTIME_SHARD_STAGE_H
