// A libcuda.so.1 for tests: the functions that only NVIDIA's driver has. GraphFunctions.inc
// has those of both drivers.
#include "State.h"
#include <algorithm>
#include <cstdlib>

using namespace fake_gpu;

#include "GraphFunctions.inc"

extern "C" {

Result cuGetErrorName(Result result, const char **name) {
  switch (result) {
  case kOutOfMemory:
    *name = "CUDA_ERROR_OUT_OF_MEMORY";
    return 0;
  case kNoDevice:
    *name = "CUDA_ERROR_NO_DEVICE";
    return 0;
  case kInvalidCode:
    *name = "CUDA_ERROR_INVALID_PTX";
    return 0;
  case kNotFound:
    *name = "CUDA_ERROR_NOT_FOUND";
    return 0;
  case kIllegalAddress:
    *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
    return 0;
  case kLaunchFailed:
    *name = "CUDA_ERROR_LAUNCH_FAILED";
    return 0;
  }
  *name = nullptr;
  return kInvalidValue;
}
Result cuDeviceGetAttribute(int *value, Attribute attribute, Ordinal device) {
  ENTER(, false);
  int capability = state().options.devices.at(device);
  *value = attribute == kMajor ? capability / 10 : attribute == kMinor ? capability % 10 : -1;
  return 0;
}
Result cuDevicePrimaryCtxRetain(Context *context, Ordinal) {
  ENTER(, false);
  ++state().context.retained;
  *context = &state().context;
  return 0;
}
Result cuDevicePrimaryCtxRelease_v2(Ordinal) {
  ENTER(, false);
  State &s = state();
  if (--s.context.retained)
    return 0;
  // Destroying a context frees what is in it; after a fault nothing else can.
  if (s.fault) {
    freeAll(s.memory);
    freeAll(s.pinned);
    s.handles.clear();
  }
  return 0;
}
Result cuCtxSetCurrent(Context context) {
  ENTER(, false);
  current = context;
  return 0;
}

Result cuModuleLoadDataEx(Module *module, const void *image, unsigned count, JitOption *options,
                          void **values) {
  auto log = [&](const std::string &text) {
    char *to = nullptr;
    size_t bytes = 0;
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == kErrorLog)
        to = static_cast<char *>(values[i]);
      else
        bytes = reinterpret_cast<size_t>(values[i]);
    if (to)
      snprintf(to, bytes, "%s", text.c_str());
  };
  if (Result result = enter(__func__)) {
    log(state().options.compilerLog);
    return result;
  }
  auto made = std::make_shared<ModuleObject>();
  std::string error;
  if (!ptx::parse(static_cast<const char *>(image), made->code, error)) {
    log("ptxas: " + error);
    return kInvalidCode;
  }
  if (std::atoi(made->code.target.c_str() + 3) > state().options.devices[0])
    return 209; // no binary for the device
  *module = give(std::move(made), "module");
  return 0;
}
Result cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, size_t bytes, Stream stream) {
  ENTER();
  if (Result result = outsideCapture(stream))
    return result;
  if (!isDevice(to, bytes) || !isDevice(from, bytes)) {
    problem("a copy between memory that is not there");
    return kInvalidValue;
  }
  stream->work.push_back([=] {
    memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
    state().clock += 1e-3;
  });
  return 0;
}

} // extern "C"
