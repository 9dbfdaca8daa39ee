//===- Bandwidth.h - how fast this machine reads memory ------------------===//
//
// The upper bound for everything that reads each weight once: a sum over a buffer of ten times the
// last-level cache, as in STREAM, but without writes. Which way of reading is fastest depends on
// the processor's prefetchers and on the pages; several patterns are therefore timed, and the best
// one counts.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_RUNTIME_BANDWIDTH_H
#define CTXC_RUNTIME_BANDWIDTH_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ctxc {

class Pages;

/// One way of reading: each thread reads its share as `streams` contiguous access streams side by
/// side, and prefetches `prefetch` bytes ahead.
struct ReadPattern {
  int streams;
  int prefetch; ///< bytes ahead; 0 leaves prefetching to the hardware
  bool hugePages;
};

struct ReadResult {
  ReadPattern pattern;
  double gigabytesPerSecond; ///< the median of its sweeps; 1 GB is 1e9 bytes
};

/// The bytes of the last-level cache as one core sees it. A virtual machine may show the cache of
/// a whole processor, of which it has a few cores.
std::size_t lastLevelCache();

/// Two buffers of ten times the last-level cache, and at least 512 MB, but no more than `most`: one
/// on ordinary pages and, where the system has them, one on huge pages.
class ReadBandwidth {
public:
  explicit ReadBandwidth(int threads, std::size_t most = SIZE_MAX);
  ~ReadBandwidth();
  ReadBandwidth(const ReadBandwidth &) = delete;
  ReadBandwidth &operator=(const ReadBandwidth &) = delete;

  /// Times every pattern, in interleaved rounds, for about `seconds` in all.
  std::vector<ReadResult> measure(double seconds) const;
  /// GB/s of one sweep.
  double read(const ReadPattern &pattern) const;
  std::size_t bytes() const { return size; }

private:
  int threads;
  std::size_t size;
  std::unique_ptr<Pages> buffers[2]; ///< indexed by hugePages
};

/// The fastest of the results.
ReadResult best(const std::vector<ReadResult> &results);

} // namespace ctxc

#endif // CTXC_RUNTIME_BANDWIDTH_H
