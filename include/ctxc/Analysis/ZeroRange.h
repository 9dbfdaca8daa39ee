//===- ZeroRange.h - zero and image facts of a block's values -------------===//
//
// One forward pass over FactsOpInterface. Block inputs are generic: zero on a
// null set of activations at most. Of the result of an op without the
// interface nothing is known.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_ANALYSIS_ZERORANGE_H
#define CTXC_ANALYSIS_ZERORANGE_H

#include "dialects/XF/XF.h"
#include "llvm/ADT/DenseMap.h"

namespace ctxc {

class ZeroRange {
public:
  explicit ZeroRange(xf::BlockOp block);

  const xf::Facts &facts(mlir::Value value) const { return table.find(value)->second; }

  /// Where `obligation` on `value` can fail.
  xf::Zeros failure(xf::Obligation obligation, mlir::Value value) const;

private:
  llvm::DenseMap<mlir::Value, xf::Facts> table;
};

} // namespace ctxc

#endif // CTXC_ANALYSIS_ZERORANGE_H
