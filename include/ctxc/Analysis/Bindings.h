//===- Bindings.h - what a layer says about a block's parameters ----------===//
#ifndef CTXC_ANALYSIS_BINDINGS_H
#define CTXC_ANALYSIS_BINDINGS_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace ctxc {

/// The bindings of a block's parameters in a layer, by the block's names.
struct Bindings {
  llvm::StringSet<> frozen; ///< may not be patched
  llvm::StringSet<> shared; ///< stored under a name that another layer uses too
  /// If the model runs the layer several times: of the parameters that nothing else reads, how
  /// often it does. One change then has to serve all runs.
  llvm::StringMap<unsigned> runs;
};

} // namespace ctxc

#endif // CTXC_ANALYSIS_BINDINGS_H
