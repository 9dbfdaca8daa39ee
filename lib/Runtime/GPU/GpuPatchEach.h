// Executor::patchEach on a device: chunks of tokens go through dual kernels for many tokens.
// Factors stay on the device; those of some tokens are downloaded together when the first of them
// is asked for.
#ifndef CTXC_LIB_RUNTIME_GPU_GPUPATCHEACH_H
#define CTXC_LIB_RUNTIME_GPU_GPUPATCHEACH_H

#include "lib/Runtime/GPU/GpuPrompts.h"
#include "lib/Runtime/GPU/GpuStreams.h"

namespace ctxc {

class GpuPatchEach {
public:
  GpuPatchEach(GpuStore &store, GpuStreams &streams, GpuHead *head, const PatchEachOptions &options)
      : store(store), streams(streams), program(store.program), head(head), options(options),
        obligations(program.steps.size()), replayError(program.steps.size()),
        parts(program.steps.size()) {}

  /// Runs one chunk: appends the tokens to `full`, and passes each to the sink.
  llvm::Error run(RecordedChunk &chunk, GpuRun &full, GpuRun &reduced,
                  llvm::ArrayRef<int64_t> tokens, llvm::ArrayRef<int64_t> positions,
                  PatchSink sink);

private:
  llvm::Error readOutputs();
  llvm::Error checkFinite(int64_t row);
  llvm::Error readLogits(int64_t row, TokenPatch &given);
  llvm::Error readParts(int64_t row);
  llvm::Error give(int64_t row, PatchSink sink);
  int64_t rows() const { return tokens.size(); }
  bool isPatched(size_t step) const {
    return store.stage.has(step) && program.steps[step].isPatchedFrom(options.startLayer);
  }
  mlir::ValueRange lastValues() const;

  GpuStore &store;
  GpuStreams &streams;
  const Program &program;
  GpuHead *head; ///< null where the program has none
  const PatchEachOptions &options;

  // The chunk's values.
  GpuProgram *gpu = nullptr;
  llvm::ArrayRef<int64_t> tokens, positions;
  std::vector<Rows> outputs[2]; ///< lastValues in each run: each value's rows
  std::vector<std::vector<LayerObligations>> obligations;
  std::vector<std::vector<double>> replayError;
  /// Each step's parts for `partsCount` tokens from `partsFrom` on.
  std::vector<std::vector<Rows>> parts;
  int64_t partsFrom = 0, partsCount = 0;
  Rows logits[2]; ///< of tokens from `logitsFrom` on
  int64_t logitsFrom = 0, logitsCount = 0;
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_GPUPATCHEACH_H
