//===- EntryImage.h - the values of functions that are written out ----------===//
//
// x + x², x eˣ, x ⊘ (1 + |x|): entry by entry, a value may be a function of one other value. Its
// image follows from interval arithmetic with derivatives: on an interval where the derivative
// keeps its sign, a function lies between its values at the ends.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_DIALECTS_XF_ENTRYIMAGE_H
#define CTXC_DIALECTS_XF_ENTRYIMAGE_H

#include "dialects/XF/Saturation.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace ctxc::xf {

/// Tells `facts`, those of the result of `op`, what the image of its entries is, if they are, by
/// several ops, a function of one value; `of` knows the facts of that and of constants.
void tightenImage(mlir::Operation *op, Facts &facts,
                  llvm::function_ref<const Facts &(mlir::Value)> of);

/// What the result of `op` is rounded to for large entries of its operand and for entries near
/// zero, or for such entries of the one value that it is a function of by several ops; and for the
/// limits of its operand.
Saturation tailsOf(mlir::Operation *op, llvm::function_ref<const Facts &(mlir::Value)> of);

/// Drops limits of the result that a function of one value does not come close to: of softplus(x)
/// and softplus(-x) each is rounded to 0, and their sum is not.
void dropUnreached(mlir::Operation *op, std::vector<double> &limits,
                   llvm::function_ref<const Facts &(mlir::Value)> of);

} // namespace ctxc::xf

#endif // CTXC_DIALECTS_XF_ENTRYIMAGE_H
