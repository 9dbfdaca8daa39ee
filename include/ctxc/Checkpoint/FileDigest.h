//===- FileDigest.h - a weight file's digest, computed once ---------------===//
//
// The digest is SHA-256 over the file's header (its first dataStart bytes) and
// then the BLAKE3 digests of its data in chunks of 4 MiB. It is kept in
// $XDG_CACHE_HOME/ctxc or ~/.cache/ctxc under the file's real path, with size,
// times and inode; while these are unchanged, the data is not read again. A cache that
// cannot be read or written is not an error; it only costs time.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_CHECKPOINT_FILEDIGEST_H
#define CTXC_CHECKPOINT_FILEDIGEST_H

#include "ctxc/Checkpoint/MappedFile.h"

namespace ctxc {

/// 64 hexadecimal digits, of a file whose tensors begin at `dataStart`. Fails when the file
/// changes or ends while it is read.
llvm::Expected<std::string> digestOfFile(const MappedFile &file, uint64_t dataStart);

/// The path under which the digest of the file at `path` is cached; empty if there is no cache.
std::string digestCachePath(llvm::StringRef path);

} // namespace ctxc

#endif // CTXC_CHECKPOINT_FILEDIGEST_H
