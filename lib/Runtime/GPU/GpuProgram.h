// A program's kernels of S rows on a device: compiled, recorded, and which buffer stands behind
// each argument of a launch. S is 1 where tokens go one by one, and that of a chunk of a prompt; a
// chunk that is not full is padded by rows that repeat its last token and that no other row sees.
#ifndef CTXC_LIB_RUNTIME_GPU_GPUPROGRAM_H
#define CTXC_LIB_RUNTIME_GPU_GPUPROGRAM_H

#include "ctxc/Lowering/GPU.h"
#include "lib/Runtime/GPU/GpuRun.h"
#include "llvm/ADT/DenseSet.h"

namespace ctxc {

/// A block of a step that is to be run: `stream` says whose values a plain block reads, whose run
/// is runs[0]; a dual block has both.
struct StepKernel {
  size_t step;
  xf::BlockOp block;
  int64_t stream;
  GpuRun *runs[2];
};

/// What recording takes, beside what is there.
struct MemoryNeed {
  size_t bytes = 0, largest = 0; ///< together, and of one buffer
};

class GpuProgram {
public:
  GpuProgram(GpuStore &store, int64_t rows, std::string prefix, bool roundsPrompts = false)
      : store(store), rows(rows), prefix(std::move(prefix)), roundsPrompts(roundsPrompts) {}

  /// Compiles and loads those of `blocks` that are not yet.
  llvm::Error compile(llvm::ArrayRef<xf::BlockOp> blocks);
  /// Why there is no kernel of `block`, which was compiled; success where there is one.
  llvm::Error check(xf::BlockOp block) const;
  llvm::ArrayRef<KernelArg> argumentsOf(xf::BlockOp block) const { return kernelOf(block).args; }

  MemoryNeed needOf(llvm::ArrayRef<StepKernel> kernels);
  llvm::Error record(llvm::ArrayRef<StepKernel> kernels, RecordedSteps &record);

  /// What every launch of some tokens reads: ids, positions, and how many tokens each run sees. At
  /// most S of them; the runs have room for them.
  llvm::Error setTokens(llvm::ArrayRef<int32_t> ids, llvm::ArrayRef<int32_t> positions,
                        GpuRun *full, GpuRun *reduced);
  llvm::Error clearCounts();
  /// What the dual kernel of a step left for the first `count` rows, but for its patches.
  llvm::Error readChecks(size_t step, int64_t count, std::vector<LayerObligations> &obligations,
                         std::vector<double> &replayError);
  /// Where the patches of rows `from` to `from + count` of a step are to be downloaded from, into
  /// `parts`, of which each is resized.
  void findParts(size_t step, int64_t from, int64_t count, std::vector<Rows> &parts,
                 std::vector<Device::Piece> &pieces);
  /// The changes that row `row` of such parts is, added to `patch`.
  llvm::Error readParts(size_t step, llvm::ArrayRef<Rows> parts, int64_t row, Patch &patch);
  /// The bytes of one row's patch of a step.
  size_t patchBytes(size_t step) const;

  /// The numbers of the rows `from` to `from + count` of a value of the model's chain.
  llvm::Expected<Rows> value(mlir::Value value, int64_t stream, int64_t from, int64_t count);
  /// Sets a value's first rows, of the full run, after launches that read it were recorded.
  llvm::Error setValue(mlir::Value value, llvm::ArrayRef<float> numbers);

  GpuStore &store;
  const int64_t rows;

private:
  struct Kernel : GpuKernel {
    uint32_t code = 0;
  };

  llvm::Expected<Device::Buffer *> argument(const StepKernel &at, const Kernel &kernel,
                                            int64_t index);
  /// The buffer, made if it is not there; while memory is counted, null, and its bytes are.
  llvm::Expected<Device::Buffer *> own(BufferPtr &buffer, size_t bytes);
  llvm::Error addLaunches(const StepKernel &at, llvm::ArrayRef<Device::Buffer *> scratch,
                          std::vector<Device::Launch> &launches);
  std::vector<size_t> temporariesOf(const StepKernel &at) const;
  std::vector<size_t> scratchOf(llvm::ArrayRef<StepKernel> kernels) const;
  llvm::Error put(BufferPtr &buffer, llvm::ArrayRef<int32_t> numbers, int64_t at, int64_t capacity);
  llvm::Error putSlots(GpuRun &run, llvm::ArrayRef<int32_t> next, bool hides);
  bool isDual(const StepKernel &at) const { return at.block == store.program.steps[at.step].dual; }
  const Kernel &kernelOf(xf::BlockOp block) const;

  const std::string prefix;
  const bool roundsPrompts;
  llvm::StringMap<Kernel> kernels;
  llvm::StringMap<std::string> refusals;
  std::map<std::pair<void *, int64_t>, BufferPtr> values;    ///< of a value and stream
  std::map<std::pair<size_t, int64_t>, BufferPtr> dualParts; ///< of a step, by argument
  BufferPtr tokens, positions, visible[2];
  /// Temporaries of all that is recorded: nothing of it runs beside another.
  std::vector<std::shared_ptr<Device::Buffer>> scratch;
  struct Counted {
    MemoryNeed need;
    llvm::DenseSet<const void *> buffers;
  };
  Counted *counted = nullptr; ///< while memory is counted
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_GPUPROGRAM_H
