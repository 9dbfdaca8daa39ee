// float32 numbers as sums of bfloat16 numbers, whose products are exact: what tile registers need
// to multiply as exactly as float32 does.
//
// The first part is a number rounded to bfloat16, which has 8 significant bits. Each next part is
// what the parts before it leave over, rounded in the same way; what is left over is itself a
// float32 number, without rounding. Three parts hold all 24 bits of a float32 number, two the 11
// bits of a float16 number, and one a bfloat16 number. Of quantised numbers, those that are four or
// five bits times a float16 scale need two, and four bits times a power of two need one. (Numbers
// below 2⁻¹⁰², whose last part is too small for bfloat16, lose it.)
//
// A product of x and w is the sum of the products of their parts. Part p of x is at most 2⁻⁹ᵖ |x|,
// so that products of parts p and q with p + q > 2 are together less than 2⁻²⁵ |x w|, which is half
// of what rounding a float32 number may change. They are left out.
#ifndef CTXC_LIB_LOWERING_SPLITNUMBERS_H
#define CTXC_LIB_LOWERING_SPLITNUMBERS_H

#include "mlir/IR/Builders.h"

namespace ctxc::split {

/// How many parts a float32 number has.
constexpr int64_t parts = 3;

/// How many parts a number of type f32, f16 or bf16 has, or one of a quantised type in float32.
int64_t partsOf(mlir::Type element);

/// The next part of `rest`, a float32 number or a vector of them. Subtracts it from `rest`.
mlir::Value takePart(mlir::OpBuilder &b, mlir::Location loc, mlir::Value &rest);

/// The first `count` parts of `numbers`, of type f32, f16 or bf16: each as it is where it needs
/// one.
llvm::SmallVector<mlir::Value> takeParts(mlir::OpBuilder &b, mlir::Location loc,
                                         mlir::Value numbers, int64_t count);

/// Parts of two numbers to multiply.
struct Product {
  int64_t x, w;
};
/// The products of a number x with a number w of `wParts` parts, in an order in which each has a
/// factor in common with the one before.
llvm::SmallVector<Product> products(int64_t wParts);

} // namespace ctxc::split

#endif // CTXC_LIB_LOWERING_SPLITNUMBERS_H
