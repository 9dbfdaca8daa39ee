//===- Error.h - errors with a lower-case, complete message ---------------===//
//
// Fallible functions that have no MLIR location return llvm::Error or
// llvm::Expected. A message starts in lower case, has no final period, names
// the file or thing it is about first, and says found, expected and what to do:
//
//   model.safetensors: header length 4096 exceeds the file's 512 bytes; the
//   file is truncated, fetch it again
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SUPPORT_ERROR_H
#define CTXC_SUPPORT_ERROR_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

namespace ctxc {

/// An error whose message is `message`, printed as it is. Several errors are
/// joined with llvm::joinErrors; each is reported on a line of its own.
inline llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

} // namespace ctxc

#endif // CTXC_SUPPORT_ERROR_H
