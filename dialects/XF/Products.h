// What the facts need to know of products, whatever op they are.
#ifndef CTXC_DIALECTS_XF_PRODUCTS_H
#define CTXC_DIALECTS_XF_PRODUCTS_H

#include "dialects/XF/XF.h"

namespace ctxc::xf {

/// Whether `op`, solved for operand `index`, is a product with what is not zero on an open set:
/// then what moves the operand moves the result, or it is zero.
bool handsOnMovers(SolvableOpInterface op, unsigned index);

/// Whether the result is the product of the two operands, entry by entry: solved for either, it
/// divides by the other.
bool isProduct(mlir::Operation *op);

} // namespace ctxc::xf

#endif // CTXC_DIALECTS_XF_PRODUCTS_H
