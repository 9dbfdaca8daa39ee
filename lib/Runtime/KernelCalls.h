// A program's compiled kernels, and how one is called for a step: which memory
// each argument points to.
#ifndef CTXC_LIB_RUNTIME_KERNELCALLS_H
#define CTXC_LIB_RUNTIME_KERNELCALLS_H

#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Program/Weights.h"
#include "ctxc/Runtime/CompiledExecutor.h"
#include "lib/Runtime/CompiledRun.h"
#include "lib/Runtime/KernelArguments.h"
#include "lib/Runtime/Parts.h"
#include "lib/Runtime/Workspace.h"
#include "llvm/ADT/StringMap.h"
#include <array>
#include <map>

namespace ctxc {

/// What one call reads and writes beside weights and settings.
struct StepCall {
  int64_t rows = 1;
  llvm::ArrayRef<int32_t> tokens, positions;
  /// The inputs, one for each row, where some may be embeddings.
  llvm::ArrayRef<Input> given = {};
  CompiledRun *runs[2] = {nullptr, nullptr}; ///< the run or the full run, the reduced run
  std::vector<const Rows *> inputs;
  const Patch *loads = nullptr;
  /// The reduced run of a dual block is empty: each token sees itself alone, so that nothing need
  /// be computed of its query and key.
  bool alone = false;

  std::vector<Rows> outputs; ///< memory that is given here is reused
  Patch stores;              ///< of one row, by stored names, in stored orientation
  /// Where given, each part of a patch for all rows, in the order of the kernel's arguments; then
  /// `stores` stays empty.
  std::vector<Rows> *parts = nullptr;
  std::vector<LayerObligations> obligations; ///< one for each row
  std::vector<double> replayError;           ///< one for each row
};

/// The tokens' ids as kernels take them, 0 for embeddings.
std::vector<int32_t> kernelIds(llvm::ArrayRef<Input> inputs);

/// The bytes that a state argument has for each token.
size_t bytesOfSlot(const KernelArg &arg);

class KernelCalls {
public:
  /// `mayGoOn` is called before each kernel; its error ends the call.
  KernelCalls(const Program &program, Stage stage, Weights &original, PromptProducts prompts,
              ParallelFor threads, std::function<llvm::Error()> mayGoOn)
      : program(program), stage(std::move(stage)), original(original), prompts(prompts),
        threads(threads), mayGoOn(std::move(mayGoOn)) {}

  /// Before compile: this rank shares blocks with others. Both must outlive this.
  void share(const shard::LocalBlocks &blocks, Neighbours &with) {
    local = &blocks;
    neighbours = &with;
  }

  /// Compiles every distinct block of the stage except those for embeddings and dual
  /// ones whose tokens are alone, which are compiled on their first call. So many threads read the
  /// matrices, in the way that was measured to be fastest for them, if one was (ReadingsCache.h).
  llvm::Error compile(int threadCount);

  /// The bytes of one step: what it keeps of each token, what its recurrences carry, and what a
  /// call of `rows` tokens writes and computes in, with room for `room` tokens that it sees.
  struct StepSize {
    uint64_t slot = 0, carried = 0, work = 0;
  };
  StepSize sizeOf(size_t step, int64_t rows, int64_t room) const;

  /// Fails where a run that holds nothing yet needs more memory than there is for all its tokens,
  /// of which `rows` go through the layers together, and one through the head.
  llvm::Error checkMemory(const CompiledRun &run, int64_t rows);

  /// Calls the kernel of `block`, one of the blocks of step `step`, with weights from `weights`.
  llvm::Error call(size_t step, xf::BlockOp block, Weights &weights, StepCall &call);

  /// Adds row `row` of `parts` (StepCall), as changes of stored tensors, to `patch`.
  llvm::Error readParts(size_t step, xf::BlockOp block, llvm::ArrayRef<Rows> parts, int64_t row,
                        Patch &patch);
  /// The float32 numbers of a row's patch of a step.
  int64_t partsSize(xf::BlockOp block);

  const ParallelFor &parallelFor() const { return threads; }

private:
  struct Kernel {
    KernelLibrary::Kernel function = nullptr;
    KernelLibrary::Workspace workspace = nullptr;
    llvm::SmallVector<KernelArg> args;
  };

  /// Of a block that ranks share; else null.
  const shard::LocalBlock *localOf(xf::BlockOp block) const {
    return local ? local->find(block) : nullptr;
  }
  /// The blocks that kernels are made of: the block itself, or its segments.
  llvm::SmallVector<xf::BlockOp> compiledFor(xf::BlockOp block) const;
  /// The arguments by which the block's patches are loaded and stored.
  llvm::SmallVector<KernelArg> patchArguments(xf::BlockOp block) const;
  /// `alone`: for dual blocks whose tokens are alone.
  llvm::Error compile(llvm::ArrayRef<xf::BlockOp> blocks, bool alone = false);
  llvm::Error embed(size_t step, Weights &weights, StepCall &call);
  void *setting(size_t step, const KernelArg &arg);
  /// The step's arguments that are the same at every call: weights and settings. The others are
  /// null.
  struct Binding {
    Binding() = default;
    Binding(Binding &&) = default; // a copy's arguments would point to this one's banks
    Binding &operator=(Binding &&) = default;
    std::vector<void *> arguments;
    std::vector<std::vector<const void *>> banks; ///< what arguments point to
    PartCopies copies;
  };
  /// How far the kernels of a call are: which state, which part of a patch comes next.
  struct Progress {
    const shard::LocalBlock *local = nullptr;
    size_t state[2] = {0, 0}, recurrence[2] = {0, 0}, part = 0, load = 0;
    /// Which of what each run's step carries is read, and which is written.
    std::optional<std::pair<size_t, size_t>> carried[2];
  };
  /// Where ranks share blocks: copies now what the kernels of tokens read of each matrix that is
  /// cut into columns, rather than while a first prompt is read.
  llvm::Error copyParts();
  llvm::Expected<Binding> bind(size_t step, const Kernel &kernel, Weights &weights,
                               const shard::LocalBlock *local);
  llvm::Error bindPart(size_t step, const KernelArg &arg, const shard::LocalSource &source,
                       Weights &weights, Binding &binding);
  /// Calls a kernel, with the patch that is loaded.
  llvm::Error run(size_t step, const Kernel &kernel, Weights &weights, StepCall &call,
                  Progress &progress);
  llvm::Error runSegments(size_t step, xf::BlockOp block, const shard::LocalBlock &local,
                          Weights &weights, StepCall &call);
  llvm::Error transfer(llvm::ArrayRef<shard::Transfer> transfers, int64_t rows,
                       llvm::function_ref<const Rows &(unsigned)> valueOf);
  void *loadedPart(const KernelArg &arg, Progress &progress);
  llvm::Expected<const PatchArgs *> patchArgs(size_t step, xf::BlockOp block);
  float *carriedMemory(size_t step, const KernelArg &arg, StepCall &call, Progress &progress);
  void setArguments(size_t step, const Kernel &kernel, StepCall &call, Progress &progress);
  /// Makes room for the call's tokens in its runs. Returns how many slots its kernel sees of each.
  std::array<int64_t, 2> makeRoom(size_t step, StepCall &call);

  const Program &program;
  const Stage stage; ///< the steps that are called
  Weights &original;
  std::vector<std::unique_ptr<KernelLibrary>> libraries;
  const shard::LocalBlocks *local = nullptr;
  Neighbours *neighbours = nullptr;
  PartCopies copies; ///< of the original weights
  CpuTarget target = CpuTarget::host();
  const PromptProducts prompts;
  const ParallelFor threads;
  const std::function<llvm::Error()> mayGoOn;
  std::map<std::pair<mlir::Operation *, bool>, Kernel> kernels; ///< of a block, alone or not
  /// For the original weights, whose addresses stay the same.
  std::map<std::pair<size_t, const Kernel *>, Binding> bindings;
  std::map<std::pair<size_t, mlir::Operation *>, PatchArgs> patches; ///< of a step's block
  // Memory that calls reuse.
  Workspace workspace;
  std::vector<void *> arguments;
  std::vector<Rows> stores;
  std::vector<int64_t> counts;
  std::vector<llvm::StringMap<std::vector<char>>> settings; ///< of each step, by name
  std::vector<std::optional<int64_t>> windows;              ///< of each step
  /// Parts of the patch at hand; of indices the bits of int32.
  std::vector<Rows> loaded;
  llvm::SmallVector<KernelArg> loads;                       ///< what each of them is
  std::map<std::pair<std::string, int64_t>, Rows> cutLoads; ///< of these this rank's parts
  std::vector<Rows> slots;                                  ///< of segments
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_KERNELCALLS_H
