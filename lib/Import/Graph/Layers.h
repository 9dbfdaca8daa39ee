//===- Layers.h - where the layers of a program are ------------------------===//
#ifndef CTXC_IMPORT_LAYERS_H
#define CTXC_IMPORT_LAYERS_H

#include "ctxc/Analysis/TokenAxes.h"
#include "llvm/Support/Error.h"

namespace ctxc::pt2 {

struct Layer {
  std::string path; ///< "model.layers.0"; empty for a program that is one block
  std::vector<graph::CallOp> calls = {};           ///< those that read data, in order
  llvm::DenseSet<mlir::Operation *> borrowed = {}; ///< those of `calls` that are another layer's
  std::vector<std::string> others = {};            ///< "mlps.0", a part in another list
  bool joined = false;                             ///< with ops that its parent has written
};

/// The layers of `program`, in order: modules of the lists ("layers.0", "layers.1", …) of which one
/// joins tokens, outermost lists first, with what belongs to them (JoinLayers.h). None where there
/// is no such list. A layer that runs several times is as many layers, of one path.
llvm::Expected<std::vector<Layer>> findLayers(graph::ProgramOp program, const TokenAxes &axes);

/// Of a program without such lists: the outermost modules that join tokens and have no embedding,
/// such as "block". A layer reaches from one value through which all goes to another: it has what
/// else stands between these, and what is added to the stream behind, up to the next module that
/// joins tokens. So attention by itself has the MLP that its parent adds. None where a module with
/// an embedding joins tokens itself, or where no such value says what belongs to attention.
std::vector<Layer> findModules(graph::ProgramOp program, const TokenAxes &axes);

/// Leaves out the layers of which no op is in `live`. An error where none is left.
llvm::Error keepLive(std::vector<Layer> &layers, const llvm::DenseSet<mlir::Operation *> &live,
                     graph::ProgramOp program);

/// The last name of a path without its number: "layers" of "model.layers.0".
llvm::StringRef nameOfList(llvm::StringRef path);

/// Whether `value` is one of a token, of a fixed size, so that a layer can read or give it.
bool isOfOneToken(mlir::Value value, const TokenAxes &axes);

/// Whether `value` is made of a parameter, and of nothing that the model reads.
bool isOfParameter(mlir::Value value, const TokenAxes &axes);

/// Has a layer compute for itself what it would read of others and what is of no single token, such
/// as which tokens an earlier layer selected for each: from what is of one, by the same calls. None
/// of these may read a parameter, which a patch of the other layer could change.
void borrowCalls(std::vector<Layer> &layers, const TokenAxes &axes);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_LAYERS_H
