//===- LargePages.h - memory in large pages -------------------------------===//
//
// A matrix that is read once from end to end touches each of its pages once. With pages of 4 KB,
// address translation then takes a large part of the time on some machines
// (docs/measurements.md#large-pages); with pages of 2 MB it is negligible.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SUPPORT_LARGEPAGES_H
#define CTXC_SUPPORT_LARGEPAGES_H

#include <cstdint>
#include <vector>

namespace ctxc {

/// Memory for large blocks that are freed together. It lies in large pages if the system offers
/// them (Linux: /sys/kernel/mm/transparent_hugepage), otherwise in small ones. Must not be used by
/// two threads at once.
class LargePages {
public:
  LargePages() = default;
  LargePages(const LargePages &) = delete;
  LargePages &operator=(const LargePages &) = delete;
  ~LargePages();

  /// `bytes` bytes, aligned to 64, that live as long as this object; null if there is no memory
  /// left.
  uint8_t *take(uint64_t bytes);

private:
  struct Chunk {
    uint8_t *base;
    uint64_t size;
  };
  std::vector<Chunk> chunks;
  uint64_t used = 0; ///< bytes of the last chunk
};

} // namespace ctxc

#endif // CTXC_SUPPORT_LARGEPAGES_H
