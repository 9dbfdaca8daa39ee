// Prompts on a device: kernels for many tokens, compiled for the first prompt, and the chunks
// that are recorded with them; and the head, for one token and for several.
#ifndef CTXC_LIB_RUNTIME_GPU_GPUPROMPTS_H
#define CTXC_LIB_RUNTIME_GPU_GPUPROMPTS_H

#include "lib/Runtime/GPU/GpuProgram.h"

namespace ctxc {

class GpuPrompts {
public:
  /// From how many tokens on prompts are run in chunks.
  static constexpr int64_t kShortest = 4;

  /// Chunks of `most` tokens, and of `fewer` where those compute fewer rows; smaller ones where the
  /// device's memory is too small.
  GpuPrompts(GpuStore &store, int64_t most, int64_t fewer, bool roundsPrompts)
      : store(store), most(most), fewer(std::min(fewer, most)), roundsPrompts(roundsPrompts) {}

  /// The most tokens of a chunk.
  int64_t mostRows() const { return most; }
  /// The slots of state that a run has besides those of its tokens.
  int64_t paddingOf(int64_t capacity) const { return capacity < kShortest ? 0 : fewer; }

  /// The kernels for chunks of `fewer` tokens.
  GpuProgram &ofFewer() { return programOf(fewer); }

  /// A chunk of a run, without its head; of both runs, with the patches formed; for the next of
  /// `left` tokens. Recorded for the run; null where tokens run one by one: a kernel has no form
  /// for many tokens, memory is too small, or tokens of the reduced run see each other in an
  /// unpatched layer.
  llvm::Expected<RecordedChunk *> forward(GpuRun &run, bool isPatched, int64_t left);
  llvm::Expected<RecordedChunk *> patch(GpuRun &full, GpuRun &reduced, int64_t startLayer,
                                        int64_t left);

  bool isPatching = false; ///< while a chunk's patches are passed to the sink

private:
  llvm::Expected<RecordedChunk *> choose(llvm::MutableArrayRef<RecordedChunk> shortAndLong,
                                         llvm::ArrayRef<StepKernel> kernels, int64_t left);
  llvm::Error recordChunk(RecordedChunk &chunk, llvm::ArrayRef<StepKernel> kernels, int64_t rows,
                          int64_t least);
  GpuProgram &programOf(int64_t rows);
  llvm::Expected<bool> fitsAll(const MemoryNeed &need);

  GpuStore &store;
  const int64_t most, fewer;
  const bool roundsPrompts;
  std::map<int64_t, std::unique_ptr<GpuProgram>> programs; ///< by rows
};

/// The model's head on residual vectors: a single one by the kernel that decodes, more by a kernel
/// for several tokens, whose logits take bounded memory. Only for programs with such a head.
class GpuHead {
public:
  GpuHead(GpuStore &store, GpuProgram &one);

  /// Logits, one row for each token. `inputs` has `count` rows of each of the head's inputs.
  llvm::Expected<Rows> logitsOf(llvm::ArrayRef<Rows> inputs, int64_t count);
  /// How many tokens go together.
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
