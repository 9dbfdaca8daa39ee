#include "lib/Runtime/GPU/CUDA/CudaDevice.h"
#include "lib/Runtime/GPU/Devices.h"
#include "lib/Runtime/GPU/Wanted.h"

using namespace ctxc;
using llvm::Expected;
using llvm::StringRef;

Expected<std::unique_ptr<Device>> ctxc::openCudaDevice(StringRef rest) {
  auto wanted = Wanted::parse("cuda", rest);
  if (!wanted)
    return wanted.takeError();
  int architecture = 0; // of none: any
  StringRef name = wanted->architecture;
  if (name.consume_front("sm_"))
    name.getAsInteger(10, architecture);
  auto opened = cuda::CudaDevice::open(architecture, wanted->isChecked);
  if (!opened)
    return opened.takeError();
  return std::unique_ptr<Device>(std::move(*opened));
}
