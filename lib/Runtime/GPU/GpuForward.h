// Executor::forward on a device: tokens one by one, and prompts in chunks of many tokens.
#ifndef CTXC_LIB_RUNTIME_GPU_GPUFORWARD_H
#define CTXC_LIB_RUNTIME_GPU_GPUFORWARD_H

#include "lib/Runtime/GPU/GpuPrompts.h"
#include "lib/Runtime/GPU/GpuStreams.h"

namespace ctxc {

/// The layers' outputs, one row for each token, by the layers' indices as observers see them.
using SeenLayers = std::vector<std::pair<int64_t, std::vector<double>>>;

/// Adds each layer's output for the first `rows` tokens of the call to `layers`; several residual
/// streams are side by side.
llvm::Error readLayers(GpuProgram &from, int64_t run, int64_t rows, SeenLayers &layers);
/// The logits of a token of which a patch was made, and the tokens that they choose.
llvm::Error readLogits(GpuProgram &from, const PatchOptions &options, PatchStep &result);

/// One call. The patch, if there is one, has been uploaded.
class GpuForward {
public:
  /// `head` is null where the program has none; `mayGoOn` is called before each sequence of
  /// launches, and `tell` with how many of a prompt's tokens are done.
  GpuForward(GpuStore &store, GpuProgram &one, GpuPrompts &prompts, GpuHead *head, GpuRun &run,
             const ForwardOptions &options, llvm::function_ref<llvm::Error()> mayGoOn,
             llvm::function_ref<void(int64_t)> tell)
      : program(store.program), streams(store, 1), one(one), prompts(prompts), head(head), run(run),
        options(options), mayGoOn(mayGoOn), tell(tell) {}

  llvm::Expected<Logits> forward(llvm::ArrayRef<int32_t> tokens, llvm::ArrayRef<int32_t> positions);

private:
  llvm::Expected<RecordedSteps *> record(bool withHead);
  llvm::Error runOne(int32_t token, int32_t position, bool withHead);
  llvm::Error runChunk(RecordedChunk &chunk, llvm::ArrayRef<int32_t> tokens,
                       llvm::ArrayRef<int32_t> positions, bool isLast);
  llvm::Error runAll(llvm::ArrayRef<int32_t> tokens, llvm::ArrayRef<int32_t> positions);
  llvm::Error addLogits(llvm::ArrayRef<float> numbers);
  bool isPatched() const { return options.patch != nullptr; }

  const Program &program;
  GpuStreams streams;
  GpuProgram &one; ///< for one token
  GpuPrompts &prompts;
  GpuHead *head;
  GpuRun &run;
  const ForwardOptions &options;
  llvm::function_ref<llvm::Error()> mayGoOn;
  llvm::function_ref<void(int64_t)> tell;
  SeenLayers layers;
  std::vector<float> logits;
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_GPUFORWARD_H
