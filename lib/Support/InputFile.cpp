#include "ctxc/Support/InputFile.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/Errno.h"
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

using namespace llvm;
using namespace ctxc;

static std::string systemMessage() { return sys::StrError(errno); }

static StringRef kindOf(mode_t mode) {
  if (S_ISDIR(mode))
    return "a directory";
  if (S_ISFIFO(mode))
    return "a FIFO";
  if (S_ISSOCK(mode))
    return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode))
    return "a device";
  return "not a regular file";
}

Expected<int> ctxc::openRegularFile(StringRef path, struct stat &status) {
  std::string name = path.str();
  if (name.find('\0') != std::string::npos)
    return makeError(path + ": a path contains a zero byte");
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0)
    return makeError(path + ": cannot open: " + systemMessage());
  scope_exit closer([&] { ::close(fd); });
  if (::fstat(fd, &status) != 0)
    return makeError(path + ": cannot read its size: " + systemMessage());
  if (!S_ISREG(status.st_mode))
    return makeError(path + ": is " + kindOf(status.st_mode) + ", expected a regular file");
  closer.release();
  return fd;
}

Error ctxc::checkRegularFile(StringRef path) {
  struct stat status;
  Expected<int> fd = openRegularFile(path, status);
  if (!fd)
    return fd.takeError();
  ::close(*fd);
  return Error::success();
}

Error ctxc::readAt(int descriptor, StringRef path, uint64_t offset, MutableArrayRef<uint8_t> to) {
  while (!to.empty()) {
    ssize_t n = ::pread(descriptor, to.data(), std::min<size_t>(to.size(), 1u << 30), offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return makeError(path + ": cannot read: " + systemMessage());
    if (n == 0)
      return makeError(path + ": file was cut short while it was being read: it ends at byte " +
                       Twine(offset) + ", expected " + Twine(to.size()) +
                       " bytes more; restore it and run again");
    to = to.drop_front(n);
    offset += n;
  }
  return Error::success();
}

Expected<std::string> ctxc::readSmallFile(StringRef path, uint64_t limit) {
  struct stat status;
  Expected<int> fd = openRegularFile(path, status);
  if (!fd)
    return fd.takeError();
  scope_exit closer([&] { ::close(*fd); });
  uint64_t size = status.st_size;
  if (size > limit)
    return makeError(path + ": found " + Twine(size) + " bytes, expected at most " + Twine(limit));
  std::string text(size, '\0');
  if (Error e = readAt(*fd, path, 0, {reinterpret_cast<uint8_t *>(text.data()), text.size()}))
    return std::move(e);
  return text;
}
