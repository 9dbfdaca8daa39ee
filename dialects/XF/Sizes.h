//===- Sizes.h - interfaces about sizes, windows and parts of values -------===//
//
// SizesOpInterface: rewrites a block with other sizes. ContextReadingOpInterface: contextual ops
// that read only their own token, such as a convolution with one tap. PartsOpInterface: ops that
// can be solved for a part. MultipleOpInterface: multiples of a vector.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_DIALECTS_XF_SIZES_H
#define CTXC_DIALECTS_XF_SIZES_H

#include "dialects/XF/XF.h"

namespace ctxc::xf {

/// A relation between sizes that a change of sizes must keep.
struct SizeRelation {
  enum Kind {
    Product, ///< the product of `left` is that of `right`
    Sum,     ///< the sum of `left` is that of `right`
    Multiple ///< left[0] is a multiple of right[0]
  } kind;
  llvm::SmallVector<int64_t, 4> left, right;
  /// Multiple: right[0] is a number that stays as it is.
  bool fixed = false;
};

/// Gives the ops of xf their models of the interfaces below.
void attachSizeModels(mlir::MLIRContext &context);
/// Gives concatenations and slices their models of SolvableOpInterface and PartsOpInterface, and
/// products and quotients theirs of MultipleOpInterface.
void attachPartModels(mlir::MLIRContext &context);
/// Gives convolutions and recurrences their models of FactsOpInterface.
void attachContextualFacts(mlir::MLIRContext &context);

} // namespace ctxc::xf

#include "dialects/XF/XFSizes.h.inc"

namespace ctxc::xf {
/// Whether the result of `contextual` may differ with the context, given the facts `operands` of
/// its operands.
bool readsContext(mlir::Operation *contextual, llvm::ArrayRef<Facts> operands);
/// Whether operand `index` of `op` is one of several parts of its result, or the result a part of
/// it (PartsOpInterface).
bool isPartOfResult(mlir::Operation *op, unsigned index);
bool isPartOfOperand(mlir::Operation *op, unsigned index);
/// The operand of which the result of `op` is a multiple by one number (MultipleOpInterface).
std::optional<unsigned> multipliedOperand(mlir::Operation *op);
} // namespace ctxc::xf

#endif // CTXC_DIALECTS_XF_SIZES_H
