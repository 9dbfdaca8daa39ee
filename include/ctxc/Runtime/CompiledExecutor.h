//===- CompiledExecutor.h - runs a model by kernels compiled for this CPU -===//
#ifndef CTXC_RUNTIME_COMPILEDEXECUTOR_H
#define CTXC_RUNTIME_COMPILEDEXECUTOR_H

#include "ctxc/Program/Executor.h"
#include "ctxc/Program/ParallelFor.h"
#include "ctxc/Program/Program.h"
#include "ctxc/Program/Weights.h"

namespace ctxc {

struct CompiledOptions {
  int threads = 0; ///< OpenMP's; 0: one for each core
  /// Layers that read 16 tokens or more at once without a patch round activations to bfloat16 where
  /// they meet weights that are stored so, as other programs do: a prompt is read faster, and less
  /// exactly. What comes after it, patches too, is computed as without.
  bool roundedPrompts = false;
  /// The caller's threads, in place of OpenMP's: all of the executor's parallel work goes there.
  std::optional<ParallelFor> parallelFor = std::nullopt;
  /// How many tokens of a prompt go through a layer together, where no observer watches them; 0:
  /// so many that a layer takes well below a second. Logits do not depend on it.
  int64_t promptRows = 0;
};

/// Compiles the program's blocks, each distinct one once, and runs them on
/// float32 activations over weights in their storage type. `program` and `weights` must
/// outlive the result. Fails where a block has no compiled form (a diagnostic
/// says which op), the machine code cannot be made, or prompts are to be rounded and the processor
/// has no instruction for it.
llvm::Expected<std::unique_ptr<Executor>>
createCompiledExecutor(const Program &program, Weights &weights, const CompiledOptions &options);

} // namespace ctxc

#endif // CTXC_RUNTIME_COMPILEDEXECUTOR_H
