//===- OutputChain.h - the chain from a patched op to its target value ----===//
#ifndef CTXC_ANALYSIS_OUTPUTCHAIN_H
#define CTXC_ANALYSIS_OUTPUTCHAIN_H

#include "dialects/XF/XF.h"
#include "llvm/ADT/SmallVector.h"

namespace ctxc {

/// One link of an output chain: `op` is solved for its operand `operand`.
struct ChainLink {
  mlir::Operation *op;
  unsigned operand;
};

/// The links from G's result to the target value, in that order.
struct OutputChain {
  mlir::Operation *site = nullptr; ///< G
  llvm::SmallVector<ChainLink> links;
};

} // namespace ctxc

#endif // CTXC_ANALYSIS_OUTPUTCHAIN_H
