#include "ctxc/Checkpoint/FileDigest.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/UserCache.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SHA256.h"

using namespace llvm;
using namespace ctxc;

namespace {

constexpr uint64_t chunkBytes = 4 << 20;
constexpr StringLiteral cacheVersion = "ctxc-digest 2";

std::string realPath(StringRef path) {
  SmallString<256> real;
  if (sys::fs::real_path(path, real))
    return path.str();
  return real.str().str();
}

/// The beginning of an entry for this file in its present state.
std::string cacheKey(StringRef path, const FileStamp &stamp) {
  return (cacheVersion + "\n" + realPath(path) + "\n" + Twine(stamp.device) + " " +
          Twine(stamp.inode) + " " + Twine(stamp.size) + " " + Twine(stamp.modifiedNs) + " " +
          Twine(stamp.changedNs) + "\n")
      .str();
}

std::string cached(const UserCache &cache, StringRef name, StringRef key) {
  std::optional<std::string> text = cache.find(name);
  StringRef rest = text ? StringRef(*text) : "";
  bool isOne = rest.consume_front(key) && rest.size() == 64 && all_of(rest, isHexDigit);
  return isOne ? rest.str() : "";
}

Expected<std::string> compute(const MappedFile &file, uint64_t dataStart) {
  SHA256 sum;
  uint64_t size = file.bytes().size();
  std::vector<uint8_t> buffer(std::max(dataStart, std::min(chunkBytes, size)));
  auto read = [&](uint64_t offset, uint64_t count) -> Expected<ArrayRef<uint8_t>> {
    MutableArrayRef<uint8_t> to(buffer.data(), count);
    if (Error e = file.read(offset, to))
      return std::move(e);
    return to;
  };
  Expected<ArrayRef<uint8_t>> header = read(0, dataStart);
  if (!header)
    return header.takeError();
  sum.update(*header);
  for (uint64_t at = dataStart; at < size; at += chunkBytes) {
    Expected<ArrayRef<uint8_t>> chunk = read(at, std::min(chunkBytes, size - at));
    if (!chunk)
      return chunk.takeError();
    sum.update(BLAKE3::hash(*chunk));
  }
  return toHex(sum.final(), /*LowerCase=*/true);
}

} // namespace

static std::string cacheName(StringRef path) {
  std::string real = realPath(path);
  return "digest-" + toHex(SHA256::hash(arrayRefFromStringRef(real)), true);
}

std::string ctxc::digestCachePath(StringRef path) {
  std::string directory = userCacheDirectory();
  return directory.empty() ? "" : directory + "/" + cacheName(path);
}

Expected<std::string> ctxc::digestOfFile(const MappedFile &file, uint64_t dataStart) {
  StringRef path = file.path();
  if (Error e = file.checkUnchanged())
    return std::move(e);
  Expected<FileStamp> before = file.stamp();
  if (!before)
    return before.takeError();
  UserCache cache(userCacheDirectory());
  std::string name = cacheName(path), key = cacheKey(path, *before);
  if (std::string digest = cached(cache, name, key); !digest.empty())
    return digest;
  Expected<std::string> digest = compute(file, dataStart);
  if (!digest)
    return digest;
  Expected<FileStamp> after = file.stamp();
  if (!after)
    return after.takeError();
  if (!(*before == *after))
    return makeError(path + ": file was changed while it was being read; run again when its "
                            "writer is done");
  cache.insert(name, key + *digest);
  return digest;
}
