// A program's kernels for S tokens on a device: compiled, recorded, and the buffer for
// each argument of a launch. S is 1 where tokens run one by one, else the size of a chunk of a
// prompt; a chunk that is not full is padded with copies of its last token, which no other token
// sees.
#ifndef CTXC_LIB_RUNTIME_GPU_GPUPROGRAM_H
#define CTXC_LIB_RUNTIME_GPU_GPUPROGRAM_H

#include "ctxc/Lowering/GPU.h"
#include "lib/Runtime/GPU/GpuRun.h"
#include "llvm/ADT/DenseSet.h"
#include <set>

namespace ctxc {

/// A block of a step that is to be run: `run` says whose values a plain block reads, and its run
/// is runs[0]; a dual block has both runs.
struct StepKernel {
  size_t step;
  xf::BlockOp block;
  int64_t run;
  GpuRun *runs[2];
};

/// The memory that recording needs, besides what is allocated.
struct MemoryNeed {
  size_t bytes = 0, largest = 0; ///< of all buffers, and of the largest
};

class GpuProgram {
public:
  GpuProgram(GpuStore &store, int64_t rows, std::string prefix, bool roundsPrompts = false)
      : store(store), rows(rows), prefix(std::move(prefix)), roundsPrompts(roundsPrompts) {}

  /// Compiles and loads those of `blocks` that have not been compiled.
  llvm::Error compile(llvm::ArrayRef<xf::BlockOp> blocks);
  /// After compilation of `block`: why it has no kernel, or success.
  llvm::Error check(xf::BlockOp block) const;
  /// The arguments of all kernels of a step's block, which are several where ranks share it.
  std::vector<StepArgument> argumentsOf(size_t step, xf::BlockOp block) const;

  MemoryNeed needOf(llvm::ArrayRef<StepKernel> kernels);
  llvm::Error record(llvm::ArrayRef<StepKernel> kernels, RecordedSteps &record);
  /// Runs what was recorded to its end.
  llvm::Error run(RecordedSteps &record);

  /// Uploads what every launch reads: ids, positions, and how many tokens each run sees. There are
  /// at most S tokens, and the runs have room for them.
  llvm::Error setTokens(llvm::ArrayRef<int32_t> ids, llvm::ArrayRef<int32_t> positions,
                        GpuRun *full, GpuRun *reduced);
  llvm::Error clearCounts();
  /// Uploads the patch that applied blocks read.
  llvm::Error setPatch(const Patch &patch);
  /// The results of a step's dual kernel for the first `count` tokens, except its patches.
  llvm::Error readChecks(size_t step, int64_t count, std::vector<LayerObligations> &obligations,
                         std::vector<double> &replayError);
  /// The addresses from which the patches of tokens `from` to `from + count` of a step are
  /// downloaded, into `parts`, each of which is resized.
  void findParts(size_t step, int64_t from, int64_t count, std::vector<Rows> &parts,
                 std::vector<Device::Piece> &pieces);
  /// Adds row `row` of such parts, as changes of stored tensors, to `patch`.
  llvm::Error readParts(size_t step, llvm::ArrayRef<Rows> parts, int64_t row, Patch &patch);
  /// The bytes of one token's patch of a step.
  size_t patchBytes(size_t step) const;

  /// The numbers of tokens `from` to `from + count` of one of the model's values.
  llvm::Expected<Rows> value(mlir::Value value, int64_t run, int64_t from, int64_t count);
  /// Whether launches that were recorded read or make a value.
  bool hasValue(mlir::Value value, int64_t run) const {
    auto found = values.find({value.getAsOpaquePointer(), run});
    return found != values.end() && found->second;
  }
  /// Sets a value for the first tokens, after launches that read it were recorded.
  llvm::Error setValue(mlir::Value value, int64_t run, llvm::ArrayRef<float> numbers);

  GpuStore &store;
  const int64_t rows;

private:
  struct Kernel : GpuKernel {
    uint32_t code = 0;
  };

  /// One of the kernels of a block: the block's own, or that of a segment of it.
  struct Part {
    const shard::LocalBlock *local = nullptr;
    const shard::Segment *segment = nullptr;
    xf::BlockOp block;
    const Kernel *kernel = nullptr; ///< null where a segment has transfers alone
    int64_t first = 0;              ///< how many arguments the kernels before it have
    size_t states[2] = {0, 0};      ///< how many of them are states of either run
  };
  /// Launches, with what ranks exchange before them.
  struct Batch {
    std::vector<DeviceTransfer> before;
    std::vector<Device::Launch> launches;
  };

  llvm::SmallVector<xf::BlockOp> compiledFor(xf::BlockOp block) const;
  std::vector<Part> partsOf(xf::BlockOp block) const;
  bool predictsReplay(const StepArgument &argument, xf::BlockOp block) const;
  llvm::Expected<Device::Buffer *> argument(const StepKernel &at, const Part &part, int64_t index);
  llvm::Expected<Device::Buffer *> slot(const StepKernel &at, const Part &part, unsigned index);
  llvm::Expected<Device::Buffer *> stream(const StepKernel &at, bool isInput, int64_t place);
  llvm::Error addTransfers(const StepKernel &at, const Part &part, std::vector<Batch> &batches);
  /// The buffer, which is allocated on first use; while memory is counted, null, and its bytes are
  /// added.
  llvm::Expected<Device::Buffer *> own(BufferPtr &buffer, size_t bytes);
  llvm::Error addLaunches(const StepKernel &at, llvm::ArrayRef<Device::Buffer *> scratch,
                          std::vector<Batch> &batches);
  llvm::Error addLaunches(const StepKernel &at, const Part &part,
                          llvm::ArrayRef<Device::Buffer *> scratch, std::vector<Batch> &batches);
  std::vector<size_t> temporariesOf(const StepKernel &at, const Kernel &kernel) const;
  std::vector<size_t> scratchOf(llvm::ArrayRef<StepKernel> kernels) const;
  llvm::Error put(BufferPtr &buffer, llvm::ArrayRef<int32_t> numbers, int64_t at, int64_t capacity);
  llvm::Error putSlots(GpuRun &run, Slots &slots, llvm::ArrayRef<int32_t> next, bool hides);
  bool isDual(const StepKernel &at) const { return at.block == store.program.steps[at.step].dual; }
  const Kernel &kernelOf(xf::BlockOp block) const;

  const std::string prefix;
  const bool roundsPrompts;
  llvm::StringMap<Kernel> kernels;
  llvm::StringMap<std::string> refusals;
  std::map<std::pair<void *, int64_t>, BufferPtr> values;            ///< by value and run
  std::map<std::pair<size_t, int64_t>, BufferPtr> dualParts;         ///< by step and argument
  std::set<std::pair<size_t, int64_t>> countParts;                   ///< those of them that count
  std::map<std::pair<mlir::Operation *, unsigned>, BufferPtr> slots; ///< by block and number
  BufferPtr tokens, positions;
  std::map<std::pair<int64_t, int>, BufferPtr> visible; ///< by window; of both runs, of the reduced
  /// Temporaries of all recorded sequences, of which only one runs at a time.
  std::vector<std::shared_ptr<Device::Buffer>> scratch;
  struct Counted {
    MemoryNeed need;
    llvm::DenseSet<const void *> buffers;
  };
  Counted *counted = nullptr; ///< while memory is counted
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_GPUPROGRAM_H
