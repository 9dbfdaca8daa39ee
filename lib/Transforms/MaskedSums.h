//===- MaskedSums.h - sums in which each entry comes from one term ----------===//
//
// m ⊙ a + n ⊙ b, where the known vectors m and n share no entry that is not zero, is (m + n) times
// the entries of a where m has some, and of b elsewhere. A chain is solved for both parts of that,
// while a zero in a mask stops it.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LIB_TRANSFORMS_MASKEDSUMS_H
#define CTXC_LIB_TRANSFORMS_MASKEDSUMS_H

#include "dialects/XF/XF.h"

namespace ctxc {

/// Writes each such sum of `block` in the second form. Returns the number of joined terms.
unsigned joinMaskedTerms(xf::BlockOp block);

} // namespace ctxc

#endif // CTXC_LIB_TRANSFORMS_MASKEDSUMS_H
