#include "ctxc/Program/ModelEnds.h"

using namespace mlir;
using namespace ctxc;

bool ctxc::isHeadless(const Program &program) {
  if (program.steps.empty())
    return false;
  xf::LayerOp last = program.steps.back().layer;
  auto model = last->getParentOfType<xf::ModelOp>();
  return model && isHeadless(model);
}

int64_t ctxc::idsOf(const Program &program) {
  std::optional<int64_t> least;
  for (ProgramStep step : program.steps)
    for (xf::EmbedOp embed : step.block.getBody().getOps<xf::EmbedOp>())
      if (isa_and_nonnull<xf::TokenOp>(embed.getId().getDefiningOp())) {
        int64_t rows = cast<RankedTensorType>(embed.getTable().getType()).getDimSize(0);
        least = std::min(least.value_or(rows), rows);
      }
  return least.value_or(program.vocabulary);
}
