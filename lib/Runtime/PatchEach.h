// Executor::patchEach with compiled kernels: chunks of tokens go through the dual kernels, S tokens
// of each run in one call.
#ifndef CTXC_LIB_RUNTIME_PATCHEACH_H
#define CTXC_LIB_RUNTIME_PATCHEACH_H

#include "ctxc/Program/Program.h"
#include "lib/Runtime/BothRuns.h"
#include "lib/Runtime/KernelCalls.h"
#include "lib/Runtime/Streams.h"

namespace ctxc {

/// How many tokens PatchEach takes through the layers of `stage` together.
int64_t chunkOfPatches(const Program &program, const Stage &stage, KernelCalls &kernels,
                       const PatchEachOptions &options);

class PatchEach {
public:
  PatchEach(Program program, const Stage &stage, Neighbours *neighbours, Weights &weights,
            KernelCalls &kernels, CompiledRun &full, CompiledRun &reduced,
            const PatchEachOptions &options)
      : program(program), stage(stage), neighbours(neighbours), weights(weights), kernels(kernels),
        full(full), reduced(reduced), options(options), parts(program.steps.size()),
        obligations(program.steps.size()), replayError(program.steps.size()) {}

  llvm::Error run(llvm::ArrayRef<Input> tokens, llvm::ArrayRef<int64_t> positions, PatchSink sink);

private:
  llvm::Error check(llvm::ArrayRef<Input> tokens, llvm::ArrayRef<int64_t> positions);
  llvm::Error runChunk(PatchSink sink);
  llvm::Error runStep(size_t step);
  llvm::Error runPatched(size_t step);
  llvm::Error runPlainFull(size_t step);
  llvm::Error runPlainReduced(size_t step);
  bool isHead(size_t step) const { return program.head() == step; }
  llvm::Error runHead(int64_t from, int64_t count);
  llvm::Error checkFinite(int64_t row);
  llvm::Error give(int64_t row, PatchSink sink);
  int64_t rows() const { return tokens.size(); }
  /// Whether the step is one of the stage's, and patched.
  bool isPatched(size_t step) const;

  Program program;
  const Stage &stage;
  Neighbours *neighbours;
  Weights &weights;
  KernelCalls &kernels;
  CompiledRun &full, &reduced;
  const PatchEachOptions &options;

  // The chunk: its tokens, their values in both runs, and for each step the parts of the
  // patches, the obligations and the predicted errors, row after row.
  llvm::ArrayRef<Input> given;
  std::vector<int32_t> tokens, positions;
  Values values[2];
  std::vector<std::vector<Rows>> parts;
  std::vector<std::vector<LayerObligations>> obligations;
  std::vector<std::vector<double>> replayError;
  BothRows memory;
  Rows headLogits[2]; ///< of some tokens of the chunk, from `headFrom` on, in both runs
  int64_t headFrom = 0, headCount = 0;
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_PATCHEACH_H
