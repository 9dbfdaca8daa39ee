#include "ctxc/Support/Error.h"
#include "lib/Runtime/GPU/Devices.h"
#include <dlfcn.h>

llvm::Expected<void *> ctxc::openDriver(const char *library, llvm::StringRef what) {
  if (void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL))
    return opened;
  return makeError(what + ": " + library + " cannot be loaded: " + dlerror());
}
