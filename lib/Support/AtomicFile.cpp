#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Unfinished.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include <unistd.h>
#include <utility>

using namespace llvm;

static ctxc::OutputCheck &outputCheck() {
  static ctxc::OutputCheck check;
  return check;
}

ctxc::OutputCheck ctxc::setOutputCheck(OutputCheck check) {
  return std::exchange(outputCheck(), std::move(check));
}

Error ctxc::checkOutput(StringRef path) {
  return outputCheck() ? outputCheck()(path) : Error::success();
}

/// The open descriptor that `path` names, as /dev/stdout does; −1 where it names none. Where that
/// leads to a file, a rename would replace the link in /dev, and opening the file again would write
/// over what is there.
static int namedDescriptor(StringRef path) {
  int descriptor =
      StringSwitch<int>(path).Case("/dev/stdout", 1).Case("/dev/stderr", 2).Default(-1);
  for (StringRef folder : {"/dev/fd/", "/proc/self/fd/"})
    if (StringRef number = path; number.consume_front(folder))
      if (number.getAsInteger(10, descriptor))
        descriptor = -1;
  return descriptor;
}

/// A device or a pipe is written into. Renaming a file over it, as root may,
/// would replace /dev/null for everyone.
bool ctxc::isWrittenInto(StringRef path) {
  sys::fs::file_status status;
  return namedDescriptor(path) >= 0 ||
         (!sys::fs::status(path, status) && !sys::fs::is_regular_file(status) &&
          !sys::fs::is_directory(status));
}

static Error writeInto(StringRef path, function_ref<Error(raw_pwrite_stream &)> write) {
  SmallVector<char, 0> content; // a pipe cannot seek, and `write` may
  raw_svector_ostream buffer(content);
  if (Error failure = write(buffer))
    return failure;
  if (Error failure = ctxc::checkOutput(path))
    return failure;
  outs().flush(); // may lead to the same place
  int descriptor = namedDescriptor(path);
  std::error_code error;
  if (descriptor >= 0)
    descriptor = ::dup(descriptor);
  else
    error = sys::fs::openFile(path, descriptor, sys::fs::CD_OpenExisting, sys::fs::FA_Write,
                              sys::fs::OF_None);
  if (!error && descriptor < 0)
    error = errnoAsErrorCode();
  if (error)
    return ctxc::makeError(path + ": cannot write: " + error.message());
  raw_fd_ostream os(descriptor, /*shouldClose=*/true);
  os << buffer.str();
  os.close();
  if (!os.has_error())
    return Error::success();
  Error failure = ctxc::makeError(path + ": cannot write: " + os.error().message());
  os.clear_error();
  return failure;
}

Error ctxc::writeFileAtomically(StringRef path, function_ref<Error(raw_pwrite_stream &)> write) {
  if (isWrittenInto(path))
    return writeInto(path, write);
  Expected<Unfinished> made = Unfinished::file((path + ".tmp-").str());
  if (!made)
    return ctxc::makeError(path + ": cannot write: " + toString(made.takeError()));
  Error failure = Error::success();
  {
    raw_fd_ostream os(made->descriptor(), /*shouldClose=*/false);
    failure = write(os);
    os.flush();
    if (os.has_error()) {
      failure = joinErrors(std::move(failure),
                           makeError(path + ": cannot write: " + os.error().message()));
      os.clear_error();
    }
  }
  if (!failure)
    failure = checkOutput(path);
  if (failure)
    return failure;
  if (Error error = made->keepAs(path))
    return makeError(path + ": cannot write: " + toString(std::move(error)));
  return Error::success();
}
