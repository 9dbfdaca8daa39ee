//===- RaiseModel.h - a program as xf.blocks, and a model of them ----------===//
#ifndef CTXC_IMPORT_RAISEMODEL_H
#define CTXC_IMPORT_RAISEMODEL_H

#include "Rotation.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

namespace ctxc::pt2 {

/// The module of xf that the program computes for one token: an xf.block for each structure of
/// layer, and, where the program reads token ids, an xf.model that runs them. A program without
/// layers is one block. What no pattern knows is a graph.opaque. `numbers` has those of buffers.
/// `joined` gets the paths of layers that are more than a module (JoinLayers.h).
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
raiseProgram(graph::ProgramOp program, Numbers numbers, llvm::StringSet<> *joined = nullptr);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_RAISEMODEL_H
