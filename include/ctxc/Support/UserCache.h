//===- UserCache.h - what is kept for a user from run to run ---------------===//
//
// What is read from a cache is believed: code from it is executed, and a digest from it is written
// into patches. One rule therefore holds for all of it. A folder is used if it belongs to this user
// and nobody else may write to it. A file is used if the same holds for it, it is a regular file
// and no link, and it begins with a digest of its name and content, so that one that was renamed is
// not taken for another. Everything else is made anew, and said so.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SUPPORT_USERCACHE_H
#define CTXC_SUPPORT_USERCACHE_H

#include "llvm/ADT/StringRef.h"
#include <functional>
#include <optional>
#include <string>

namespace ctxc {

/// $XDG_CACHE_HOME/ctxc or ~/.cache/ctxc, which need not exist; empty where neither is an absolute
/// path.
std::string userCacheDirectory();

/// The cached files of one folder. Files are written to a temporary name and renamed, so that any
/// number of processes can share a cache. One that cannot be read or written is not an error, but
/// costs time.
class UserCache {
public:
  /// Uses `directory`, which is created with mode 0700 if it does not exist. The cache is off if
  /// the name is empty, or the folder is not one to be believed.
  explicit UserCache(std::string directory);

  bool isOn() const { return !directory.empty(); }
  llvm::StringRef path() const { return directory; }

  /// What was stored under `name`, a file's name; none where there is nothing to be believed.
  std::optional<std::string> find(llvm::StringRef name) const;
  void insert(llvm::StringRef name, llvm::StringRef content) const;

private:
  std::string directory;
};

/// For a program: `say` gets a line for each file and folder of a cache that is not believed, once
/// each.
void setCacheNotice(std::function<void(llvm::StringRef)> say);

} // namespace ctxc

#endif // CTXC_SUPPORT_USERCACHE_H
