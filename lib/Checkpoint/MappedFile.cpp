#include "ctxc/Checkpoint/MappedFile.h"
#include "ctxc/Checkpoint/MappedPages.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Unfinished.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/MathExtras.h"
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <set>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

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

/// As printable() writes it, but in ASCII.
void putName(const char *name) {
  const char *digits = "0123456789abcdef";
  for (; *name; ++name) {
    auto c = static_cast<unsigned char>(*name);
    char escaped[] = {'\\', 'x', digits[c >> 4], digits[c & 15], 0}, plain[] = {*name, 0};
    put(c < 0x20 || c >= 0x7f ? escaped : plain);
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
    putName(slot.path.load());
    put(": file was cut short while it was being read; restore it and run again\n");
    removeUnfinished();
    ::_exit(2);
  }
  // Not in a mapped file: restore the previous handler; the access faults again.
  ::sigaction(SIGBUS, &previousAction, nullptr);
}

//===--- The files that a program has read ----------------------------------===//

std::mutex mapsMutex;
std::set<const MappedFile *> &openMaps() {
  static auto &maps = *new std::set<const MappedFile *>();
  return maps;
}
/// The messages of those that had changed when they were closed.
std::vector<std::string> &changedMaps() {
  static auto &messages = *new std::vector<std::string>();
  return messages;
}

std::string systemMessage() { return sys::StrError(errno); }

FileStamp stampOf(const struct stat &status) {
  auto ns = [](const timespec &t) { return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec; };
  FileStamp stamp;
  stamp.device = status.st_dev;
  stamp.inode = status.st_ino;
  stamp.size = status.st_size;
  stamp.modifiedNs = ns(status.st_mtim);
  stamp.changedNs = ns(status.st_ctim);
  stamp.links = status.st_nlink;
  stamp.mode = status.st_mode;
  stamp.owner = status.st_uid;
  return stamp;
}

/// Whether the content may be another. The time of modification can be set back; the time of change
/// cannot, but is also that of a new name, mode or owner.
bool mayDiffer(const FileStamp &a, const FileStamp &b) {
  bool isRenamed = a.links != b.links || a.mode != b.mode || a.owner != b.owner;
  return a.size != b.size || a.modifiedNs != b.modifiedNs ||
         (a.changedNs != b.changedNs && !isRenamed);
}

} // namespace

Expected<std::unique_ptr<MappedFile>> MappedFile::open(StringRef path) {
  struct stat status;
  Expected<int> fd = openRegularFile(path, status);
  if (!fd)
    return fd.takeError();
  std::unique_ptr<MappedFile> file(new MappedFile);
  file->filePath = path.str();
  file->fd = *fd;
  file->opened = stampOf(status);
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
  std::lock_guard<std::mutex> guard(mapsMutex);
  openMaps().insert(file.get());
  return file;
}

MappedFile::~MappedFile() {
  {
    std::lock_guard<std::mutex> guard(mapsMutex);
    if (openMaps().erase(this) && installed)
      if (Error error = checkUnchanged())
        changedMaps().push_back(toString(std::move(error)));
  }
  withdraw(guardSlot);
  if (base)
    ::munmap(const_cast<uint8_t *>(base), size);
  if (fd >= 0)
    ::close(fd);
}

Error MappedFile::read(uint64_t offset, MutableArrayRef<uint8_t> to) const {
  assert(offset <= size && to.size() <= size - offset && "range outside the file");
  return ctxc::readAt(fd, filePath, offset, to);
}

Expected<FileStamp> MappedFile::stamp() const {
  struct stat status;
  if (::fstat(fd, &status) != 0)
    return makeError(filePath + ": cannot read its size: " + systemMessage());
  return stampOf(status);
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
  if (mayDiffer(*now, opened))
    return makeError(filePath + ": file was changed while it was being read; run again when its "
                                "writer is done");
  return Error::success();
}

void ctxc::giveBackMappedPages(const uint8_t *data, uint64_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t page = sysconf(_SC_PAGESIZE);
  const uintptr_t from = alignTo(begin, page), to = alignDown(begin + bytes, page);
  std::lock_guard<std::mutex> guard(mapsMutex);
  for (const MappedFile *file : openMaps())
    if (from < to && data >= file->bytes().begin() && data + bytes <= file->bytes().end())
      (void)::madvise(reinterpret_cast<void *>(from), to - from, MADV_DONTNEED);
}

void ctxc::mapWithoutNeighbours(const uint8_t *data, uint64_t bytes) {
  constexpr uintptr_t large = uintptr_t(2) << 20;
  const auto begin = reinterpret_cast<uintptr_t>(data), end = begin + bytes;
  std::lock_guard<std::mutex> guard(mapsMutex);
  for (const MappedFile *file : openMaps()) {
    const auto first = reinterpret_cast<uintptr_t>(file->bytes().begin());
    const auto last = reinterpret_cast<uintptr_t>(file->bytes().end());
    if (begin < first || end > last)
      continue;
    for (uintptr_t edge : {begin, end}) {
      if (edge % large == 0)
        continue;
      const uintptr_t from = std::max(alignDown(edge, large), first);
      (void)::madvise(reinterpret_cast<void *>(from), std::min(alignTo(edge, large), last) - from,
                      MADV_NOHUGEPAGE);
    }
  }
}

Error ctxc::checkMappedFiles() {
  std::lock_guard<std::mutex> guard(mapsMutex);
  Error errors = Error::success();
  for (const std::string &message : changedMaps())
    errors = joinErrors(std::move(errors), makeError(message));
  for (const MappedFile *file : openMaps())
    errors = joinErrors(std::move(errors), file->checkUnchanged());
  return errors;
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
