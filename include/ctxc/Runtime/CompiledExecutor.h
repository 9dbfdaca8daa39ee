//===- CompiledExecutor.h - runs a model by kernels compiled for this CPU -===//
#ifndef CTXC_RUNTIME_COMPILEDEXECUTOR_H
#define CTXC_RUNTIME_COMPILEDEXECUTOR_H

#include "ctxc/Runtime/Executor.h"
#include "ctxc/Runtime/Program.h"
#include "ctxc/Runtime/Weights.h"

namespace ctxc {

struct CompiledOptions {
  int threads = 0; ///< 0: one for each core
};

/// Compiles the program's blocks, each distinct one once, and runs them on
/// float32 activations over weights in their storage type. `program` and `weights` must
/// outlive the result. Fails where a block has no compiled form (a diagnostic
/// says which op) or the machine code cannot be made.
llvm::Expected<std::unique_ptr<Executor>>
createCompiledExecutor(const Program &program, Weights &weights, const CompiledOptions &options);

} // namespace ctxc

#endif // CTXC_RUNTIME_COMPILEDEXECUTOR_H
