// What all kernels of a model on a device share, for any number of tokens: weights, settings,
// and the patch that is applied.
#ifndef CTXC_LIB_RUNTIME_GPU_GPUSTORE_H
#define CTXC_LIB_RUNTIME_GPU_GPUSTORE_H

#include "ctxc/Program/Weights.h"
#include "ctxc/Runtime/GPU/Device.h"
#include "lib/Runtime/GPU/GpuRanks.h"
#include "lib/Runtime/KernelArguments.h"
#include "lib/Runtime/Parts.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace ctxc {

using BufferPtr = std::unique_ptr<Device::Buffer>;

/// The bytes of an argument; of one row where its first dimension is not known.
size_t argumentBytes(mlir::Type type);

template <typename T> llvm::ArrayRef<char> asBytes(llvm::ArrayRef<T> numbers) {
  return {reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(T)};
}

/// An argument of one of a step's kernels.
struct StepArgument {
  size_t step;
  KernelArg arg;
  int64_t index;                              ///< among the arguments of all of its block's kernels
  const shard::LocalSource *source = nullptr; ///< where a rank has a part of what it is
};

class GpuStore {
public:
  GpuStore(const Program &program, Weights &weights, std::shared_ptr<Device> device,
           const RankShare &share)
      : program(program), weights(weights), device(std::move(device)),
        stage(share.stage ? *share.stage : wholeStage(program)), windows(windowsOf(program)),
        neighbours(share.neighbours) {}

  /// Joins the other ranks that share the model's layers.
  llvm::Error share(const GpuOptions &options);
  /// Loads code, and returns its number for Device::Launch.
  llvm::Expected<uint32_t> load(llvm::StringRef code);

  /// Uploads the weights and settings that steps' arguments name. Fails where the device's memory
  /// is too small.
  llvm::Error uploadWeights(llvm::ArrayRef<StepArgument> arguments);
  llvm::Expected<Device::Buffer *> weight(const StepArgument &argument);
  llvm::Expected<Device::Buffer *> setting(const StepArgument &argument);
  /// A part of the patch that a step's applied block reads, by the argument's index.
  llvm::Expected<Device::Buffer *> applied(size_t step, int64_t argument, size_t bytes);
  /// Uploads the parts of a patch that kernels with `args` load. The block loads `whole`.
  llvm::Error setPatch(llvm::ArrayRef<StepArgument> args, llvm::ArrayRef<KernelArg> whole,
                       const Patch &patch);

  const Program &program;
  Weights &weights;
  std::shared_ptr<Device> device;
  const Stage stage;                  ///< the steps that this rank runs
  const std::vector<int64_t> windows; ///< of each step's attention; 0: it has none
  Neighbours *const neighbours;
  std::optional<GpuRanks> ranks; ///< where several share the model's layers

  /// Whether this rank has logits: its stage is the last.
  bool hasLogits() const { return stage.end == program.steps.size(); }

private:
  static std::vector<int64_t> windowsOf(const Program &program);
  std::string storedName(const StepArgument &argument) const;
  llvm::Expected<const void *> addressOf(const StepArgument &argument, llvm::StringRef name);
  llvm::Expected<std::vector<const void *>> slicesOf(const StepArgument &argument,
                                                     llvm::StringRef name);
  llvm::Expected<Device::Buffer *> bank(BufferPtr &buffer, llvm::StringRef name,
                                        const StepArgument &argument);
  llvm::Expected<Device::Buffer *> own(BufferPtr &buffer, size_t bytes);

  uint32_t loads = 0;
  llvm::StringMap<BufferPtr> weightBuffers; ///< by stored name and type
  std::map<std::pair<size_t, std::string>, BufferPtr> settings;
  std::map<std::pair<size_t, int64_t>, BufferPtr> appliedParts;
  std::vector<Rows> loaded;
  PartCopies copies; ///< of what is being uploaded
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_GPUSTORE_H
