#include "ctxc/Checkpoint/MappedFile.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/Signals.h"
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;
using namespace ctxc;

namespace {

//===--- The guard's table of maps, readable from a signal handler ---------===//

struct Slot {
  std::atomic<const uint8_t *> base{nullptr}; ///< null: free
  std::atomic<uint64_t> size{0};
  std::atomic<const char *> path{nullptr};
};
constexpr int slotCount = 4096;
Slot slots[slotCount];
const uint8_t *const reserved = reinterpret_cast<const uint8_t *>(1);
struct sigaction previousAction;
std::atomic<bool> installed{false};
const uint64_t pageSize = ::sysconf(_SC_PAGESIZE);

/// Publishes a map; -1 when the table is full (the map works, unguarded).
int publish(const uint8_t *base, uint64_t size, const char *path) {
  for (int i = 0; i < slotCount; ++i) {
    const uint8_t *expected = nullptr;
    if (!slots[i].base.compare_exchange_strong(expected, reserved))
      continue;
    slots[i].path = path;
    slots[i].size = size;
    slots[i].base = base;
    return i;
  }
  return -1;
}

void withdraw(int slot) {
  if (slot < 0)
    return;
  slots[slot].size = 0;
  slots[slot].base = nullptr;
}

void put(const char *text) {
  size_t length = std::strlen(text);
  while (length > 0) {
    ssize_t n = ::write(STDERR_FILENO, text, length);
    if (n <= 0)
      return;
    text += n;
    length -= n;
  }
}

void onBusError(int signal, siginfo_t *info, void *context) {
  auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (Slot &slot : slots) {
    auto base = reinterpret_cast<uintptr_t>(slot.base.load());
    // The map ends where its last page does, past the last byte of the file.
    uint64_t mapped = (slot.size.load() + pageSize - 1) / pageSize * pageSize;
    if (base <= 1 || address < base || address - base >= mapped)
      continue;
    put("ctxc: error: ");
    put(slot.path.load());
    put(": file was cut short while it was being read; restore it and run again\n");
    sys::RunInterruptHandlers();
    ::_exit(2);
  }
  // Not in a mapped file: restore the previous handler; the access faults again.
  ::sigaction(SIGBUS, &previousAction, nullptr);
}

//===--- Opening ------------------------------------------------------------===//

std::string systemMessage() { return sys::StrError(errno); }

StringRef kindOf(mode_t mode) {
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

Expected<int> openRegular(StringRef path, struct stat &status) {
  std::string name = path.str();
  if (name.find('\0') != std::string::npos)
    return makeError("a path contains a zero byte");
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

Error readAt(int fd, StringRef path, uint64_t offset, MutableArrayRef<uint8_t> to) {
  while (!to.empty()) {
    ssize_t n = ::pread(fd, to.data(), std::min<size_t>(to.size(), 1u << 30), offset);
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

} // namespace

Expected<std::unique_ptr<MappedFile>> MappedFile::open(StringRef path) {
  struct stat status;
  Expected<int> fd = openRegular(path, status);
  if (!fd)
    return fd.takeError();
  std::unique_ptr<MappedFile> file(new MappedFile);
  file->filePath = path.str();
  file->fd = *fd;
  file->size = status.st_size;
  if (file->size == 0)
    return makeError(path + ": the file is empty");
  void *base = ::mmap(nullptr, file->size, PROT_READ, MAP_SHARED, *fd, 0);
  if (base == MAP_FAILED)
    return makeError(path + ": cannot map into memory: " + systemMessage());
  // Where the file system has large pages, the file is read into these: in fewer reads
  // of the disk, and with faster address translation. Elsewhere nothing changes.
  (void)::madvise(base, file->size, MADV_HUGEPAGE);
  file->base = static_cast<const uint8_t *>(base);
  file->guardSlot = publish(file->base, file->size, file->filePath.c_str());
  return file;
}

MappedFile::~MappedFile() {
  withdraw(guardSlot);
  if (base)
    ::munmap(const_cast<uint8_t *>(base), size);
  if (fd >= 0)
    ::close(fd);
}

Error MappedFile::read(uint64_t offset, MutableArrayRef<uint8_t> to) const {
  assert(offset <= size && to.size() <= size - offset && "range outside the file");
  return readAt(fd, filePath, offset, to);
}

Expected<FileStamp> MappedFile::stamp() const {
  struct stat status;
  if (::fstat(fd, &status) != 0)
    return makeError(filePath + ": cannot read its size: " + systemMessage());
  auto ns = [](const timespec &t) { return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec; };
  FileStamp stamp;
  stamp.device = status.st_dev;
  stamp.inode = status.st_ino;
  stamp.size = status.st_size;
  stamp.modifiedNs = ns(status.st_mtim);
  stamp.changedNs = ns(status.st_ctim);
  return stamp;
}

Error MappedFile::checkUnchanged() const {
  Expected<FileStamp> now = stamp();
  if (!now)
    return now.takeError();
  if (now->size < size)
    return makeError(filePath + ": file was cut short while mapped: found " + Twine(now->size) +
                     " bytes, expected " + Twine(size) + "; restore it and run again");
  if (now->size > size)
    return makeError(filePath + ": file grew while mapped: found " + Twine(now->size) +
                     " bytes, expected " + Twine(size) + "; run again when it is complete");
  return Error::success();
}

Expected<std::string> ctxc::readSmallFile(StringRef path, uint64_t limit) {
  struct stat status;
  Expected<int> fd = openRegular(path, status);
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

void ctxc::installMappedFileGuard() {
  if (installed.exchange(true))
    return;
  struct sigaction action = {};
  action.sa_sigaction = onBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &previousAction);
}
