//===- CompiledExecutor.h - runs a model by kernels compiled for this CPU -===//
#ifndef CTXC_RUNTIME_COMPILEDEXECUTOR_H
#define CTXC_RUNTIME_COMPILEDEXECUTOR_H

#include "ctxc/Runtime/Executor.h"
#include "ctxc/Runtime/Program.h"
#include "ctxc/Runtime/Weights.h"

namespace ctxc {

struct CompiledOptions {
  int threads = 0; ///< 0: one for each core
  /// Layers that read 16 tokens or more at once without a patch round activations to bfloat16 where
  /// they meet weights that are stored so, as other programs do: a prompt is read faster, and less
  /// exactly. What comes after it, patches too, is computed as without.
  bool roundedPrompts = false;
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
