// Prompts on a device: kernels of many rows, compiled when a prompt first comes, and the chunks
// that are recorded of them; and the head, of one row and of several.
#ifndef CTXC_LIB_RUNTIME_GPU_GPUPROMPTS_H
#define CTXC_LIB_RUNTIME_GPU_GPUPROMPTS_H

#include "lib/Runtime/GPU/GpuProgram.h"

namespace ctxc {

class GpuPrompts {
public:
  /// From how many tokens on they go by chunks.
  static constexpr int64_t kShortest = 4;

  /// Chunks of at most `most` rows; of fewer where the device's memory asks for it.
  GpuPrompts(GpuStore &store, int64_t most, bool roundsPrompts)
      : store(store), most(most), roundsPrompts(roundsPrompts) {}

  /// The rows of state that a run has beside those of its tokens.
  int64_t paddingOf(int64_t capacity) const { return capacity < kShortest ? 0 : most; }

  /// A chunk of a run, without its head; of both runs, the patches formed. Recorded for the run;
  /// null where tokens go one by one: a kernel has no form of many rows, memory is too small, or
  /// tokens of the reduced run see each other in an unpatched layer.
  llvm::Expected<RecordedChunk *> forward(GpuRun &run, bool isPatched);
  llvm::Expected<RecordedChunk *> patch(GpuRun &full, GpuRun &reduced, int64_t startLayer);

  bool isPatching = false; ///< while a chunk's patches are given away

private:
  llvm::Error recordChunk(RecordedChunk &chunk, llvm::ArrayRef<StepKernel> kernels);
  GpuProgram &programOf(int64_t rows);

  GpuStore &store;
  const int64_t most;
  const bool roundsPrompts;
  std::map<int64_t, std::unique_ptr<GpuProgram>> programs; ///< by rows
};

/// What the model's head makes of residual streams: one by the kernel that decodes, more by one of
/// several rows, whose logits are bounded memory. Only where the program has such a head.
class GpuHead {
public:
  GpuHead(GpuStore &store, GpuProgram &one);

  /// Logits, row after row. Of each of the head's inputs `inputs` has `count` rows.
  llvm::Expected<Rows> logitsOf(llvm::ArrayRef<Rows> inputs, int64_t count);
  /// How many rows go together.
  int64_t rows() const { return many.rows; }

private:
  llvm::Error add(GpuProgram &program, RecordedSteps &record, llvm::ArrayRef<Rows> inputs,
                  int64_t from, int64_t count, Rows &logits);

  GpuStore &store;
  GpuProgram &one, many;
  GpuRun none; ///< a head has no state
  RecordedSteps ofOne, ofMany;
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_GPUPROMPTS_H
