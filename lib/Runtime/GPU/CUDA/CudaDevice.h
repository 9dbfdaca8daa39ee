// An NVIDIA GPU through its driver. A sequence is a graph, captured once and launched for each
// token. Opening and memory are in CudaDevice.cpp, code and sequences in CudaSequence.cpp.
#ifndef CTXC_LIB_RUNTIME_GPU_CUDA_CUDADEVICE_H
#define CTXC_LIB_RUNTIME_GPU_CUDA_CUDADEVICE_H

#include "ctxc/Runtime/GPU/Device.h"
#include "lib/Runtime/GPU/CUDA/CudaStaging.h"
#include "llvm/ADT/StringMap.h"

namespace ctxc::cuda {

class CudaDevice;

struct CudaBuffer : ctxc::Device::Buffer {
  CudaDevice *owner = nullptr;
  Pointer address = 0;
  ~CudaBuffer() override;
};

class CudaDevice : public ctxc::Device {
public:
  /// `architecture` 0: the newest of the targets' that the device runs. Where `isChecked`, every
  /// run goes launch by launch.
  static llvm::Expected<std::unique_ptr<CudaDevice>> open(int architecture, bool isChecked);
  ~CudaDevice() override;

  std::string name() const override { return label; }
  std::string target() const override { return "cuda:sm_" + std::to_string(architecture); }
  size_t memory() const override { return free(); }

  llvm::Error load(llvm::StringRef code) override;
  llvm::Expected<std::unique_ptr<Buffer>> allocate(size_t bytes) override;
  llvm::Error upload(Buffer &to, size_t offset, llvm::ArrayRef<char> from) override;
  llvm::Error download(llvm::MutableArrayRef<char> to, const Buffer &from, size_t offset) override;
  llvm::Expected<std::unique_ptr<Sequence>> record(llvm::ArrayRef<Launch> launches) override;
  llvm::Expected<double> run(Sequence &sequence) override;

  /// Makes the device's context the thread's; an error after a fault, when nothing more is run.
  llvm::Error enter();
  /// Makes the context the thread's, to free what is in it: false after a fault, when all of it
  /// goes with the context.
  bool canFree() { return fault.empty() && !api.CtxSetCurrent(context); }
  /// What failed, in the driver's words.
  llvm::Error failed(llvm::StringRef what, Result result) const;
  /// Of a result that says how kernels ended: remembers a fault.
  llvm::Error ended(llvm::StringRef what, Result result);

  Api api;

private:
  struct Recorded;
  llvm::Error choose(int wanted);
  llvm::Error openContext();
  size_t free() const;
  llvm::Expected<Function> functionOf(const Launch &launch);
  llvm::Error capture(Recorded &recorded);
  llvm::Error runEach(const Recorded &recorded);
  Result launch(const Recorded &recorded, size_t i);

  cuda::Device device = 0;
  int architecture = 0;
  bool isChecked = false;
  std::string label, fault;
  Context context = nullptr;
  Stream stream = nullptr;
  Event begin = nullptr, end = nullptr;
  Module code = nullptr;
  Staging staging;
  llvm::StringMap<Function> functions;
};

} // namespace ctxc::cuda

#endif // CTXC_LIB_RUNTIME_GPU_CUDA_CUDADEVICE_H
