// Copies through a bounded piece of pinned memory, in two halves: one is filled or emptied while
// the other is being copied, so that mapped weights go to the device, and patches from it, at the
// bus's speed, and small uploads do not wait.
#ifndef CTXC_LIB_RUNTIME_GPU_GRAPHS_STAGING_H
#define CTXC_LIB_RUNTIME_GPU_GRAPHS_STAGING_H

#include "lib/Runtime/GPU/Graphs/GraphApi.h"
#include "llvm/ADT/ArrayRef.h"

namespace ctxc::graphs {

class Staging {
public:
  static constexpr size_t kHalfBytes = size_t(16) << 20;

  Result open(const Api &api);
  void close(const Api &api);
  /// Copies in the CUDA stream's order; `from` is not needed afterwards.
  Result copy(const Api &api, Pointer to, llvm::ArrayRef<char> from, Stream stream);
  /// The source and the destination of a download.
  struct Read {
    Pointer from;
    llvm::MutableArrayRef<char> to;
  };
  /// Downloads, which are all done on return.
  Result read(const Api &api, llvm::ArrayRef<Read> reads, Stream stream);

private:
  struct Half {
    char *memory = nullptr;
    Event read = nullptr; ///< when the device has read it, or filled it
    size_t used = 0;
  };
  /// Changes to the other half, once the device has read it.
  Result turn(const Api &api, Stream stream);

  Half halves[2];
  int current = 0;
};

} // namespace ctxc::graphs

#endif // CTXC_LIB_RUNTIME_GPU_GRAPHS_STAGING_H
