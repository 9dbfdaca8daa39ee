//===- Sites.h - the ops of a layer that a plan patches -------------------===//
#ifndef CTXC_LIB_EXPERIMENTS_SITES_H
#define CTXC_LIB_EXPERIMENTS_SITES_H

#include "ctxc/Program/Program.h"

namespace ctxc::experiments {

/// Where the paper's two cases apply (ImplicitGradient.h).
struct LayerSites {
  llvm::SmallVector<mlir::Operation *> inputs; ///< F: matrices and biases
  mlir::Operation *output = nullptr;           ///< G: a matrix, a bias, or a post-norm's scale
  xf::LinearOp normMatrix = nullptr;           ///< the matrix before that norm
};

/// The sites of a patched step; an error that says why the layer is neither case.
llvm::Expected<LayerSites> sitesOf(const ProgramStep &step);

/// The parameter that an assignable op reads.
xf::ParamOp parameterOf(mlir::Operation *op);

} // namespace ctxc::experiments

#endif // CTXC_LIB_EXPERIMENTS_SITES_H
