#include "ctxc/Support/UserCache.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"
#include <cstdlib>

using namespace llvm;

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
