// What the words of a device's name ask for.
#ifndef CTXC_LIB_RUNTIME_GPU_WANTED_H
#define CTXC_LIB_RUNTIME_GPU_WANTED_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace ctxc {

/// A target's words after the brand: an architecture (empty: any), and whether it is checked.
struct Wanted {
  std::string architecture;
  bool isChecked = false;

  static llvm::Expected<Wanted> parse(llvm::StringRef brand, llvm::StringRef rest);
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_WANTED_H
