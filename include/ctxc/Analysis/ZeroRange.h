//===- ZeroRange.h - zero and image facts of a block's values -------------===//
//
// The facts of dialects/XF/BlockFacts.h, under a layer's settings and bindings. Block inputs are
// generic: zero at most on a null set of activations. Nothing is known about the result of an op
// without the interface.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_ANALYSIS_ZERORANGE_H
#define CTXC_ANALYSIS_ZERORANGE_H

#include "dialects/XF/BlockFacts.h"

namespace ctxc {

class ZeroRange {
public:
  explicit ZeroRange(xf::BlockOp block, xf::LayerOp layer = {}) : all(block, layer) {}

  const xf::Facts &facts(mlir::Value value) const { return all[value]; }
  /// Which parameters are the same stored tensor, although the block may have several names for it.
  const xf::Identities &identities() const { return all.identities(); }

  /// Whether the contextual op's result may differ with the context.
  bool readsContext(mlir::Operation *contextual) const { return all.readsContext(contextual); }

  /// Where `obligation` on `value` can fail.
  xf::Zeros failure(xf::Obligation obligation, mlir::Value value) const {
    return xf::failureOf(obligation, value, facts(value));
  }

private:
  xf::BlockFacts all;
};

} // namespace ctxc

#endif // CTXC_ANALYSIS_ZERORANGE_H
