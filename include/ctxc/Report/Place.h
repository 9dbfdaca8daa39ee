//===- Place.h - where something is, in the user's terms -------------------===//
//
// In a file written by hand: file, line and column. In an imported checkpoint: the
// configuration file and the module, "model.layers.0.mlp.down_proj". In a program of PyTorch: all
// of these.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_REPORT_PLACE_H
#define CTXC_REPORT_PLACE_H

#include "mlir/IR/Operation.h"

namespace ctxc {

struct Place {
  std::string file;    ///< empty if none is known
  unsigned line = 0;   ///< from 1; 0 for a module of a checkpoint
  unsigned column = 0; ///< from 1
  unsigned width = 0;  ///< of what stands there, in the same line; 0 where that is not known
  std::string module;  ///< of a checkpoint or a program; empty in a file written by hand
  bool isKnown() const { return !file.empty() || !module.empty(); }
};

Place placeOf(mlir::Location location);
/// The place of the op, or of the nearest op around it that has one; if none has a place, `module`
/// is the name of the op's block or model.
Place placeOf(mlir::Operation *op);

/// Where the calls stand that lead to a location, the innermost first; empty for all but programs.
std::vector<Place> callersOf(mlir::Location location);

/// "block.mlir:3:8", "gemma3/config.json: model.layers.0.mlp.down_proj"; empty if unknown.
std::string text(const Place &place);

} // namespace ctxc

#endif // CTXC_REPORT_PLACE_H
