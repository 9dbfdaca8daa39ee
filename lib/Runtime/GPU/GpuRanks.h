// The ranks that share a model's layers, each with a device of its own: what they exchange between
// the launches of a block's segments (ctxc/Shard/LocalBlock.h). Sums are computed by the devices
// where there is a library for that (DeviceSums.h), and else by the hosts.
#ifndef CTXC_LIB_RUNTIME_GPU_GPURANKS_H
#define CTXC_LIB_RUNTIME_GPU_GPURANKS_H

#include "ctxc/Runtime/GPU/GpuExecutor.h"
#include "lib/Runtime/GPU/DeviceSums.h"

namespace ctxc {

/// A transfer and the buffers of its slots; where it is null, the whole value is copied.
struct DeviceTransfer {
  const shard::Transfer *how = nullptr;
  Device::Buffer *from = nullptr, *to = nullptr;
};

class GpuRanks {
public:
  /// What these name must outlive this.
  GpuRanks(Device &device, const RankShare &share) : device(device), share(share) {}
  /// Has all ranks use their devices for sums, if each of them can; else `whyHosts` says why one
  /// cannot. Errors: another rank could not go on; a group of devices cannot be made.
  llvm::Error join();

  const shard::LocalBlocks &blocks() const { return *share.local; }
  int64_t rank() const { return blocks().rank(); }
  /// Whether `mine` is true on every rank, all of which call this.
  llvm::Expected<bool> all(bool mine);

  /// Before launches with transfers between them: waits until all ranks are about to run them, so
  /// that none waits for one that never comes.
  llvm::Error meet();
  llvm::Error transfer(llvm::ArrayRef<DeviceTransfer> transfers, int64_t rows);
  /// An error of launches after which other ranks wait for sums in vain.
  llvm::Error fatal(llvm::Error error) const;

  std::string whyHosts;

private:
  llvm::Error sumBytes(std::vector<char> &bytes);
  llvm::Error throughHosts(llvm::ArrayRef<DeviceTransfer> transfers, int64_t rows);
  llvm::Error onDevices(const DeviceTransfer &transfer, int64_t rows);
  llvm::Error copyPart(const DeviceTransfer &transfer, int64_t rows, int64_t of,
                       Device::Buffer *part, size_t offset, bool intoWhole);
  llvm::Error sumOnDevices(const DeviceTransfer &transfer, int64_t rows);
  llvm::Error gatherOnDevices(const DeviceTransfer &transfer, int64_t rows);

  Device &device;
  const RankShare share;
  std::unique_ptr<DeviceSums> sums;
  std::unique_ptr<Device::Buffer> received; ///< the others' parts of a value
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_GPURANKS_H
