// A device to test on. The tests of this folder are for any device, and compiled once for the
// programs of test/unit/Vulkan (the processor, through Mesa's lavapipe, or any other Vulkan device)
// and of test/unit/CUDA (a fake of NVIDIA's driver).
#ifndef CTXC_TEST_UNIT_GPU_DEVICE_H
#define CTXC_TEST_UNIT_GPU_DEVICE_H

#include "ctxc/Runtime/GPU/GpuExecutor.h"
#include "test/unit/Compiled/TextModel.h"

namespace ctxc::test {

/// The device of this program, as `Device::open` takes it.
extern const char *const testDevice;

/// Opens the device; null, and the reason in `reason`, where there is none.
inline std::unique_ptr<Device> openDevice(std::string &reason) {
  auto device = Device::open(testDevice);
  if (device)
    return std::move(*device);
  reason = llvm::toString(device.takeError());
  return nullptr;
}

/// Skips the test where there is no device.
#define CTXC_OPEN_DEVICE(NAME)                                                                     \
  std::string NAME##Reason;                                                                        \
  std::unique_ptr<Device> NAME = openDevice(NAME##Reason);                                         \
  if (!NAME)                                                                                       \
  GTEST_SKIP() << NAME##Reason << "; tools/setup.sh --judges installs one"

inline std::unique_ptr<Executor> onDevice(const Program &program, Weights &weights,
                                          std::unique_ptr<Device> device,
                                          const GpuOptions &options = {}) {
  auto made = createGpuExecutor(program, weights, std::move(device), options);
  if (made)
    return std::move(*made);
  ADD_FAILURE() << llvm::toString(made.takeError());
  return nullptr;
}

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_GPU_DEVICE_H
