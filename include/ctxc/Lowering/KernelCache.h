//===- KernelCache.h - compiled kernels on disk ---------------------------===//
//
// The cache holds an object file for each kernel and each contraction, in kernels/ below the user's
// cache directory. Its key is a digest of all that the code depends on: the kernel's IR or the
// contraction's name, the target processor, LLVM's version and the sources of the lowering. Cached
// code is executed; UserCache says which files are trusted. The oldest files are removed when the
// cache grows beyond 256 MB.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LOWERING_KERNELCACHE_H
#define CTXC_LOWERING_KERNELCACHE_H

#include "ctxc/Lowering/Kernel.h"
#include "ctxc/Support/UserCache.h"
#include "llvm/Support/MemoryBuffer.h"

namespace ctxc {

class KernelCache {
public:
  /// Uses `directory`, as UserCache does.
  explicit KernelCache(std::string directory);
  /// The user's own cache; it is off if $CTXC_KERNEL_CACHE is `off`.
  static KernelCache ofUser();

  bool isOn() const { return files.isOn(); }

  /// The key of the object code of `what` for `target`: 64 hexadecimal digits.
  static std::string keyOf(llvm::StringRef what, const CpuTarget &target);
  /// The key of the kernels in `module`, which are linalg.
  static std::string keyOf(mlir::ModuleOp module, const CpuTarget &target);

  /// The object stored under `key`; null if there is none or it is damaged.
  std::unique_ptr<llvm::MemoryBuffer> find(llvm::StringRef key) const;
  void insert(llvm::StringRef key, llvm::StringRef object) const;

private:
  UserCache files;
};

} // namespace ctxc

#endif // CTXC_LOWERING_KERNELCACHE_H
