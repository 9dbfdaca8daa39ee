//===- KernelCache.h - compiled kernels on disk ---------------------------===//
//
// The cache holds an object file for each kernel and each contraction, in kernels/ below the user's
// cache directory. Its key is a digest of all that the code depends on: the kernel's IR or the
// contraction's name, the target processor, LLVM's version and the sources of the lowering. Cached
// code is executed; the directory is therefore used only if it belongs to this user and nobody else
// has access to it, and a file only if its content matches the digest written in front of it. Files
// are written to a temporary name and renamed, so that any number of processes can share a cache.
// The oldest files are removed where it grows beyond 256 MB.
//
// A cache that cannot be read or written is not an error, but costs time.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LOWERING_KERNELCACHE_H
#define CTXC_LOWERING_KERNELCACHE_H

#include "ctxc/Lowering/Kernel.h"
#include "llvm/Support/MemoryBuffer.h"

namespace ctxc {

class KernelCache {
public:
  /// Uses `directory`, which is created with mode 0700 if it does not exist. The cache is off if
  /// the name is empty, or if the directory belongs to another user or others can read or write it.
  explicit KernelCache(std::string directory);
  /// The user's own cache; it is off where $CTXC_KERNEL_CACHE is `off`.
  static KernelCache ofUser();

  bool isOn() const { return !directory.empty(); }

  /// The key of the object code of `what` for `target`: 64 hexadecimal digits.
  static std::string keyOf(llvm::StringRef what, const CpuTarget &target);
  /// The key of the kernels in `module`, which are linalg.
  static std::string keyOf(mlir::ModuleOp module, const CpuTarget &target);

  /// The object stored under `key`; null where there is none or it is damaged.
  std::unique_ptr<llvm::MemoryBuffer> find(llvm::StringRef key) const;
  void insert(llvm::StringRef key, llvm::StringRef object) const;

private:
  std::string pathOf(llvm::StringRef key) const;

  std::string directory;
};

} // namespace ctxc

#endif // CTXC_LOWERING_KERNELCACHE_H
