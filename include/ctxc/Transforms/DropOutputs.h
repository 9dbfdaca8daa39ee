//===- DropOutputs.h - outputs of layers that a model does not read --------===//
//
// A verdict is the model's: what a layer gives and nothing reads need not be what it is with the
// context. Without such outputs a block has just those that a patch has to bring to their targets.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TRANSFORMS_DROPOUTPUTS_H
#define CTXC_TRANSFORMS_DROPOUTPUTS_H

#include "mlir/IR/BuiltinOps.h"

namespace ctxc {

/// Removes the outputs of layers that do not reach the logits of their model, and the blocks'
/// values that these layers yield for them. A layer of which nothing reaches them stays as it is.
/// Where other layers run the same block and other outputs of it are read, the layer gets a copy,
/// whose name ends in `_read`. The logits stay the same. Returns the number of removed
/// outputs of layers.
unsigned dropUnreadOutputs(mlir::ModuleOp module);

} // namespace ctxc

#endif // CTXC_TRANSFORMS_DROPOUTPUTS_H
