//===- Layers.h - where the layers of a program are ------------------------===//
#ifndef CTXC_IMPORT_LAYERS_H
#define CTXC_IMPORT_LAYERS_H

#include "ctxc/Analysis/TokenAxes.h"
#include "llvm/Support/Error.h"

namespace ctxc::pt2 {

struct Layer {
  std::string path;                 ///< "model.layers.0"; empty for a program that is one block
  std::vector<graph::CallOp> calls; ///< those that read data, in order
};

/// The layers of `program`, in order: modules of the lists ("layers.0", "layers.1", …) of which one
/// joins tokens, outermost lists first. None where there is no such list. A layer that runs twice,
/// so that what it makes comes back to it, is an error.
llvm::Expected<std::vector<Layer>> findLayers(graph::ProgramOp program, const TokenAxes &axes);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_LAYERS_H
