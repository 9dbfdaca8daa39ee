// An NVIDIA GPU: chosen by its compute capability, and opened by its primary context.
#ifndef CTXC_LIB_RUNTIME_GPU_CUDA_CUDADEVICE_H
#define CTXC_LIB_RUNTIME_GPU_CUDA_CUDADEVICE_H

#include "lib/Runtime/GPU/CUDA/CudaApi.h"
#include "lib/Runtime/GPU/Graphs/GraphDevice.h"

namespace ctxc::cuda {

class CudaDevice : public graphs::GraphDevice {
public:
  ~CudaDevice() override;

  /// `architecture` 0: the newest target that a device runs. Where `isChecked`, every run
  /// goes launch by launch. `number` as for Device::open.
  static llvm::Expected<std::unique_ptr<CudaDevice>> open(int architecture, bool isChecked,
                                                          int number);
  std::string target() const override { return "cuda:sm_" + std::to_string(architecture); }

private:
  explicit CudaDevice(bool isChecked) : GraphDevice("cuda", isChecked) {}
  Result makeCurrent() const override { return own.CtxSetCurrent(context); }
  llvm::Error openContext(int wanted, int number);
  llvm::Error choose(int wanted, int number);

  cuda::Api own;
  Ordinal device = 0;
  int architecture = 0;
  Context context = nullptr;
};

} // namespace ctxc::cuda

#endif // CTXC_LIB_RUNTIME_GPU_CUDA_CUDADEVICE_H
