//===- PermuteParts.h - slices of one value, put together in another order --===//
//
// A concatenation of slices that together hold each entry of one value once is that value, with its
// entries in another order. As a permutation, it is one op with one operand: an output chain is
// solved through it, while it would otherwise split into chains that patch one parameter several
// times.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TRANSFORMS_PERMUTEPARTS_H
#define CTXC_TRANSFORMS_PERMUTEPARTS_H

#include "mlir/IR/BuiltinOps.h"

namespace ctxc {

/// Replaces each such concatenation in a block of `module` by an `xf.permute`, or by the value
/// itself if its entries are in their order, and erases the slices that nothing reads any more. It
/// looks through slices of slices, and through concatenations inside of the concatenation. Every
/// value stays the same, to the bit. Returns the number of replaced concatenations.
unsigned permuteParts(mlir::ModuleOp module);

} // namespace ctxc

#endif // CTXC_TRANSFORMS_PERMUTEPARTS_H
