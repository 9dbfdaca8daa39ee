#include "bench/WeightBytes.h"
#include "ctxc/Program/Weights.h"

using namespace mlir;
using namespace ctxc;

/// How many slices of the parameter's first dimension `user` reads.
static int64_t rowsRead(xf::ParamOp param, Operation *user) {
  int64_t all = cast<RankedTensorType>(param.getType()).getDimSize(0);
  if (isa<xf::EmbedOp>(user))
    return 1;
  if (auto experts = dyn_cast<xf::ExpertLinearOp>(user))
    return cast<RankedTensorType>(experts.getSelected().getType()).getDimSize(0);
  return all;
}

int64_t bench::weightBytes(const Program &program) {
  int64_t bytes = 0;
  for (ProgramStep step : program.steps)
    for (xf::ParamOp param : step.block.getBody().getOps<xf::ParamOp>()) {
      auto type = cast<RankedTensorType>(param.getType());
      int64_t rows = 0, all = type.getRank() ? type.getDimSize(0) : 1;
      for (Operation *user : param->getUsers())
        rows = std::max(rows, type.getRank() ? rowsRead(param, user) : 1);
      bytes += bytesOf(storageOf(type.getElementType()), type.getNumElements() / all * rows);
    }
  return bytes;
}
