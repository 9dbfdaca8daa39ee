#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

Error ctxc::writeFileAtomically(StringRef path,
                                function_ref<Error(raw_pwrite_stream &)> write) {
  auto temp = sys::fs::TempFile::create(path + ".tmp%%%%%%");
  if (!temp)
    return makeError(path + ": cannot write: " + toString(temp.takeError()));
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
