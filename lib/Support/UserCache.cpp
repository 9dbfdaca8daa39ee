#include "ctxc/Support/UserCache.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Support/Unfinished.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <unistd.h>

using namespace llvm;

static constexpr StringLiteral magic = "ctxc cache 1\n";
static constexpr size_t digestBytes = 32, headerBytes = magic.size() + digestBytes;
static constexpr uint64_t largestFile = 1 << 30;

std::string ctxc::userCacheDirectory() {
  SmallString<256> at;
  if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && sys::path::is_absolute(cache)) {
    at = cache;
  } else {
    const char *home = std::getenv("HOME");
    if (!home || !sys::path::is_absolute(home))
      return "";
    at = home;
    sys::path::append(at, ".cache");
  }
  sys::path::append(at, "ctxc");
  return at.str().str();
}

//===----------------------------------------------------------------------===//
// The rule
//===----------------------------------------------------------------------===//

static std::mutex noticeMutex;
static std::function<void(StringRef)> &notice() {
  static std::function<void(StringRef)> say;
  return say;
}

void ctxc::setCacheNotice(std::function<void(StringRef)> say) {
  std::lock_guard<std::mutex> guard(noticeMutex);
  notice() = std::move(say);
}

static void say(const Twine &line) {
  static StringSet<> said;
  std::lock_guard<std::mutex> guard(noticeMutex);
  std::string text = line.str();
  if (notice() && said.insert(text).second)
    notice()(text);
}

/// Why the cache does not trust a file with this owner and mode; empty if it does.
static StringRef whyNot(const struct stat &status) {
  if (status.st_uid != ::geteuid())
    return "belongs to another user";
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    return "can be written by others";
  return "";
}

static std::string digestOf(StringRef name, StringRef content) {
  SHA256 sum;
  sum.update(name);
  sum.update(StringRef("", 1)); // no name has a zero byte
  sum.update(content);
  return toStringRef(sum.final()).str();
}

//===----------------------------------------------------------------------===//
// Folders and files
//===----------------------------------------------------------------------===//

/// Creates `directory` if it does not exist, and returns whether it may be used.
static bool makePrivate(StringRef directory) {
  std::string path = directory.str();
  if (sys::fs::create_directories(sys::path::parent_path(path), /*IgnoreExisting=*/true,
                                  sys::fs::owner_all))
    return false;
  struct stat status;
  if ((::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) || ::stat(path.c_str(), &status) != 0)
    return false;
  StringRef why = S_ISDIR(status.st_mode) ? whyNot(status) : "is no folder";
  if (!why.empty())
    say(directory + ": " + why + "; nothing is cached there" +
        (why.contains("others") ? ", expected 'chmod go-w' of it" : ""));
  return why.empty();
}

ctxc::UserCache::UserCache(std::string directory) {
  if (!directory.empty() && makePrivate(directory))
    this->directory = std::move(directory);
}

/// The file's content; none, with the reason, where it is not to be believed.
static std::optional<std::string> read(StringRef path, StringRef &why) {
  int descriptor =
      ::open(path.str().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) {
    why = errno == ELOOP ? "is a link" : "";
    return std::nullopt;
  }
  scope_exit closer([&] { ::close(descriptor); });
  struct stat status;
  if (::fstat(descriptor, &status) != 0)
    return std::nullopt;
  uint64_t size = status.st_size;
  why = !S_ISREG(status.st_mode) ? "is no regular file"
        : size > largestFile     ? "is too large"
                                 : whyNot(status);
  if (!why.empty())
    return std::nullopt;
  std::string text(size, '\0');
  if (errorToBool(ctxc::readAt(descriptor, path, 0,
                               {reinterpret_cast<uint8_t *>(text.data()), text.size()})))
    return std::nullopt;
  return text;
}

std::optional<std::string> ctxc::UserCache::find(StringRef name) const {
  if (!isOn())
    return std::nullopt;
  std::string path = directory + "/" + name.str();
  StringRef why;
  std::optional<std::string> text = read(path, why);
  if (text) {
    StringRef content = StringRef(*text).drop_front(std::min(text->size(), headerBytes));
    StringRef digest = StringRef(*text).substr(magic.size(), digestBytes);
    if (StringRef(*text).starts_with(magic) && digest == digestOf(name, content))
      return content.str();
    why = "is damaged, or was stored under another name";
  }
  if (!why.empty())
    say(path + ": " + why + "; it is not used, and made anew");
  return std::nullopt;
}

void ctxc::UserCache::insert(StringRef name, StringRef content) const {
  if (!isOn())
    return;
  std::string path = directory + "/" + name.str();
  Expected<Unfinished> made = Unfinished::file(path + ".tmp-", 0600);
  if (!made)
    return consumeError(made.takeError());
  raw_fd_ostream os(made->descriptor(), /*shouldClose=*/false);
  os << magic << digestOf(name, content) << content;
  os.flush();
  bool failed = os.has_error();
  os.clear_error();
  if (!failed)
    consumeError(made->keepAs(path));
}
