#include "ctxc/Lowering/KernelCache.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/UserCache.h"
#include "lib/Lowering/LoweringDigest.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include <cstdlib>
#include <unistd.h>

using namespace llvm;
using namespace ctxc;

static constexpr StringLiteral magic = "ctxc kernel 1\n";
static constexpr size_t digestBytes = 32, headBytes = magic.size() + digestBytes;

/// Creates `directory` if it does not exist, and returns whether it belongs to this user and to
/// nobody else.
static bool makePrivate(StringRef directory) {
  if (sys::fs::create_directories(sys::path::parent_path(directory)))
    return false;
  std::error_code failed =
      sys::fs::create_directory(directory, /*IgnoreExisting=*/true, sys::fs::owner_all);
  sys::fs::file_status status;
  if (failed || sys::fs::status(directory, status))
    return false;
  auto others = sys::fs::perms::group_all | sys::fs::perms::others_all;
  return sys::fs::is_directory(status) && status.getUser() == geteuid() &&
         (status.permissions() & others) == 0;
}

KernelCache::KernelCache(std::string directory)
    : directory(!directory.empty() && makePrivate(directory) ? std::move(directory) : "") {}

KernelCache KernelCache::ofUser() {
  const char *wish = std::getenv("CTXC_KERNEL_CACHE");
  std::string root = wish && StringRef(wish) == "off" ? "" : userCacheDirectory();
  return KernelCache(root.empty() ? "" : root + "/kernels");
}

std::string KernelCache::keyOf(StringRef what, const CpuTarget &target) {
  std::string text;
  raw_string_ostream os(text);
  os << loweringDigest << "\n"
     << LLVM_VERSION_STRING << "\n"
     << target.cpu << "\n"
     << target.features << "\n"
     << target.lanes << " " << target.registers << " " << target.optimisation << "\n"
     << what;
  return toHex(SHA256::hash(arrayRefFromStringRef(text)), /*LowerCase=*/true);
}

std::string KernelCache::keyOf(mlir::ModuleOp module, const CpuTarget &target) {
  std::string text;
  raw_string_ostream os(text);
  module.print(os);
  return keyOf(text, target);
}

// pruneCache looks for files with this prefix.
std::string KernelCache::pathOf(StringRef key) const {
  return (directory + "/llvmcache-" + key).str();
}

std::unique_ptr<MemoryBuffer> KernelCache::find(StringRef key) const {
  if (!isOn())
    return nullptr;
  auto file = MemoryBuffer::getFile(pathOf(key), /*IsText=*/false, /*RequiresNullTerminator=*/false,
                                    /*IsVolatile=*/true);
  if (!file)
    return nullptr;
  StringRef content = (*file)->getBuffer();
  if (content.size() < headBytes || !content.starts_with(magic))
    return nullptr;
  StringRef object = content.drop_front(headBytes);
  auto digest = SHA256::hash(arrayRefFromStringRef(object));
  if (content.substr(magic.size(), digestBytes) != toStringRef(digest))
    return nullptr;
  return MemoryBuffer::getMemBufferCopy(object, key);
}

void KernelCache::insert(StringRef key, StringRef object) const {
  if (!isOn())
    return;
  consumeError(writeFileAtomically(pathOf(key), [&](raw_pwrite_stream &os) {
    auto digest = SHA256::hash(arrayRefFromStringRef(object));
    os << magic << toStringRef(digest) << object;
    return Error::success();
  }));
  CachePruningPolicy policy;
  policy.Interval = std::chrono::hours(1);
  policy.MaxSizeBytes = 256 << 20;
  pruneCache(directory, policy);
}
