//===- LinkLibrary.h - an object file of kernels as a shared library ------===//
#ifndef CTXC_TOOLS_CTXC_LINKLIBRARY_H
#define CTXC_TOOLS_CTXC_LINKLIBRARY_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace ctxc::driver {

/// Links the bytes of an object file and the functions that kernels call into a library at `path`,
/// which appears complete or not at all. Needs a linker: c++, clang++ or g++ in PATH.
llvm::Error linkLibrary(llvm::StringRef object, llvm::StringRef path);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_LINKLIBRARY_H
