// Steps of Algorithm 1 with compiled kernels, in which both runs take part: of one token, or of a
// chunk.
#ifndef CTXC_LIB_RUNTIME_BOTHRUNS_H
#define CTXC_LIB_RUNTIME_BOTHRUNS_H

#include "ctxc/Program/Program.h"
#include "lib/Runtime/KernelCalls.h"
#include "lib/Runtime/Streams.h"

namespace ctxc {

/// The rows of both runs side by side, as memory for the next call.
struct BothRows {
  std::vector<Rows> inputs, outputs;
};

/// Calls the dual block of step `index`. `values` are those of the full run and of the reduced run;
/// `call` has all but these.
llvm::Error runDual(KernelCalls &kernels, ProgramStep step, size_t index, Weights &weights,
                    StepCall &call, Values (&values)[2]);

/// Calls the block of a step that reads no context once for both runs, whose tokens are `given`.
llvm::Error runTogether(KernelCalls &kernels, ProgramStep step, size_t index, Weights &weights,
                        llvm::ArrayRef<Input> given, llvm::ArrayRef<int32_t> positions,
                        Values (&values)[2], BothRows &memory);

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_BOTHRUNS_H
