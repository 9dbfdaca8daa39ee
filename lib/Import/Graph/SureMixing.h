// Whether a region that joins tokens lets one see another: what a rejection rests on.
#ifndef CTXC_IMPORT_SUREMIXING_H
#define CTXC_IMPORT_SUREMIXING_H

#include "ctxc/Analysis/TokenAxes.h"

namespace ctxc::pt2 {

/// Whether for weights and tokens in general the region's result varies with other tokens: it is
/// attention by its form (a softmax along the tokens of what is computed from the model's data,
/// whose result weighs values of tokens), its masks let a token see another, and none of its ops
/// can make everything zero or equal. When in doubt, false.
bool surelyMixes(llvm::ArrayRef<graph::CallOp> region, const TokenAxes &axes);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_SUREMIXING_H
