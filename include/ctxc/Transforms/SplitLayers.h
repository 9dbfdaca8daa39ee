//===- SplitLayers.h - layers in parts, so that matrices can be fitted ----===//
//
// To fit a matrix, the run has to stop in front of it, when its input and the wanted output are
// known, and nothing behind it has been computed yet. So each layer with matrices to fit becomes
// several steps: the ops before a matrix, only the product with the matrix, and the ops after it. A
// step that computes only a product can be repeated with another matrix.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TRANSFORMS_SPLITLAYERS_H
#define CTXC_TRANSFORMS_SPLITLAYERS_H

#include "ctxc/Planning/BlockPlan.h"
#include "ctxc/Program/Program.h"

namespace ctxc {

/// A matrix W of a layer, and the target of its product. Values are the split model's.
struct SplitSite {
  int64_t layer = 0;                   ///< among the model's layers, from 0
  size_t step = 0;                     ///< of the program: computes only y = W h
  mlir::Value data, product;           ///< h and y
  mlir::Value goal;                    ///< a step of `targets` solves the target from this value
  std::string matrix;                  ///< its stored name
  llvm::SmallVector<int64_t, 2> shape; ///< as it is stored
  bool transposed = false;             ///< stored as (in, out)
  /// If an RMS norm and a scale follow, (offset + m) ⊙ Norm(y): m's stored name. The target is then
  /// the target of the scale's output, otherwise that of y.
  std::string scale;
  double offset = 0, eps = 0;
};

struct SplitProgram {
  Program program;
  /// One step for each site: (goal in the full run, other values of the chain) → target.
  Program targets;
  std::vector<SplitSite> sites; ///< in the order of the steps
};

/// The matrices of a layer to fit, as output patches whose first op is a matrix, in the order in
/// which they are fitted: none reads what a later one writes.
using SitesCallback = llvm::function_ref<llvm::SmallVector<OutputPatch>(
    xf::LayerOp layer, xf::BlockOp block, int64_t index)>;

/// Splits the layers of `program`, which buildProgram made without plans. Its module is changed.
mlir::FailureOr<SplitProgram> splitLayers(Program program, SitesCallback sitesOf);

} // namespace ctxc

#endif // CTXC_TRANSFORMS_SPLITLAYERS_H
