//===- Bandwidth.h - how fast this machine reads memory ------------------===//
//
// The yardstick of everything that reads each weight once: a sum over a buffer
// ten times the last-level cache, as STREAM would do it, without its writes.
// Which way of reading is fastest depends on the prefetchers of the processor
// and on the pages, so several patterns are timed and the best one counts.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_BENCH_BANDWIDTH_H
#define CTXC_BENCH_BANDWIDTH_H

#include <cstddef>
#include <vector>

namespace ctxc::bench {

/// One way of reading: each thread reads its share as `streams` contiguous
/// streams side by side, and asks for what lies `prefetch` bytes ahead.
struct ReadPattern {
  int streams;
  int prefetch; ///< bytes ahead; 0 leaves it to the hardware
  bool hugePages;
};

struct ReadResult {
  ReadPattern pattern;
  double gigabytesPerSecond; ///< the median of its sweeps; 1 GB is 1e9 bytes
};

/// A buffer of ten times the last-level cache, and at least 512 MB: twice, on
/// ordinary pages and on huge ones where the system has them.
class ReadBandwidth {
public:
  explicit ReadBandwidth(int threads);
  ~ReadBandwidth();
  ReadBandwidth(const ReadBandwidth &) = delete;
  ReadBandwidth &operator=(const ReadBandwidth &) = delete;

  /// Times every pattern, in interleaved rounds, for about `seconds` together.
  std::vector<ReadResult> measure(double seconds) const;
  /// GB/s of one sweep.
  double read(const ReadPattern &pattern) const;
  std::size_t bytes() const { return size; }

private:
  int threads;
  std::size_t size;
  void *buffers[2]; ///< by hugePages
};

/// The fastest of them.
ReadResult best(const std::vector<ReadResult> &results);

} // namespace ctxc::bench

#endif // CTXC_BENCH_BANDWIDTH_H
