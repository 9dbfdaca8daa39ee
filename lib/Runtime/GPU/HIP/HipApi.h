// The functions of AMD's HIP that NVIDIA's driver does not have with the same parameters.
#ifndef CTXC_LIB_RUNTIME_GPU_HIP_HIPAPI_H
#define CTXC_LIB_RUNTIME_GPU_HIP_HIPAPI_H

#include "lib/Runtime/GPU/Graphs/GraphApi.h"
#include "lib/Runtime/GPU/LookUp.h"

namespace ctxc::hip {

using graphs::Ordinal;
using graphs::Result;

/// Properties of a device, as ROCm 6 and later lay them out (R0600), with room for later additions.
struct Properties {
  char before[1160];
  char architecture[256]; ///< gfx942:sramecc+:xnack-
  char after[2680];
};
static_assert(sizeof(Properties) == 4096);

struct Api {
  Result (*SetDevice)(Ordinal) = nullptr;
  Result (*DeviceReset)() = nullptr;
  Result (*GetDeviceProperties)(Properties *, Ordinal) = nullptr;

  /// The name of a function that the library lacks; null where all are there. `find` is dlsym.
  template <typename Find> const char *lookUp(Find find) {
    LookUp<Find> get{find};
    get(SetDevice, "hipSetDevice");
    get(DeviceReset, "hipDeviceReset");
    get(GetDeviceProperties, "hipGetDevicePropertiesR0600");
    return get.lacking;
  }
};

} // namespace ctxc::hip

#endif // CTXC_LIB_RUNTIME_GPU_HIP_HIPAPI_H
