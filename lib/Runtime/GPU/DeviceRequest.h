// Parses the words of a device's name behind its brand (cuda:sm_90:checked).
#ifndef CTXC_LIB_RUNTIME_GPU_DEVICEREQUEST_H
#define CTXC_LIB_RUNTIME_GPU_DEVICEREQUEST_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace ctxc {

/// A target's words after the brand: an architecture (empty: any), and whether it is checked.
struct DeviceRequest {
  std::string architecture;
  bool isChecked = false;

  static llvm::Expected<DeviceRequest> parse(llvm::StringRef brand, llvm::StringRef rest);
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_DEVICEREQUEST_H
