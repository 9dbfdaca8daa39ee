// The data of a replay: random numbers in place of weights, and the comparison of results.
#ifndef CTXC_BENCH_GPU_REPLAYDATA_H
#define CTXC_BENCH_GPU_REPLAYDATA_H

#include "bench/gpu/Recording.h"
#include <cmath>
#include <random>

namespace ctxc::bench {

/// Random numbers of a kind; an upload repeats them.
inline std::vector<char> drawnBlock(Numbers kind) {
  constexpr size_t count = size_t(4) << 20;
  std::mt19937 random(1 + uint64_t(kind));
  std::uniform_real_distribution<float> uniform(-1, 1);
  bool isVector = kind == Numbers::VectorF32 || kind == Numbers::VectorBF16;
  bool isWide = kind == Numbers::MatrixF32 || kind == Numbers::VectorF32;
  std::vector<char> block(count * (isWide ? 4 : 2));
  for (size_t i = 0; i < count; ++i) {
    float number = isVector ? 1 + 0.1f * uniform(random) : 0.03f * uniform(random);
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (isWide)
      memcpy(block.data() + 4 * i, &bits, 4);
    else
      memcpy(block.data() + 2 * i, reinterpret_cast<char *>(&bits) + 2, 2);
  }
  return block;
}

/// The largest |a − b| relative to the largest |b|, of float32 numbers or of a single float64.
inline double difference(llvm::StringRef found, llvm::StringRef expected) {
  auto compare = [&](auto zero) {
    using T = decltype(zero);
    double largest = 0, scale = 0;
    for (size_t i = 0; i + sizeof(T) <= expected.size(); i += sizeof(T)) {
      T a, b;
      memcpy(&a, found.data() + i, sizeof(T));
      memcpy(&b, expected.data() + i, sizeof(T));
      if (!memcmp(&a, &b, sizeof(T)))
        b = std::isfinite(b) ? b : 0;
      else
        largest = std::max(largest, std::isfinite(a) ? std::abs(double(a) - double(b)) : INFINITY);
      scale = std::max(scale, std::abs(double(b)));
    }
    if (largest == 0)
      return 0.0;
    // Counts are integers, which are tiny if read as floats; they must be equal.
    return scale < 1e-37 ? INFINITY : largest / scale;
  };
  return expected.size() == sizeof(double) ? compare(double()) : compare(float());
}

} // namespace ctxc::bench

#endif // CTXC_BENCH_GPU_REPLAYDATA_H
