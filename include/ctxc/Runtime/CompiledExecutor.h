//===- CompiledExecutor.h - runs a model with kernels compiled for this CPU ===//
#ifndef CTXC_RUNTIME_COMPILEDEXECUTOR_H
#define CTXC_RUNTIME_COMPILEDEXECUTOR_H

#include "ctxc/Lowering/PromptProducts.h"
#include "ctxc/Program/Executor.h"
#include "ctxc/Program/ParallelFor.h"
#include "ctxc/Program/Program.h"
#include "ctxc/Program/Weights.h"
#include "ctxc/Runtime/Shard/Stage.h"

namespace ctxc {

struct CompiledOptions {
  int threads = 0; ///< OpenMP's; 0: one for each core
  PromptProducts prompts = PromptProducts::Exact;
  /// The caller's threads instead of OpenMP's, for all of the executor's parallel work.
  std::optional<ParallelFor> parallelFor = std::nullopt;
  /// The executor's interrupt (Executor::setInterrupt), which is also called while kernels are
  /// compiled.
  std::function<bool()> isCancelled = {};
  /// How many tokens of a prompt go through a layer together if no observer watches them; 0: as
  /// many as a layer computes in well below a second. Logits do not depend on it.
  int64_t promptChunk = 0;
  /// The steps that this executor computes, and the neighbours that give the values its first step
  /// needs and take those of its last. It returns the results of its own steps only: the patches
  /// and observed outputs of its layers, and logits if it has the last step. The neighbours must
  /// outlive it. None: all steps.
  std::optional<Stage> stage = std::nullopt;
  /// How many stages compute a prompt's chunks at once; the prompt is cut so that all have work.
  int64_t stages = 1;
  Neighbours *neighbours = nullptr;
  /// This rank's parts of the blocks that it shares with other ranks, with which the neighbours
  /// exchange values. Must outlive the executor. Null: this rank runs whole blocks.
  const shard::LocalBlocks *local = nullptr;
};

/// Compiles the program's blocks, each distinct one once, and runs them on
/// float32 activations over weights in their storage type. `program` and `weights` must
/// outlive the result. Fails if a block has no compiled form (a diagnostic says which op), if the
/// machine code cannot be made, if the processor has no instruction for the products of
/// prompts, or with Cancelled.
llvm::Expected<std::unique_ptr<Executor>>
createCompiledExecutor(const Program &program, Weights &weights, const CompiledOptions &options);

} // namespace ctxc

#endif // CTXC_RUNTIME_COMPILEDEXECUTOR_H
