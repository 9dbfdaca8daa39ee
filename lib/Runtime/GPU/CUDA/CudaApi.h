// The functions of NVIDIA's driver that HIP does not have with the same parameters.
#ifndef CTXC_LIB_RUNTIME_GPU_CUDA_CUDAAPI_H
#define CTXC_LIB_RUNTIME_GPU_CUDA_CUDAAPI_H

#include "lib/Runtime/GPU/Graphs/GraphApi.h"
#include "lib/Runtime/GPU/LookUp.h"

namespace ctxc::cuda {

using graphs::Ordinal;
using graphs::Result;
using Context = struct ContextObject *;

/// Attributes of a device.
enum Attribute : int { kMajor = 75, kMinor = 76 };

struct Api {
  Result (*DeviceGetAttribute)(int *value, Attribute, Ordinal) = nullptr;
  Result (*PrimaryCtxRetain)(Context *, Ordinal) = nullptr;
  Result (*PrimaryCtxRelease)(Ordinal) = nullptr;
  Result (*CtxSetCurrent)(Context) = nullptr;

  /// The name of a function that the library lacks; null where all are there. `find` is dlsym.
  template <typename Find> const char *lookUp(Find find) {
    LookUp<Find> get{find};
    get(DeviceGetAttribute, "cuDeviceGetAttribute");
    get(PrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
    get(PrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
    get(CtxSetCurrent, "cuCtxSetCurrent");
    return get.lacking;
  }
};

} // namespace ctxc::cuda

#endif // CTXC_LIB_RUNTIME_GPU_CUDA_CUDAAPI_H
