#include "ctxc/Runtime/Bandwidth.h"
#include "lib/Runtime/Tune/Pages.h"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <omp.h>
#include <string>

namespace ctxc {

/// sysconf would add up the caches of a whole socket.
std::size_t lastLevelCache() {
  for (int index : {3, 2}) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) +
                       "/size");
    std::size_t kilobytes = 0;
    if (file >> kilobytes)
      return kilobytes << 10;
  }
  return std::size_t(32) << 20;
}

namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kStep = 4 * kLine; ///< bytes that are read of one stream at a time

/// Integers, since an addition of them takes only one cycle: then only memory is measured.
using Vector = std::uint64_t __attribute__((vector_size(kLine)));

template <int Streams, int Prefetch> std::uint64_t sum(const char *begin, std::size_t bytes) {
  std::size_t length = bytes / Streams / kStep * kStep;
  Vector sums[4] = {};
  for (std::size_t at = 0; at < length; at += kStep)
    for (int s = 0; s < Streams; ++s) {
      const char *from = begin + s * length + at;
      for (int i = 0; i < 4; ++i) {
        if constexpr (Prefetch > 0)
          __builtin_prefetch(from + i * kLine + Prefetch, 0, 3);
        sums[i] += *reinterpret_cast<const Vector *>(from + i * kLine);
      }
    }
  Vector all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  std::uint64_t result = 0;
  for (std::size_t i = 0; i < kLine / sizeof(result); ++i)
    result += all[i];
  return result;
}

using Sum = std::uint64_t (*)(const char *, std::size_t);

template <int Streams> Sum sumFor(int prefetch) {
  return prefetch == 0      ? sum<Streams, 0>
         : prefetch == 1024 ? sum<Streams, 1024>
                            : sum<Streams, 4096>;
}

Sum sumFor(const ReadPattern &pattern) {
  switch (pattern.streams) {
  case 1:
    return sumFor<1>(pattern.prefetch);
  case 2:
    return sumFor<2>(pattern.prefetch);
  case 4:
    return sumFor<4>(pattern.prefetch);
  default:
    return sumFor<8>(pattern.prefetch);
  }
}

/// Keeps the compiler from removing the sums.
std::atomic<std::uint64_t> sink;

/// The seconds of one sweep by all threads, from the first thread's begin to the last thread's end.
double sweep(Sum sum, const char *memory, std::size_t bytes, int threads) {
  std::vector<double> begins(threads), ends(threads);
  std::size_t share = bytes / threads / kStep * kStep;
#pragma omp parallel num_threads(threads)
  {
    int i = omp_get_thread_num();
#pragma omp barrier
    begins[i] = omp_get_wtime();
    sink += sum(memory + i * share, share);
    ends[i] = omp_get_wtime();
  }
  return *std::max_element(ends.begin(), ends.end()) -
         *std::min_element(begins.begin(), begins.end());
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

} // namespace

ReadBandwidth::ReadBandwidth(int threads, std::size_t most) : threads(threads) {
  // Not a power of two: streams at a distance of a power of two would compete for the same sets of
  // the caches.
  size = std::min(most, std::max<std::size_t>(10 * lastLevelCache(), std::size_t(512) << 20)) +
         1234 * 1024;
  for (bool hugePages : {false, true})
    buffers[hugePages] = std::make_unique<Pages>(size, hugePages, /*value=*/1);
}

ReadBandwidth::~ReadBandwidth() = default;

std::vector<ReadResult> ReadBandwidth::measure(double seconds) const {
  std::vector<ReadPattern> patterns;
  for (bool hugePages : {false, true})
    for (int streams : {1, 2, 4, 8})
      for (int prefetch : {0, 1024, 4096})
        if (buffers[hugePages]->data())
          patterns.push_back({streams, prefetch, hugePages});
  std::vector<std::vector<double>> rates(patterns.size());
  auto begin = std::chrono::steady_clock::now();
  do {
    for (std::size_t i = 0; i < patterns.size(); ++i)
      rates[i].push_back(read(patterns[i]));
  } while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() <
           seconds);
  std::vector<ReadResult> results;
  for (std::size_t i = 0; i < patterns.size(); ++i)
    results.push_back({patterns[i], median(rates[i])});
  return results;
}

double ReadBandwidth::read(const ReadPattern &pattern) const {
  const char *memory = buffers[pattern.hugePages]->data();
  return double(size) / sweep(sumFor(pattern), memory, size, threads) / 1e9;
}

ReadResult best(const std::vector<ReadResult> &results) {
  ReadResult fastest{{1, 0, false}, 0};
  for (const ReadResult &result : results)
    if (result.gigabytesPerSecond > fastest.gigabytesPerSecond)
      fastest = result;
  return fastest;
}

} // namespace ctxc
