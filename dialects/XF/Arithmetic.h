//===- Arithmetic.h - the roundings of a program ----------------------------===//
#ifndef CTXC_DIALECTS_XF_ARITHMETIC_H
#define CTXC_DIALECTS_XF_ARITHMETIC_H

#include "dialects/XF/XF.h"

namespace ctxc::xf {

/// An attribute of a module: the type with the fewest digits in which the program computes that it
/// was read from, where that is not float32. ctxc computes the same in float32.
inline constexpr llvm::StringLiteral arithmeticName = "xf.arithmetic";

/// The unit roundoff of the coarsest xf.round in `scope`, or 2⁻²⁴, that of float32.
double roundoffOfOps(mlir::Operation *scope);
/// The same, and that of the program, which the module of `scope` names.
double roundoffOfProgram(mlir::Operation *scope);

} // namespace ctxc::xf

#endif // CTXC_DIALECTS_XF_ARITHMETIC_H
