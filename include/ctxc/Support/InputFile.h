//===- InputFile.h - reads files from untrusted sources -------------------===//
#ifndef CTXC_SUPPORT_INPUTFILE_H
#define CTXC_SUPPORT_INPUTFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <sys/stat.h>

namespace ctxc {

/// Opens a regular file, or a symbolic link to one, for reading; `status` becomes its fstat(2).
/// FIFOs, sockets, devices and directories are refused, without waiting for them.
llvm::Expected<int> openRegularFile(llvm::StringRef path, struct stat &status);

/// Fails if openRegularFile would: for a file that a library opens by its name.
llvm::Error checkRegularFile(llvm::StringRef path);

/// Fills `to` from `offset` of the open file; an error if the file ends earlier.
llvm::Error readAt(int descriptor, llvm::StringRef path, uint64_t offset,
                   llvm::MutableArrayRef<uint8_t> to);

/// The content of a small regular file; an error when it is larger than `limit`.
llvm::Expected<std::string> readSmallFile(llvm::StringRef path, uint64_t limit);

} // namespace ctxc

#endif // CTXC_SUPPORT_INPUTFILE_H
