// How a loop over rows is marked whose iterations are independent of each other.
#ifndef CTXC_LIB_LOWERING_ROWLOOP_H
#define CTXC_LIB_LOWERING_ROWLOOP_H

#include "llvm/ADT/StringRef.h"

namespace ctxc {

constexpr llvm::StringLiteral kRowLoopAttr = "ctxc.rows";

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_ROWLOOP_H
