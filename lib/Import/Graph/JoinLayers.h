//===- JoinLayers.h - layers whose parts stand in several modules -----------===//
//
// A layer may be written as a block, or by its parent: as a pair of modules, or as one of each of
// several lists, whose results the parent adds up. It is the same layer:
//
//   x = layers[i](x)                         layers.0
//   x = x + layers[i][0](x); …               layers.0, and the sums between its parts and behind
//   x = x + attentions[i](x); x = x + mlps[i](x)    attentions.0 and mlps.0, and the sums
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_JOINLAYERS_H
#define CTXC_IMPORT_JOINLAYERS_H

#include "Layers.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace ctxc::pt2 {

/// The names that a layer's block has for what is stored.
class LayerNames {
public:
  explicit LayerNames(const Layer &layer) : layer(layer) {}

  /// Without the layer's own path; of a part in another list without its number, so that layers
  /// have the same names; and as it is for other modules.
  std::string of(llvm::StringRef name);
  /// The stored name of what the block calls `name`; none for the layer's own.
  std::optional<llvm::StringRef> storedAs(llvm::StringRef name) const;

private:
  const Layer &layer;
  llvm::StringMap<std::string> stored;
};

/// Joins layers that are elements of lists side by side: of the same number of elements, which run
/// in turn. The first list that joins tokens gives the layers their names. `mixing` has the lists
/// of which an element joins tokens; those that were joined with one of these are left out of
/// `layers`.
void joinLists(std::vector<Layer> &layers, const llvm::StringSet<> &mixing,
               graph::ProgramOp program, const TokenAxes &axes);

/// Makes a layer of each run of one that runs several times, and gives each the ops of its parent
/// that stand between its own, those behind that add up what it gives with what it reads, where
/// every layer has such, and those between layers that it alone reads. An error where a layer whose
/// runs differ runs again on what it made through another layer.
llvm::Error takeSums(std::vector<Layer> &layers, graph::ProgramOp program, const TokenAxes &axes);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_JOINLAYERS_H
