// How far a full run's outputs are from all combinations of fewer vectors (Analysis/OutputSpan.h).
#ifndef CTXC_LIB_EVIDENCE_RANKBOUND_H
#define CTXC_LIB_EVIDENCE_RANKBOUND_H

#include "BlockRun.h"
#include "ConvexDistance.h"
#include "ctxc/Analysis/OutputSpan.h"

namespace ctxc {

/// The farthest of `spans` from `full`, all outputs of the sample's full run: `distance` is proven,
/// and `direction` leads from the nearest combination to the full run's outputs. Errors: those of
/// the reference.
llvm::Expected<Separation> separateByRank(xf::BlockOp block, llvm::ArrayRef<OutputSpan> spans,
                                          const Sample &sample, const RunSource &from,
                                          const Vector &full);

} // namespace ctxc

#endif // CTXC_LIB_EVIDENCE_RANKBOUND_H
