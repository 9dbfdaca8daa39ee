#include "ctxc/Support/NewDirectory.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Unfinished.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <cstdio>
#include <fcntl.h>

using namespace llvm;
using namespace ctxc;

std::string ctxc::pathIn(StringRef directory, StringRef name) {
  SmallString<256> path(directory);
  sys::path::append(path, name);
  return path.str().str();
}

static bool isThere(StringRef path) {
  sys::fs::file_status status;
  return !sys::fs::status(path, status, /*follow=*/false);
}

static Error alreadyThere(StringRef path) {
  return makeError(path + ": already exists; name a directory that does not");
}

/// rename(2) that fails where the target exists, even as an empty directory.
static Error publish(StringRef from, StringRef to) {
  std::string source = from.str(), target = to.str();
  if (::renameat2(AT_FDCWD, source.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0)
    return Error::success();
  if (errno == EEXIST)
    return alreadyThere(to);
  if (errno == EINVAL || errno == ENOSYS) { // a file system without the flag
    if (isThere(to))
      return alreadyThere(to);
    if (::rename(source.c_str(), target.c_str()) == 0)
      return Error::success();
  }
  return makeError(to + ": cannot write: " + sys::StrError(errno));
}

Error ctxc::writeNewDirectory(StringRef path, StringRef what, function_ref<Error(StringRef)> fill) {
  SmallString<256> target(path);
  sys::path::remove_dots(target, /*remove_dot_dot=*/false);
  if (target.empty() || target == "/")
    return makeError("'" + path + "': cannot be written as " + what);
  if (isThere(target))
    return alreadyThere(target);
  if (std::error_code ec = sys::fs::make_absolute(target))
    return makeError(path + ": cannot write: " + ec.message());

  Expected<Unfinished> made = Unfinished::directory((target + ".tmp-").str());
  if (!made)
    return makeError(path + ": cannot write: " + toString(made.takeError()));
  if (Error failure = fill(made->path()))
    return failure;
  if (Error failure = publish(made->path(), target))
    return failure;
  made->release();
  return Error::success();
}
