//===- FoldLayers.h - joins layers that are only a mixer with a later one --===//
//
// A layer that mixes tokens and has no parameter outside of its contextual part cannot absorb the
// context by itself. Together with the next layer that has such a parameter, it is a residual block
// like any other: the paper's block, which the model stores as two. Nemotron-H has such layers.
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
  unsigned after;                     ///< the new layer's number after folding
  xf::LayerOp layer;
};

/// Replaces each sequence of layers without a parameter that can be patched, together with the next
/// layer that has one, by one layer with a new block that computes the same. Only later layers of
/// the sequence may read such a layer's results; if something else reads them, or if no layer with
/// parameters follows, the layer stays. In the new block, the last layer's parameters and settings
/// keep their names; those of the layer before it are named `previous.NAME`, and those of the layer
/// before that `previous.previous.NAME`; the new layer binds them to the stored names. Equal
/// sequences of blocks share a new block; blocks that no layer calls any more are erased. Layers
/// before `startLayer`, which run unpatched, do not change.
std::vector<FoldedLayers> foldLayers(mlir::ModuleOp module, unsigned startLayer = 0);

} // namespace ctxc

#endif // CTXC_TRANSFORMS_FOLDLAYERS_H
