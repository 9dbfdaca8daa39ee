#include "ctxc/Support/Error.h"
#include "lib/Runtime/GPU/Devices.h"
#include <dlfcn.h>

llvm::Expected<void *> ctxc::openDriver(llvm::ArrayRef<const char *> libraries,
                                        llvm::StringRef what) {
  std::string first; // why the newest could not be loaded
  for (const char *library : libraries) {
    if (void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL))
      return opened;
    if (first.empty())
      first = std::string(library) + " cannot be loaded: " + dlerror();
  }
  return makeError(what + ": " + first);
}
