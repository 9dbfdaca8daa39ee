//===- KernelCache.h - compiled kernels on disk ---------------------------===//
//
// An object file for each kernel and each contraction, in kernels/ below the user's cache
// directory, under a digest of all that its code depends on: the kernel's IR or the contraction's
// name, the processor it is for, LLVM's version and the sources of the lowering. What is in a cache
// is run, so it is used only while the directory is its user's own and nobody else's, and a file
// only where its content has the digest written before it. Files are written beside their place and
// renamed, so that any number of processes may share a cache; the oldest go where it grows beyond
// 256 MB.
//
// A cache that cannot be read or written is not an error; it only costs time.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LOWERING_KERNELCACHE_H
#define CTXC_LOWERING_KERNELCACHE_H

#include "ctxc/Lowering/Kernel.h"
#include "llvm/Support/MemoryBuffer.h"

namespace ctxc {

class KernelCache {
public:
  /// In `directory`, made with mode 0700 where it is not there; off where that is empty, is
  /// another user's, or may be written or read by others.
  explicit KernelCache(std::string directory);
  /// The user's own cache; off where $CTXC_KERNEL_CACHE is `off`.
  static KernelCache ofUser();

  bool isOn() const { return !directory.empty(); }

  /// The key of the object code of `what` for `target`: 64 hexadecimal digits.
  static std::string keyOf(llvm::StringRef what, const CpuTarget &target);
  /// Of the kernels in `module`, linalg.
  static std::string keyOf(mlir::ModuleOp module, const CpuTarget &target);

  /// The object kept under `key`; null where there is none, or what is there is damaged.
  std::unique_ptr<llvm::MemoryBuffer> find(llvm::StringRef key) const;
  void insert(llvm::StringRef key, llvm::StringRef object) const;

private:
  std::string pathOf(llvm::StringRef key) const;

  std::string directory;
};

} // namespace ctxc

#endif // CTXC_LOWERING_KERNELCACHE_H
