// The outputs of a block that patches can reach, at given weights and data, as a sum of
// convex sets.
//
// The walk goes back from the outputs, through every op that is affine in what patches move (tested
// by evaluating it, so that no op is listed by name), and ends at values of three kinds: an op
// whose image is known by its facts to be bounded, one-sided or a plane, a parameter that may be
// patched, or anything else, which counts as free. Between these and the outputs everything is
// known, so that y = y₀ + Σ A_k (s_k − r_k), where r_k is value k in the unpatched reduced run.
// This set contains everything that patches reach.
#ifndef CTXC_LIB_EVIDENCE_REACHABLESET_H
#define CTXC_LIB_EVIDENCE_REACHABLESET_H

#include "BlockRun.h"
#include "ConvexDistance.h"
#include "ctxc/Analysis/Moved.h"

namespace ctxc {

/// All outputs of a block, one after the other.
Vector joined(const Activations &outputs);

/// The reachable set of the sample's reduced run; `ends`, where not null, gets the values
/// at which the walk back ended, one for each of its terms. Errors: those of the reference.
llvm::Expected<ConvexSum> reachableOutputs(xf::BlockOp block, const Moved &moved,
                                           const ZeroRange &facts, const Sample &sample,
                                           const RunSource &from,
                                           llvm::SmallVectorImpl<mlir::Value> *ends = nullptr);

/// Whether `value` is `Wᵀ W u` for every patch, and no patch moves u: it lies on one side then.
bool isHalfSpace(const Moved &moved, mlir::Value value);

} // namespace ctxc

#endif // CTXC_LIB_EVIDENCE_REACHABLESET_H
