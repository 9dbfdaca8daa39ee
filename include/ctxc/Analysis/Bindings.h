//===- Bindings.h - what a layer says about a block's parameters ----------===//
#ifndef CTXC_ANALYSIS_BINDINGS_H
#define CTXC_ANALYSIS_BINDINGS_H

#include "llvm/ADT/StringSet.h"

namespace ctxc {

/// The bindings of a block's parameters in a layer, by the block's names.
struct Bindings {
  llvm::StringSet<> frozen; ///< may not be patched
  llvm::StringSet<> shared; ///< stored under a name that another layer uses too
};

} // namespace ctxc

#endif // CTXC_ANALYSIS_BINDINGS_H
