//===- Sizes.h - interfaces about sizes, windows and parts of values -------===//
//
// SizesOpInterface: rewrites a block with other sizes. ContextReadingOpInterface: contextual ops
// that read only their own token, such as a convolution with one tap. PartsOpInterface: ops that
// can be solved for a part. TapOpInterface: ops that read the context and can be solved for their
// own token's operand. MultipleOpInterface: multiples of a vector.
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
/// Gives convolutions their models of SolvableOpInterface and TapOpInterface.
void attachTapModels(mlir::MLIRContext &context);
/// Gives permutations their model of SizesOpInterface.
void attachPermutationModels(mlir::MLIRContext &context);
/// Gives convolutions and recurrences their models of FactsOpInterface.
void attachContextualFacts(mlir::MLIRContext &context);

} // namespace ctxc::xf

#include "dialects/XF/XFSizes.h.inc"

namespace ctxc::xf {
/// Whether the result of `contextual` may differ with the context, given the facts `operands` of
/// its operands.
bool readsContext(mlir::Operation *contextual, llvm::ArrayRef<Facts> operands);
/// Whether `op` is solved together with others that make parts of a result: ops with
/// PartsOpInterface, the products of findDirection, their norms (isDirection) and exponentials
/// (isLength).
bool isSolvedInParts(mlir::Operation *op);
/// Whether operand `index` of `op` is one of several parts of its result, or the result a part of
/// it.
bool isPartOfResult(mlir::Operation *op, unsigned index);
bool isPartOfOperand(mlir::Operation *op, unsigned index);
/// Whether `op` reads the context and can be solved for its own token's operand (TapOpInterface).
bool isTap(mlir::Operation *op);
/// Builds x' for which `tap` gives `target`, if it gives `y` for `x`; `operands` are its others.
mlir::Value buildTapSolve(mlir::Operation *tap, mlir::OpBuilder &b, mlir::Value target,
                          mlir::Value x, mlir::Value y, mlir::ValueRange operands);
/// Builds the result of `tap` for `moved`, if it gives `y` for `x`.
mlir::Value buildTapMoved(mlir::Operation *tap, mlir::OpBuilder &b, mlir::Value moved,
                          mlir::Value x, mlir::Value y, mlir::ValueRange operands);
/// The operand of which the result of `op` is a multiple by one number (MultipleOpInterface).
std::optional<unsigned> multipliedOperand(mlir::Operation *op);
/// If `op` is `g N(d)`, a number g times an rms or l2 norm, or `N(d) / g`: the norm; null
/// otherwise. For a target t, d is solved for t's direction and g for its length, independently:
///
///     d' = t / |t|,   g' = |t| / |N(d')|, or its inverse,   so that   g' N(d') = t,
///
/// where |t| is √(mean t²) for rms and √(Σ t²) for l2; t = 0 gives d' = 0 and g' = 0.
NormalizeOp findDirection(mlir::Operation *op);
/// Whether `op` is the norm of such a product, and nothing else reads it. If it is solved for its
/// input, its result has only the direction of the target, so that a chain does not end in it.
bool isDirection(mlir::Operation *op);
/// Whether `op` is an exponential, and nothing reads it but such a product, as its number. All of
/// its targets are lengths: it reaches each but zero, of which almost no target is.
bool isLength(mlir::Operation *op);
} // namespace ctxc::xf

#endif // CTXC_DIALECTS_XF_SIZES_H
