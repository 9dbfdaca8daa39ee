// An AMD GPU, chosen by its architecture: a code object is for one architecture alone.
#include "ctxc/Lowering/GPU.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/GPU/DeviceRequest.h"
#include "lib/Runtime/GPU/Devices.h"
#include "lib/Runtime/GPU/Graphs/GraphDevice.h"
#include "lib/Runtime/GPU/HIP/HipApi.h"
#include <dlfcn.h>

using namespace ctxc;
using namespace ctxc::hip;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

class HipDevice : public graphs::GraphDevice {
public:
  explicit HipDevice(bool isChecked) : GraphDevice("rocm", isChecked) {}
  ~HipDevice() override;

  /// `wanted` empty: any architecture with a target. `number` as for Device::open.
  Error open(StringRef wanted, int number);
  std::string target() const override { return "rocm:" + architecture; }

private:
  Result makeCurrent() const override { return own.SetDevice(device); }
  Error choose(StringRef wanted, int number);

  hip::Api own;
  Ordinal device = 0;
  std::string architecture;
  bool isOpen = false;
};

} // namespace

Expected<std::unique_ptr<Device>> ctxc::openAmdDevice(StringRef rest, int number) {
  auto request = DeviceRequest::parse("rocm", rest);
  if (!request)
    return request.takeError();
  auto made = std::make_unique<HipDevice>(request->isChecked);
  if (Error error = made->open(request->architecture, number))
    return std::move(error);
  return made;
}

HipDevice::~HipDevice() {
  if (!isOpen)
    return;
  closeStream();
  if (hasFaulted()) // nothing else frees its memory
    own.DeviceReset();
}

Error HipDevice::open(StringRef wanted, int number) {
  constexpr StringRef file = "libamdhip64.so", expected = "HIP of ROCm 6 or later";
  auto library = openDriver({"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"},
                            "rocm: there is no HIP of AMD's");
  if (!library)
    return library.takeError();
  if (const char *lacking = own.lookUp([&](const char *name) { return dlsym(*library, name); }))
    return makeError("rocm: " + file + " lacks " + lacking + "; expected " + expected);
  if (Error error = start(*library, file, graphs::Names::Hip, expected))
    return error;
  if (Error error = choose(wanted, number))
    return error;
  isOpen = true;
  return openStream();
}

/// Of the devices whose architecture has a target, and is `wanted` unless that is empty, the one at
/// `number`.
Error HipDevice::choose(StringRef wanted, int number) {
  auto devices = count();
  if (!devices)
    return devices.takeError();
  std::string found;
  struct Choice {
    Ordinal device;
    std::string label, architecture;
  };
  std::vector<Choice> choices;
  for (int i = 0; i < *devices; ++i) {
    char text[256] = {};
    Properties properties = {};
    Result result = api.DeviceGet(&device, i);
    if (!result)
      result = api.DeviceGetName(text, sizeof text - 1, device);
    if (!result)
      result = own.GetDeviceProperties(&properties, i);
    if (result)
      return failed("asking device " + std::to_string(i) + " what it is", result);
    // The features that follow are not needed by any code.
    properties.architecture[sizeof properties.architecture - 1] = 0;
    StringRef has = StringRef(properties.architecture).split(':').first;
    if (llvm::Error unknown = GpuTarget::named(("rocm:" + has).str()).takeError()) {
      llvm::consumeError(std::move(unknown));
    } else if (wanted.empty() || wanted == has) {
      choices.push_back({device, text, has.str()});
    }
    found += (found.empty() ? "" : " and ") + std::string(text) + " (" + has.str() + ")";
  }
  if (!choices.empty()) {
    Choice &chosen = choices[number % choices.size()];
    device = chosen.device;
    label = std::move(chosen.label);
    architecture = std::move(chosen.architecture);
    return Error::success();
  }
  if (!*devices)
    return makeError("rocm: HIP shows no device");
  return makeError("rocm: found " + found + ", expected a device of " +
                   (wanted.empty() ? "gfx90a, gfx942 or gfx1100" : wanted));
}
