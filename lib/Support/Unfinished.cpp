#include "ctxc/Support/Unfinished.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <random>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace llvm;
using namespace ctxc;

namespace {

//===--- The table of names, readable from a signal handler -----------------===//

constexpr int slotCount = 64, longestName = 4096;
struct Slot {
  std::atomic<bool> isTaken{false};
  std::atomic<bool> isComplete{false};
  char name[longestName];
};
Slot slots[slotCount];

/// −1 when the table is full, or the name is too long for the system.
int publish(StringRef name) {
  if (name.size() >= longestName)
    return -1;
  for (int i = 0; i < slotCount; ++i) {
    if (slots[i].isTaken.exchange(true))
      continue;
    std::memcpy(slots[i].name, name.data(), name.size());
    slots[i].name[name.size()] = 0;
    slots[i].isComplete = true;
    return i;
  }
  return -1;
}

void withdraw(int slot) {
  if (slot < 0)
    return;
  slots[slot].isComplete = false;
  slots[slot].isTaken = false;
}

//===--- Removing, by calls that a signal handler may make ------------------===//

void removeAll(int at, const char *name, int depth);

/// Removes what is in the open directory `folder`.
void removeContent(int folder, int depth) {
  // What the system fills for SYS_getdents64; readdir would allocate.
  struct Entry {
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t type;
    char name[];
  };
  alignas(Entry) char buffer[8192];
  for (;;) {
    long bytes = ::syscall(SYS_getdents64, folder, buffer, sizeof buffer);
    if (bytes <= 0)
      return;
    for (long at = 0; at < bytes;) {
      auto *entry = reinterpret_cast<Entry *>(buffer + at);
      at += entry->size;
      if (std::strcmp(entry->name, ".") && std::strcmp(entry->name, ".."))
        removeAll(folder, entry->name, depth + 1);
    }
  }
}

void removeAll(int at, const char *name, int depth) {
  constexpr int deepest = 8;
  if (::unlinkat(at, name, 0) == 0 || depth > deepest)
    return;
  int folder = ::openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0)
    return;
  removeContent(folder, depth);
  ::close(folder);
  ::unlinkat(at, name, AT_REMOVEDIR);
}

//===--- Names ---------------------------------------------------------------===//

/// PREFIX and twelve random digits.
std::string uniqueName(StringRef prefix) {
  static std::mutex mutex;
  static std::random_device random;
  std::lock_guard<std::mutex> guard(mutex);
  uint64_t number = uint64_t(random()) << 32 | random();
  return (prefix + utohexstr(number & 0xffffffffffff, /*LowerCase=*/true, /*Width=*/12)).str();
}

/// Calls `make` with new names until one is free. The name is in the table before there is anything
/// of that name, so that no signal comes in between.
Expected<std::pair<std::string, int>> makeUnique(StringRef prefix,
                                                 function_ref<bool(const char *)> make) {
  for (int attempt = 0;; ++attempt) {
    std::string name = uniqueName(prefix);
    int slot = publish(name);
    if (make(name.c_str()))
      return std::make_pair(std::move(name), slot);
    withdraw(slot);
    if (errno != EEXIST || attempt == 100)
      return makeError(sys::StrError(errno));
  }
}

} // namespace

Expected<Unfinished> Unfinished::file(StringRef prefix, mode_t mode) {
  int fd = -1;
  auto made = makeUnique(prefix, [&](const char *name) {
    fd = ::open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    return fd >= 0;
  });
  if (!made)
    return made.takeError();
  return Unfinished(std::move(made->first), made->second, fd);
}

Expected<Unfinished> Unfinished::directory(StringRef prefix, mode_t mode) {
  auto made = makeUnique(prefix, [&](const char *name) { return ::mkdir(name, mode) == 0; });
  if (!made)
    return made.takeError();
  return Unfinished(std::move(made->first), made->second, -1);
}

Expected<Unfinished> Unfinished::temporaryDirectory() {
  SmallString<128> prefix;
  llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, prefix);
  Expected<Unfinished> made = directory((prefix + "/ctxc-").str(), 0700);
  if (!made)
    return makeError(prefix +
                     ": no temporary directory can be made: " + toString(made.takeError()));
  return made;
}

Unfinished::Unfinished(Unfinished &&other)
    : name(std::move(other.name)), slot(std::exchange(other.slot, -1)),
      fd(std::exchange(other.fd, -1)) {
  other.name.clear();
}

Unfinished::~Unfinished() {
  if (!name.empty())
    removeAll(AT_FDCWD, name.c_str(), 0);
  release();
}

void Unfinished::release() {
  if (fd >= 0)
    ::close(fd);
  withdraw(slot);
  name.clear();
  slot = fd = -1;
}

Error Unfinished::keepAs(StringRef to) {
  if (std::error_code error = sys::fs::rename(name, to))
    return makeError(error.message());
  release();
  return Error::success();
}

void ctxc::removeUnfinished() {
  for (Slot &slot : slots)
    if (slot.isComplete)
      removeAll(AT_FDCWD, slot.name, 0);
}

//===----------------------------------------------------------------------===//
// Signals
//===----------------------------------------------------------------------===//

static constexpr int ending[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGPIPE, SIGALRM,
                                 SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ};
static struct sigaction previous[std::size(ending)];

static void onSignal(int signal) {
  removeUnfinished();
  for (auto [i, each] : enumerate(ending))
    if (each == signal)
      ::sigaction(signal, &previous[i], nullptr);
  ::raise(signal); // comes when this handler has returned
}

void ctxc::removeUnfinishedOnSignals() {
  struct sigaction action = {};
  action.sa_handler = onSignal;
  sigfillset(&action.sa_mask);
  for (auto [i, each] : enumerate(ending)) {
    ::sigaction(each, nullptr, &previous[i]);
    if (previous[i].sa_handler == SIG_DFL)
      ::sigaction(each, &action, nullptr);
  }
}
