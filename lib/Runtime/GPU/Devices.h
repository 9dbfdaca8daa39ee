// The kinds of devices, each in its own folder.
#ifndef CTXC_LIB_RUNTIME_GPU_DEVICES_H
#define CTXC_LIB_RUNTIME_GPU_DEVICES_H

#include "ctxc/Runtime/GPU/Device.h"

namespace ctxc {

/// `rest` is what follows the colon of a target's name, `number` as for Device::open.
#define CTXC_DEVICE(NAME, TEXT, EXAMPLES)                                                          \
  llvm::Expected<std::unique_ptr<Device>> open##NAME##Device(llvm::StringRef rest, int number);
#include "ctxc/Support/Devices.def"

/// A driver's library, the first that exists; it is never unloaded, since drivers keep threads. The
/// error says `what` where there is none.
llvm::Expected<void *> openDriver(llvm::ArrayRef<const char *> libraries, llvm::StringRef what);

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_DEVICES_H
