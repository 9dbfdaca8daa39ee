// What all kernels of a model on a device share, for any number of tokens: weights, settings,
// and the patch that is applied.
#ifndef CTXC_LIB_RUNTIME_GPU_GPUSTORE_H
#define CTXC_LIB_RUNTIME_GPU_GPUSTORE_H

#include "ctxc/Program/Weights.h"
#include "ctxc/Runtime/GPU/Device.h"
#include "lib/Runtime/KernelArguments.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace ctxc {

using BufferPtr = std::unique_ptr<Device::Buffer>;

/// The bytes of an argument; of one row where its first dimension is not known.
size_t argumentBytes(mlir::Type type);

template <typename T> llvm::ArrayRef<char> asBytes(llvm::ArrayRef<T> numbers) {
  return {reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(T)};
}

class GpuStore {
public:
  GpuStore(const Program &program, Weights &weights, std::shared_ptr<Device> device)
      : program(program), weights(weights), device(std::move(device)) {}

  /// Loads code, and returns its number for Device::Launch.
  llvm::Expected<uint32_t> load(llvm::StringRef code);

  /// Uploads the weights and settings that steps' arguments name. Fails where the device's memory
  /// is too small.
  llvm::Error uploadWeights(llvm::ArrayRef<std::pair<size_t, KernelArg>> arguments);
  llvm::Expected<Device::Buffer *> weight(size_t step, const KernelArg &arg);
  llvm::Expected<Device::Buffer *> setting(size_t step, const KernelArg &arg);
  /// A part of the patch that a step's applied block reads, by the argument's index.
  llvm::Expected<Device::Buffer *> applied(size_t step, int64_t argument, size_t bytes);
  /// Uploads the parts of a patch that kernels with `args` load.
  llvm::Error setPatch(size_t step, llvm::ArrayRef<KernelArg> args, const Patch &patch);

  const Program &program;
  Weights &weights;
  std::shared_ptr<Device> device;

private:
  llvm::Expected<Device::Buffer *> bank(BufferPtr &buffer, llvm::StringRef name,
                                        const KernelArg &arg);
  llvm::Expected<Device::Buffer *> own(BufferPtr &buffer, size_t bytes);

  uint32_t loads = 0;
  llvm::StringMap<BufferPtr> weightBuffers; ///< by stored name and type
  std::map<std::pair<size_t, std::string>, BufferPtr> settings;
  std::map<std::pair<size_t, int64_t>, BufferPtr> appliedParts;
  std::vector<Rows> loaded;
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_GPUSTORE_H
