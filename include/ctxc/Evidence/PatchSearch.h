//===- PatchSearch.h - a blind search for a patch -------------------------===//
//
// Looks for any change of the patchable parameters, of any rank, that brings the reduced
// run's outputs to the full run's. It knows nothing of plans and lemmas, so it tests a
// rejection: it must not come nearer than the rejection claims. A patch that it does not
// find may still exist.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_EVIDENCE_PATCHSEARCH_H
#define CTXC_EVIDENCE_PATCHSEARCH_H

#include "ctxc/Evidence/Sample.h"
#include "ctxc/Planning/Planner.h"
#include "ctxc/Program/Weights.h"

namespace ctxc {

struct SearchOptions {
  uint64_t seed = 1;
  int restarts = 24; ///< the first from the weights as they are, others from random ones
  int steps = 60;    ///< of damped Gauss-Newton in a random subspace, at most
  /// No step begins once evaluations times numbers exceed this; the remaining restarts are
  /// skipped.
  int64_t budget = 20'000'000;
};

struct PatchSearch {
  double error = 0;        ///< the least ‖T' − T_C‖₂ found, over all outputs together, plus the
                           ///< possible effect of rounding
  int64_t numbers = 0;     ///< how many entries of parameters were free to change
  int64_t evaluations = 0; ///< of the block
};

/// Searches over all parameters of `block` that `options` leave patchable, even those that
/// no plan would patch (shared ones, ones that serve several vectors), but not those of the
/// contextual part. Errors: those of the reference; more than 200,000 numbers to search.
llvm::Expected<PatchSearch> searchPatch(xf::BlockOp block, const PlanOptions &options,
                                        const Sample &sample, Weights &weights, xf::LayerOp layer,
                                        const SearchOptions &search = {});

} // namespace ctxc

#endif // CTXC_EVIDENCE_PATCHSEARCH_H
