// A program on a device: its kernels, loaded; its weights, uploaded; and which buffer stands behind
// each argument of a launch.
#ifndef CTXC_LIB_RUNTIME_GPU_GPUPROGRAM_H
#define CTXC_LIB_RUNTIME_GPU_GPUPROGRAM_H

#include "ctxc/Lowering/GPU.h"
#include "ctxc/Runtime/Executor.h"
#include "ctxc/Runtime/GPU/Device.h"
#include "ctxc/Runtime/Weights.h"
#include "lib/Runtime/KernelArguments.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace ctxc {

using BufferPtr = std::unique_ptr<Device::Buffer>;

/// Recorded launches and the temporaries that they use.
struct RecordedSteps {
  std::vector<BufferPtr> temporaries;
  std::unique_ptr<Device::Sequence> sequence;
};

/// A run: the state of each step's contextual ops on the device.
class GpuRun : public Run {
public:
  GpuRun(std::shared_ptr<Device> device, int64_t id, int64_t capacity, size_t steps)
      : device(std::move(device)), id(id), capacity(capacity), slots(capacity), states(steps) {}
  int64_t size() const override { return count; }
  int64_t last() const { return count ? slots[count - 1] : -1; }
  void truncate(int64_t tokens) override { count = std::min(count, tokens); }

  std::shared_ptr<Device> device; ///< outlives the buffers
  int64_t id, capacity, count = 0;
  std::vector<int32_t> slots; ///< absolute positions of the tokens held
  BufferPtr slotBuffer;
  std::vector<std::vector<BufferPtr>> states; ///< of each step: capacity × elements each
  /// What was recorded for this run: without and with a patch, each without and with the head;
  /// and beside a reduced run, by its id and the first layer that is patched.
  RecordedSteps forward[2][2];
  std::map<std::pair<int64_t, int64_t>, RecordedSteps> patch;
};

class GpuProgram {
public:
  GpuProgram(const Program &program, Weights &weights, std::shared_ptr<Device> device)
      : program(program), weights(weights), device(std::move(device)) {}

  /// Compiles all blocks, and uploads the weights of those that can run.
  llvm::Error compile();

  /// Why there is no kernel of `block`; success where there is one.
  llvm::Error check(xf::BlockOp block) const;

  /// Adds the launches of a step's `block`. Of a plain block `stream` says whose values it
  /// reads, and runs[0] is the run; a dual block has both.
  llvm::Error addLaunches(size_t step, xf::BlockOp block, int64_t stream, GpuRun *const runs[2],
                          std::vector<Device::Launch> &launches, RecordedSteps &record);
  /// Ends what addLaunches began.
  llvm::Error record(llvm::ArrayRef<Device::Launch> launches, RecordedSteps &record);

  /// What every launch of a token reads: ids, position, and how many tokens each run sees.
  llvm::Error setToken(int32_t token, int32_t position, GpuRun *full, GpuRun *reduced);
  llvm::Error setPatch(const Patch &patch);
  llvm::Error clearCounts();
  /// What a dual kernel left: its patch, obligations and predicted error.
  llvm::Error readPatch(size_t step, PatchStep &result);
  /// The numbers of a value of the model's chain; setValue: of the full run's, after launches that
  /// read it were added.
  llvm::Expected<std::vector<float>> value(mlir::Value value, int64_t stream);
  llvm::Error setValue(mlir::Value value, llvm::ArrayRef<float> numbers);

  const Program &program;
  Weights &weights;
  std::shared_ptr<Device> device;

private:
  llvm::Expected<Device::Buffer *> argument(size_t step, const GpuKernel &kernel, int64_t index,
                                            int64_t stream, GpuRun *const runs[2], bool isDual);
  llvm::Expected<Device::Buffer *> weight(size_t step, const KernelArg &arg);
  llvm::Expected<Device::Buffer *> bank(BufferPtr &buffer, llvm::StringRef name,
                                        const KernelArg &arg);
  llvm::Expected<Device::Buffer *> setting(size_t step, const KernelArg &arg);
  llvm::Expected<Device::Buffer *> own(BufferPtr &buffer, size_t bytes);
  llvm::Error uploadWeights();
  const GpuKernel &kernelOf(xf::BlockOp block) const;

  llvm::StringMap<GpuKernel> kernels;
  llvm::StringMap<std::string> refusals;
  llvm::StringMap<BufferPtr> weightBuffers; ///< by stored name and type
  std::map<std::pair<size_t, std::string>, BufferPtr> settings;
  std::map<std::pair<void *, int64_t>, BufferPtr> values; ///< of a value and stream
  /// Of a step's dual and applied block, by argument.
  std::map<std::pair<size_t, int64_t>, BufferPtr> dualParts, appliedParts;
  BufferPtr token, position, visible[2];
  std::vector<Rows> loaded;
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_GPUPROGRAM_H
