//===- FoldLayers.h - layers of a mixer alone, and the layer behind them ---===//
//
// A layer that mixes tokens and has no parameter outside of its contextual part cannot absorb the
// context by itself. Together with the next layer that has one, it is a residual block as any
// other: the paper's block, which the model stores as two. Nemotron-H has such layers.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TRANSFORMS_FOLDLAYERS_H
#define CTXC_TRANSFORMS_FOLDLAYERS_H

#include "dialects/XF/XF.h"
#include "mlir/IR/BuiltinOps.h"
#include <vector>

namespace ctxc {

/// Layers that have become one.
struct FoldedLayers {
  llvm::SmallVector<unsigned> before; ///< their numbers among the model's layers, ascending
  unsigned after;                     ///< its number among the layers that there are now
  xf::LayerOp layer;
};

/// Replaces each run of layers without a parameter for a patch, and the layer behind it which has
/// one, by a layer of a block that does what they do. Nothing but the later layers of the run may
/// read what such a layer gives; where something does, or where no layer with parameters follows,
/// it stays. In the
/// new block the last layer's parameters and settings keep their names, and those of the layer
/// before it are named `previous.NAME`, before that `previous.previous.NAME`; the layer binds them
/// to what is stored. Equal runs of blocks share a new block; blocks that no layer calls any more
/// are erased. Layers before `startLayer`, which run unpatched, stay as they are.
std::vector<FoldedLayers> foldLayers(mlir::ModuleOp module, unsigned startLayer = 0);

} // namespace ctxc

#endif // CTXC_TRANSFORMS_FOLDLAYERS_H
