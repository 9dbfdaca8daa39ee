//===- LinkLibrary.h - an object file of kernels as a shared library ------===//
#ifndef CTXC_TOOLS_CTXC_LINKLIBRARY_H
#define CTXC_TOOLS_CTXC_LINKLIBRARY_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace ctxc::driver {

/// Links the bytes of an object file and the functions that kernels call into a library with the
/// soname `name`, and returns its bytes. Needs a linker: c++, clang++ or g++ in PATH.
llvm::Expected<std::string> linkLibrary(llvm::StringRef object, llvm::StringRef name);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_LINKLIBRARY_H
