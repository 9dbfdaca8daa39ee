//===- Saturation.h - what floating point makes of what comes close ----------===//
//
// σ(u) comes close to 1 and reaches it nowhere; as a number of floating point it is 1 on an open
// set. So an entry has limits (Facts): numbers that it is rounded to. It may also follow another
// value: silu(u) is rounded to u where u is large, tanh(u) to u where it is nearly zero, and
// tanh(u) w to w. Where a choice of limits and of what is followed makes a sum vanish, the sum is
// zero on an open set (SumFacts.h).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_DIALECTS_XF_SATURATION_H
#define CTXC_DIALECTS_XF_SATURATION_H

#include "dialects/XF/XF.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace ctxc::xf {

/// `value` times `factor`.
struct Followed {
  mlir::Value value;
  double factor;
};
struct Saturation {
  std::vector<double> limits;
  std::vector<Followed> followed;
};

/// What the result of `op`, which is no sum and depends on more than settings, is rounded to.
/// `isFixed`: whether a value depends on settings alone.
Saturation saturationOf(mlir::Operation *op, llvm::function_ref<const Facts &(mlir::Value)> of,
                        llvm::function_ref<bool(mlir::Value)> isFixed);

/// Whether the result of an op is linear in an operand, without a constant.
bool isLinearIn(mlir::OpOperand &operand);

/// Leaves each number once, and none that the result's interval excludes.
void tidyLimits(Facts &facts);

/// Sets by how many numbers the result of `op`, which depends on more than settings and whose
/// limits are set, is taken to zero, and how it grows. `isSum`: it adds up its operands.
void setExtremes(mlir::Operation *op, bool isSum, llvm::function_ref<const Facts &(mlir::Value)> of,
                 Facts &facts);

} // namespace ctxc::xf

#endif // CTXC_DIALECTS_XF_SATURATION_H
