//===- Mixtures.h - where a block's routers and experts are ---------------===//
//
// For drawings: which ops of a block are a router, and which are the experts that it selects.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_REPORT_MIXTURES_H
#define CTXC_REPORT_MIXTURES_H

#include "dialects/XF/XF.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace ctxc {

/// One selection and what belongs to it.
struct Mixture {
  using Ops = llvm::SmallPtrSet<mlir::Operation *, 8>;
  xf::TopKOp selection; ///< of `selected` out of `count`
  int64_t selected, count;
  /// The ops that serve only the selection and the weights of the selected experts.
  Ops router;
  /// The selected experts' matrices, and the ops between them.
  Ops experts;
};

/// The block's mixtures in the order of their selections; an op belongs to one at most.
llvm::SmallVector<Mixture> findMixtures(xf::BlockOp block);

} // namespace ctxc

#endif // CTXC_REPORT_MIXTURES_H
