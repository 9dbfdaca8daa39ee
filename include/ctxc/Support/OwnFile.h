//===- OwnFile.h - the files that ctxc knows for its own -------------------===//
#ifndef CTXC_SUPPORT_OWNFILE_H
#define CTXC_SUPPORT_OWNFILE_H

#include "llvm/ADT/StringRef.h"

namespace ctxc {

/// The words that a file of ctxc has, where its format lets it: in a comment at its beginning, or
/// behind the end of an object file.
inline constexpr llvm::StringLiteral ownMark = "Written by ctxc";

/// Whether ctxc wrote the file at `path`, as far as its content says:
/// - ownMark stands in its first 4 KiB (of SPIR-V, its first MiB), or in its last 64 bytes;
/// - it is JSON, or its first line is, whose member "format" begins with "ctxc";
/// - it is a safetensors file whose metadata has such a "format";
/// - it is GGUF with keys of ctxc's.
bool isOwnFile(llvm::StringRef path);

} // namespace ctxc

#endif // CTXC_SUPPORT_OWNFILE_H
