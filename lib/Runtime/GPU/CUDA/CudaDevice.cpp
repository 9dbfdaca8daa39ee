#include "lib/Runtime/GPU/CUDA/CudaDevice.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/GPU/Devices.h"
#include <dlfcn.h>

using namespace ctxc;
using namespace ctxc::cuda;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

/// The architectures with a target (GpuTarget::named), newest first. PTX runs on newer ones, too.
static constexpr int architectures[] = {90, 80};

Expected<std::unique_ptr<CudaDevice>> CudaDevice::open(int architecture, bool isChecked,
                                                       int number) {
  std::unique_ptr<CudaDevice> made(new CudaDevice(isChecked));
  if (Error error = made->openContext(architecture, number))
    return std::move(error);
  return made;
}

Error CudaDevice::openContext(int wanted, int number) {
  constexpr StringRef expected = "a driver of CUDA 11.8 or later";
  const char *const file = "libcuda.so.1";
  auto library = openDriver(file, "cuda: there is no driver of NVIDIA's");
  if (!library)
    return library.takeError();
  if (const char *lacking = own.lookUp([&](const char *name) { return dlsym(*library, name); }))
    return makeError(llvm::Twine("cuda: ") + file + " lacks " + lacking + "; expected " + expected);
  if (Error error = start(*library, file, graphs::Names::Cuda, expected))
    return error;
  if (Error error = choose(wanted, number))
    return error;
  if (Result result = own.PrimaryCtxRetain(&context, device)) {
    context = nullptr;
    return failed("opening " + label, result);
  }
  return openStream();
}

/// Of the devices that run code for `wanted` (0: for any target), the one at `number`.
Error CudaDevice::choose(int wanted, int number) {
  auto devices = count();
  if (!devices)
    return devices.takeError();
  std::string found;
  struct Choice {
    Ordinal device;
    std::string label;
    int architecture;
  };
  std::vector<Choice> choices;
  for (int i = 0; i < *devices; ++i) {
    char text[256] = {};
    int major = 0, minor = 0;
    Result result = api.DeviceGet(&device, i);
    if (!result)
      result = api.DeviceGetName(text, sizeof text - 1, device);
    if (!result)
      result = own.DeviceGetAttribute(&major, kMajor, device);
    if (!result)
      result = own.DeviceGetAttribute(&minor, kMinor, device);
    if (result)
      return failed("asking device " + std::to_string(i) + " what it is", result);
    int has = 10 * major + minor;
    for (int candidate : architectures)
      if (candidate <= has && (!wanted || wanted == candidate)) {
        choices.push_back({device, text, candidate});
        break;
      }
    found +=
        (found.empty() ? "" : " and ") + std::string(text) + " (sm_" + std::to_string(has) + ")";
  }
  if (!choices.empty()) {
    Choice &chosen = choices[number % choices.size()];
    device = chosen.device;
    label = std::move(chosen.label);
    architecture = chosen.architecture;
    return Error::success();
  }
  if (!*devices)
    return makeError("cuda: the driver shows no device");
  int least = wanted ? wanted : architectures[std::size(architectures) - 1];
  return makeError("cuda: found " + found + ", expected a device of sm_" + std::to_string(least) +
                   " or later");
}

CudaDevice::~CudaDevice() {
  if (!context)
    return;
  closeStream();
  own.CtxSetCurrent(nullptr);
  own.PrimaryCtxRelease(device);
}
