#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

/// A device or a pipe is written into. Renaming a file over it, as root may,
/// would replace /dev/null for everyone.
static bool isSpecial(StringRef path) {
  sys::fs::file_status status;
  return !sys::fs::status(path, status) && !sys::fs::is_regular_file(status) &&
         !sys::fs::is_directory(status);
}

static Error writeSpecial(StringRef path, function_ref<Error(raw_pwrite_stream &)> write) {
  SmallVector<char, 0> content; // a pipe cannot seek, and `write` may
  raw_svector_ostream buffer(content);
  if (Error failure = write(buffer))
    return failure;
  std::error_code error;
  raw_fd_ostream os(path, error, sys::fs::CD_OpenExisting, sys::fs::FA_Write, sys::fs::OF_None);
  if (error)
    return ctxc::makeError(path + ": cannot write: " + error.message());
  os << buffer.str();
  os.close();
  if (!os.has_error())
    return Error::success();
  Error failure = ctxc::makeError(path + ": cannot write: " + os.error().message());
  os.clear_error();
  return failure;
}

Error ctxc::writeFileAtomically(StringRef path, function_ref<Error(raw_pwrite_stream &)> write) {
  if (isSpecial(path))
    return writeSpecial(path, write);
  auto temp = sys::fs::TempFile::create(path + ".tmp%%%%%%");
  if (!temp)
    return ctxc::makeError(path + ": cannot write: " + toString(temp.takeError()));
  Error failure = Error::success();
  {
    raw_fd_ostream os(temp->FD, /*shouldClose=*/false);
    failure = write(os);
    os.flush();
    if (os.has_error()) {
      failure = joinErrors(std::move(failure),
                           makeError(path + ": cannot write: " + os.error().message()));
      os.clear_error();
    }
  }
  if (!failure)
    if (Error renamed = temp->keep(path))
      failure = makeError(path + ": cannot write: " + toString(std::move(renamed)));
  if (failure)
    return joinErrors(std::move(failure), temp->discard());
  return Error::success();
}
