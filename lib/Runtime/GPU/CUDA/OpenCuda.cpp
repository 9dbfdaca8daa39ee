#include "lib/Runtime/GPU/CUDA/CudaDevice.h"
#include "lib/Runtime/GPU/DeviceRequest.h"
#include "lib/Runtime/GPU/Devices.h"

using namespace ctxc;
using llvm::Expected;
using llvm::StringRef;

Expected<std::unique_ptr<Device>> ctxc::openCudaDevice(StringRef rest, int number) {
  auto request = DeviceRequest::parse("cuda", rest);
  if (!request)
    return request.takeError();
  int architecture = 0; // any
  StringRef name = request->architecture;
  if (name.consume_front("sm_"))
    name.getAsInteger(10, architecture);
  auto opened = cuda::CudaDevice::open(architecture, request->isChecked, number);
  if (!opened)
    return opened.takeError();
  return std::unique_ptr<Device>(std::move(*opened));
}
