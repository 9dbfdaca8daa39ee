// Copies through a bounded piece of pinned memory, in two halves: one is filled or emptied while
// the other is on its way, so that mapped weights stream to the device, and patches from it, at the
// bus's speed, and a few bytes that are uploaded wait for nothing.
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
  /// Copies in the stream's order; `from` is not needed afterwards.
  Result copy(const Api &api, Pointer to, llvm::ArrayRef<char> from, Stream stream);
  /// Where a download is from, and to where.
  struct Read {
    Pointer from;
    llvm::MutableArrayRef<char> to;
  };
  /// Downloads, all done on return.
  Result read(const Api &api, llvm::ArrayRef<Read> reads, Stream stream);

private:
  struct Half {
    char *memory = nullptr;
    Event read = nullptr; ///< when the device has read it, or filled it
    size_t used = 0;
  };
  /// The other half, once the device has read it.
  Result turn(const Api &api, Stream stream);

  Half halves[2];
  int current = 0;
};

} // namespace ctxc::graphs

#endif // CTXC_LIB_RUNTIME_GPU_GRAPHS_STAGING_H
