// The executor over compiled kernels: ordinary forwards, and Algorithm 1 through the dual kernels.
#ifndef CTXC_LIB_RUNTIME_COMPILEDEXECUTOR_H
#define CTXC_LIB_RUNTIME_COMPILEDEXECUTOR_H

#include "ctxc/Program/MaterializedWeights.h"
#include "ctxc/Program/ModelEnds.h"
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Runtime/CompiledExecutor.h"
#include "lib/Runtime/BothRuns.h"
#include "lib/Runtime/KernelCalls.h"
#include "lib/Runtime/ParallelFor.h"
#include "lib/Runtime/PatchEach.h"
#include "lib/Runtime/Streams.h"

namespace ctxc {

/// Reuses the memory of the last call's outputs.
void takeMemory(xf::LayerOp layer, Values &values, StepCall &frame);

/// Shows a step's outputs: several residual streams side by side, row by row.
void observe(const LayerObserver &observer, ProgramStep step, bool first, const Values &values,
             int64_t rows);

class CompiledExecutor : public Executor {
public:
  CompiledExecutor(const Program &program, Weights &weights, const CompiledOptions &options)
      : program(program), weights(weights), ownThreads(threadCount(options.threads)),
        stage(options.stage ? *options.stage : wholeStage(program)), neighbours(options.neighbours),
        kernels(this->program, stage, weights, options.prompts,
                options.parallelFor ? *options.parallelFor
                                    : ParallelFor{ctxc::parallelFor, &ownThreads},
                [this] { return checkInterrupt(); }),
        bidirectional(ctxc::isBidirectional(program)), recurrent(ctxc::isRecurrent(program)),
        names(program), promptChunk(options.promptChunk), stages(options.stages) {
    if (options.local)
      kernels.share(*options.local, *options.neighbours);
  }

  llvm::Error compile() { return kernels.compile(ownThreads); }

  /// How many tokens patchEach takes through the layers together.
  int64_t patchChunk(const PatchEachOptions &options) {
    return chunkOfPatches(program, stage, kernels, options);
  }

  KernelCalls &calls() { return kernels; }

  bool isBidirectional() const override { return bidirectional; }
  int64_t vocabulary() const override { return idsOf(program); }
  int64_t layers() const override { return program.layers; }
  std::optional<int64_t> embeddingWidth() const override { return ctxc::embeddingWidth(program); }

protected:
  std::unique_ptr<Run> makeRun(int64_t capacity) override {
    return std::make_unique<CompiledRun>(capacity, program.steps.size());
  }
  llvm::Error copyState(const Run &given, Run &made) override;
  llvm::Expected<Logits> computeLogits(Run &run, llvm::ArrayRef<Input> tokens,
                                       llvm::ArrayRef<int64_t> positions,
                                       const ForwardOptions &options) override;
  llvm::Expected<int64_t> computeNext(Run &run, const Input &token, int64_t position,
                                      const ForwardOptions &options) override;
  llvm::Expected<PatchStep> computePatch(Run &full, Run &reduced, const Input &token,
                                         int64_t position, const PatchOptions &options) override;
  llvm::Error computePatchEach(Run &full, Run &reduced, llvm::ArrayRef<Input> tokens,
                               llvm::ArrayRef<int64_t> positions, const PatchEachOptions &options,
                               PatchSink sink) override;
  llvm::Expected<Logits> computeHead(llvm::ArrayRef<double> vectors, int64_t count) override;
  llvm::Error computeStep(const StepRows &rows, Run *run, std::vector<Rows> &outputs) override;

private:
  llvm::Error checkStep(const CompiledRun &run, llvm::ArrayRef<Input> tokens,
                        llvm::ArrayRef<int64_t> positions) const;
  /// Runs tokens through all steps and appends them to the run. Returns the logits that are asked
  /// for, in memory that the next call reuses; none where `withHead` is false.
  llvm::Expected<llvm::ArrayRef<float>> runChunk(CompiledRun &run, llvm::ArrayRef<Input> tokens,
                                                 llvm::ArrayRef<int64_t> positions,
                                                 const ForwardOptions &options, Weights &from,
                                                 bool withHead);
  /// The last chunk's logits, which are all where not every token's are asked for; the others' go
  /// to `earlier`.
  llvm::Expected<llvm::ArrayRef<float>> forwardAll(CompiledRun &run, llvm::ArrayRef<Input> tokens,
                                                   llvm::ArrayRef<int64_t> positions,
                                                   const ForwardOptions &options,
                                                   std::vector<float> *earlier);
  /// Where the run was truncated to tokens from which its recurrences cannot go on: reads those
  /// that lead there again.
  llvm::Error readAgain(CompiledRun &run);
  /// Has the run remember the tokens that it holds behind the first `before`, where they may have
  /// to be read again.
  void remember(CompiledRun &run, int64_t before, llvm::ArrayRef<Input> tokens,
                bool withPatch) const {
    if (recurrent)
      run.remember(before, tokens, withPatch);
  }
  /// patchEach where all kept tokens come before the first, or their order does not matter.
  llvm::Error patchTogether(CompiledRun &full, CompiledRun &reduced, llvm::ArrayRef<Input> tokens,
                            llvm::ArrayRef<int64_t> positions, const PatchEachOptions &options,
                            PatchSink sink);
  int64_t chunkOf(int64_t count, const ForwardOptions &options) const;
  bool isHead(size_t step) const;
  bool hasLogits() const { return stage.end == program.steps.size(); }
  llvm::Error runInto(size_t step, xf::BlockOp block, Weights &from, StepCall &call,
                      Values &values);
  llvm::Error beginStep(CompiledRun &run, const Input &token, int64_t position);
  llvm::Error readLogits(const PatchOptions &options, PatchStep &result);
  /// Frees the memory of the values that no step after `step` reads.
  void forget(size_t step, Values &values);

  Program program;
  Weights &weights;
  int ownThreads; ///< OpenMP's
  const Stage stage;
  Neighbours *neighbours;
  KernelCalls kernels;
  bool bidirectional;
  const bool recurrent;
  const PatchableNames names;
  const int64_t promptChunk, stages;
  WeightMemory patchedMemory;
  Values values[2]; ///< those of one token stay, as memory for the next
  BothRows both;    ///< for the model's ends
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_COMPILEDEXECUTOR_H
