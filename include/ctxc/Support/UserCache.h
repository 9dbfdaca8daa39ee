//===- UserCache.h - a user's cache, kept from run to run ------------------===//
//
// Content of a cache is trusted: code from it is executed, and a digest from it is written into
// patches. Therefore one rule holds for all of it. A folder is used if it belongs to this user and
// nobody else may write to it. A file is used if the same holds for it, it is a regular file and
// not a link, and it begins with a digest of its name and content, so that a renamed file is not
// taken for another. Everything else is made again, with a notice.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SUPPORT_USERCACHE_H
#define CTXC_SUPPORT_USERCACHE_H

#include "llvm/ADT/StringRef.h"
#include <functional>
#include <optional>
#include <string>

namespace ctxc {

/// $XDG_CACHE_HOME/ctxc or ~/.cache/ctxc, which need not exist; empty if neither is an absolute
/// path.
std::string userCacheDirectory();

/// The cached files of one folder. Files are written to a temporary name and renamed, so that any
/// number of processes can share a cache. A cache that cannot be read or written is not an error;
/// it only costs time.
class UserCache {
public:
  /// Uses `directory`, which is created with mode 0700 if it does not exist. The cache is off if
  /// the name is empty, or the folder is not trusted.
  explicit UserCache(std::string directory);

  bool isOn() const { return !directory.empty(); }
  llvm::StringRef path() const { return directory; }

  /// The content stored under `name`, a file's name; none if there is none that is trusted.
  std::optional<std::string> find(llvm::StringRef name) const;
  void insert(llvm::StringRef name, llvm::StringRef content) const;

private:
  std::string directory;
};

/// For a program: `say` gets one line for each file and folder of a cache that is not trusted.
void setCacheNotice(std::function<void(llvm::StringRef)> say);

} // namespace ctxc

#endif // CTXC_SUPPORT_USERCACHE_H
