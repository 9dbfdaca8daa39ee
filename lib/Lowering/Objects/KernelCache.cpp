#include "ctxc/Lowering/KernelCache.h"
#include "lib/Lowering/LoweringDigest.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/SHA256.h"
#include <cstdlib>

using namespace llvm;
using namespace ctxc;

KernelCache::KernelCache(std::string directory) : files(std::move(directory)) {}

KernelCache KernelCache::ofUser() {
  const char *wish = std::getenv("CTXC_KERNEL_CACHE");
  std::string root = wish && StringRef(wish) == "off" ? "" : userCacheDirectory();
  return KernelCache(root.empty() ? "" : root + "/kernels");
}

std::string KernelCache::keyOf(StringRef what, const CpuTarget &target) {
  std::string text;
  raw_string_ostream os(text);
  os << "ctxc kernel 2\n"
     << loweringDigest << "\n"
     << LLVM_VERSION_STRING << "\n"
     << target.cpu << "\n"
     << target.features << "\n"
     << target.lanes << " " << target.registers << " " << target.optimisation << " "
     << target.bfloatPairs << target.tiles << " " << target.bytesAhead << target.asksInLine << " "
     << target.readings.text() << "\n"
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
static std::string nameOf(StringRef key) { return ("llvmcache-" + key).str(); }

std::unique_ptr<MemoryBuffer> KernelCache::find(StringRef key) const {
  std::optional<std::string> object = files.find(nameOf(key));
  return object ? MemoryBuffer::getMemBufferCopy(*object, key) : nullptr;
}

void KernelCache::insert(StringRef key, StringRef object) const {
  if (!isOn())
    return;
  files.insert(nameOf(key), object);
  CachePruningPolicy policy;
  policy.Interval = std::chrono::hours(1);
  policy.MaxSizeBytes = 256 << 20;
  pruneCache(files.path(), policy);
}
