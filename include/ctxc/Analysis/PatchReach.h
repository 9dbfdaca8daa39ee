//===- PatchReach.h - how far patches can move a value ---------------------===//
//
// The other half of a verdict: an upper bound on the values that *any* change of the patchable
// parameters can reach, at fixed data. If the context changes the output of a block by more than
// this bound, no patch exists (Theorem 4, "impossibility", and its relatives). All parameters are
// considered together, so the bound covers what several narrow sites can do jointly.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_ANALYSIS_PATCHREACH_H
#define CTXC_ANALYSIS_PATCHREACH_H

#include "ctxc/Analysis/Sites.h"

namespace ctxc {

using xf::Reach;

/// The reach of every value of a block, op by op through ReachOpInterface.
class PatchReach {
public:
  PatchReach(const BlockGraph &graph, const Sites &sites, const ZeroRange &zeros);
  const Reach &reach(mlir::Value value) const { return table.find(value)->second; }

private:
  Reach transfer(mlir::Operation *op) const;
  Reach image(mlir::Operation *op) const;

  const Sites &sites;
  const ZeroRange &zeros;
  llvm::DenseMap<mlir::Value, Reach> table;
};

} // namespace ctxc

#endif // CTXC_ANALYSIS_PATCHREACH_H
