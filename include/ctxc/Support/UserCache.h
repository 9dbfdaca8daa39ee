//===- UserCache.h - the folder of a user's cached files ------------------===//
#ifndef CTXC_SUPPORT_USERCACHE_H
#define CTXC_SUPPORT_USERCACHE_H

#include <string>

namespace ctxc {

/// $XDG_CACHE_HOME/ctxc or ~/.cache/ctxc, which need not exist; empty where neither is an absolute
/// path.
std::string userCacheDirectory();

} // namespace ctxc

#endif // CTXC_SUPPORT_USERCACHE_H
