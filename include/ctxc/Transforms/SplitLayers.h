//===- SplitLayers.h - layers in parts, so that parts of them can be fitted ===//
//
// To fit a matrix, the run has to stop in front of it, when its input and the wanted output are
// known, and nothing behind it has been computed yet. So each layer with matrices to fit becomes
// several steps: the ops before a matrix, only the product with the matrix, and the ops after it. A
// step that computes only a product can be repeated with another matrix. The last matrices of a
// mixture's experts are fitted together, and with that of its shared experts; the product is then
// the sum of all of them. Each attention is a step of its own, too, so that what it reads can be
// fitted.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TRANSFORMS_SPLITLAYERS_H
#define CTXC_TRANSFORMS_SPLITLAYERS_H

#include "ctxc/Planning/BlockPlan.h"
#include "ctxc/Program/Program.h"

namespace ctxc {

/// A matrix to fit, as an output patch whose first op is a matrix.
struct FitSite : OutputPatch {
  /// Of a mixture's experts: the links from their outputs to the weighted sum, xf.combine, which is
  /// the last of them, or to the xf.add behind it of `shared`. `links` begin behind it. Otherwise
  /// empty.
  llvm::SmallVector<ChainLink> toSum;
  /// The matrix of shared experts, which every token goes through; null if there is none. Its
  /// product is added to that sum.
  mlir::Operation *shared = nullptr;
  mlir::Value sharedGate; ///< one number of the token, which multiplies it before; or null

  /// What the matrix, or all experts together, give.
  mlir::Value product() const {
    return toSum.empty() ? first()->getResult(0) : toSum.back().op->getResult(0);
  }
};

/// A matrix of a layer. Values are the split model's.
struct SplitMatrix {
  mlir::Value data;                    ///< h, what it multiplies (of each chosen expert)
  std::string matrix;                  ///< its stored name
  llvm::SmallVector<int64_t, 2> shape; ///< as it is stored
  bool transposed = false;             ///< stored as (in, out)
};

/// How a token's experts are chosen and weighted, for a site that stands for all of them.
struct SplitExperts {
  mlir::Value scores, gates; ///< of all experts; of the chosen ones, by their indices
  int64_t count = 0, chosen = 0;
  int64_t groups = 1, keep = 1;      ///< as xf.top_k has them
  std::optional<SplitMatrix> shared; ///< that of shared experts
  mlir::Value sharedGate;            ///< FitSite::sharedGate
};

/// A matrix W of a layer, and the target of its product.
struct SplitSite : SplitMatrix {
  int64_t layer = 0;   ///< among the model's layers, from 0
  size_t step = 0;     ///< of the program: computes only y = W h
  mlir::Value product; ///< y
  mlir::Value goal;    ///< a step of `targets` solves the target from this value
  /// If an RMS norm and a scale follow, (offset + m) ⊙ Norm(y): m's stored name. The target is then
  /// the target of the scale's output, otherwise that of y.
  std::string scale;
  double offset = 0, eps = 0;
  std::optional<SplitExperts> experts; ///< `matrix` is their bank, and y the sum of all products
};

/// An attention, the only op of its step that reads other tokens.
struct SplitAttention {
  size_t step = 0;
  mlir::Value query, key, value, result; ///< the split model's
};

struct SplitProgram {
  Program program;
  /// One step for each site: (goal in the full run, other values of the chain) → target.
  Program targets;
  std::vector<SplitSite> sites;           ///< in the order of the steps
  std::vector<SplitAttention> attentions; ///< in the order of the steps
};

/// The matrices of a layer to fit, in the order in which they are fitted: none reads what a later
/// one writes.
using SitesCallback = llvm::function_ref<llvm::SmallVector<FitSite>(
    xf::LayerOp layer, xf::BlockOp block, int64_t index)>;

/// Splits the layers of `program`, which buildProgram made without plans. Its module is changed.
mlir::FailureOr<SplitProgram> splitLayers(Program program, SitesCallback sitesOf);

} // namespace ctxc

#endif // CTXC_TRANSFORMS_SPLITLAYERS_H
