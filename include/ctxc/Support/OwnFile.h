//===- OwnFile.h - recognises files that ctxc wrote ------------------------===//
#ifndef CTXC_SUPPORT_OWNFILE_H
#define CTXC_SUPPORT_OWNFILE_H

#include "llvm/ADT/StringRef.h"

namespace ctxc {

/// The words that every file of ctxc contains if its format allows this: in a comment at its
/// beginning, or behind the end of an object file.
inline constexpr llvm::StringLiteral ownMark = "Written by ctxc";

/// Whether ctxc wrote the file at `path`, according to its content:
/// - ownMark stands in its first 4 KiB (of SPIR-V, its first MiB), or in its last 64 bytes;
/// - it is JSON, or its first line is, whose member "format" begins with "ctxc";
/// - it is a safetensors file whose metadata has such a "format";
/// - it is GGUF with keys of ctxc's.
bool isOwnFile(llvm::StringRef path);

} // namespace ctxc

#endif // CTXC_SUPPORT_OWNFILE_H
