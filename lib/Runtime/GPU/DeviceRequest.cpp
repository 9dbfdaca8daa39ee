#include "lib/Runtime/GPU/DeviceRequest.h"
#include "ctxc/Lowering/GPU.h"

using namespace ctxc;
using llvm::Expected;
using llvm::StringRef;

Expected<DeviceRequest> DeviceRequest::parse(StringRef brand, StringRef rest) {
  DeviceRequest request;
  llvm::SmallVector<StringRef, 2> words;
  rest.split(words, ':', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef word : words) {
    if (word == "checked") {
      request.isChecked = true;
      continue;
    }
    auto target = GpuTarget::named((brand + ":" + word).str());
    if (!target)
      return target.takeError();
    request.architecture = word.str();
  }
  return request;
}
