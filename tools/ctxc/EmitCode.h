//===- EmitCode.h - the stages of `ctxc compile` below the dialects -------===//
#ifndef CTXC_TOOLS_CTXC_EMITCODE_H
#define CTXC_TOOLS_CTXC_EMITCODE_H

#include "ctxc/Runtime/Program.h"
#include "llvm/Support/Error.h"

namespace ctxc::driver {

/// Writes `stage` of the program's kernels to `path` ("-": the screen, for text):
///   linalg   kernels on tensors and memrefs, before tiling
///   llvm     LLVM IR, optimised for this machine
///   obj      an object file; shared: a library. Beside either, with the same
///            stem, NAME.h (C declarations) and NAME.json (the manifest).
/// A shared library needs a linker: c++, clang++ or g++ in PATH.
llvm::Error emitCode(const Program &program, llvm::StringRef stage, llvm::StringRef path);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_EMITCODE_H
