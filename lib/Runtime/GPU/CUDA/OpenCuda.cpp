#include "ctxc/Lowering/GPU.h"
#include "lib/Runtime/GPU/CUDA/CudaDevice.h"
#include "lib/Runtime/GPU/Devices.h"

using namespace ctxc;
using namespace ctxc::cuda;
using llvm::Expected;
using llvm::StringRef;

Expected<std::unique_ptr<ctxc::Device>> ctxc::openCudaDevice(StringRef rest) {
  int architecture = 0;
  bool isChecked = false;
  llvm::SmallVector<StringRef, 2> words;
  rest.split(words, ':', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef word : words) {
    if (word == "checked") {
      isChecked = true;
      continue;
    }
    auto target = GpuTarget::named(("cuda:" + word).str());
    if (!target)
      return target.takeError();
    word.drop_front(StringRef("sm_").size()).getAsInteger(10, architecture);
  }
  auto opened = CudaDevice::open(architecture, isChecked);
  if (!opened)
    return opened.takeError();
  return std::unique_ptr<ctxc::Device>(std::move(*opened));
}
