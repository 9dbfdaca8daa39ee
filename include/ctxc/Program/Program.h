//===- Program.h - a model made ready to run: its layers and their blocks -===//
//
// What all executors run: the module after planning. Every step of
// the model is an xf.layer (outlineModelEnds); a layer that is patched has two
// more blocks beside its own, made by buildDualBlock and buildAppliedBlock.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PROGRAM_PROGRAM_H
#define CTXC_PROGRAM_PROGRAM_H

#include "dialects/Patch/Patch.h"
#include "dialects/XF/XF.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>

namespace ctxc {

/// One step of the model's chain.
struct ProgramStep {
  xf::LayerOp layer;   ///< prefix, settings, bindings; SSA operands and results
  xf::BlockOp block;   ///< the ordinary forward
  xf::BlockOp dual;    ///< null if the layer is not patched
  xf::BlockOp applied; ///< null if the layer is not patched
  /// For an embedding in place of a token (buildEmbeddingBlock); null if there is none.
  xf::BlockOp ofEmbedding;
  std::optional<int64_t> index; ///< among the layers between the model's ends, from 0

  /// Whether Algorithm 1 forms a patch in this step, with patches from layer `startLayer` on.
  bool isPatchedFrom(int64_t startLayer) const { return dual && index && *index >= startLayer; }
};

/// The steps of `model`, first to last: embedding, layers, head.
struct Program {
  mlir::ModuleOp module; ///< owned by the caller
  llvm::SmallVector<ProgramStep> steps;
  int64_t vocabulary = 0;
  int64_t layers = 0;
  std::optional<int64_t> positions; ///< the model can run at positions below this
  /// For each layer: the parameters, by the names of its block, that its plan patches for the
  /// output (G, and the matrix before a post-norm). Empty if the layer is not patched.
  std::vector<llvm::SmallVector<std::string, 2>> outputs;

  /// The index of the step that computes logits from the last layer's output; none if the model has
  /// no head, so that its results are its last layer's, or if the head reads the context.
  std::optional<size_t> head() const;
  /// The model's value that holds the logits.
  mlir::Value logits() const;
};

} // namespace ctxc

#endif // CTXC_PROGRAM_PROGRAM_H
