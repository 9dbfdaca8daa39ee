// The data of a replay: random numbers in place of weights, and the comparison of results.
#ifndef CTXC_BENCH_GPU_REPLAYDATA_H
#define CTXC_BENCH_GPU_REPLAYDATA_H

#include "bench/gpu/Recording.h"
#include <cmath>
#include <random>

namespace ctxc::bench {

/// Random blocks of `bytes` bytes, with scales that make their numbers as small as a matrix's. (How
/// large they are does not change the time, but what overflows would be reported.)
inline std::vector<char> drawnBlocks(Numbers kind, size_t bytes) {
  constexpr size_t count = size_t(1) << 16;
  std::mt19937 random(1 + uint64_t(kind));
  std::vector<char> blocks(count * bytes);
  for (char &byte : blocks)
    byte = char(random());
  for (char *block = blocks.data(); block != blocks.data() + blocks.size(); block += bytes) {
    auto put = [&](size_t offset, uint16_t half) { memcpy(block + offset, &half, sizeof half); };
    constexpr uint16_t small = 0x1419, low = 0xa019, tiny = 0x0150, few = 0x068e, least = 0x00a8;
    switch (kind) {
    case Numbers::BlockMXFP4:
      block[0] = char(122 + random() % 3);
      break;
    case Numbers::Q6_K:
      put(bytes - 2, least);
      break;
    case Numbers::Q4_K:
    case Numbers::Q5_K:
      put(0, tiny);
      put(2, few);
      break;
    case Numbers::Q4_1:
    case Numbers::Q5_1:
      put(2, low);
      [[fallthrough]];
    default:
      put(0, small);
    }
  }
  return blocks;
}

/// Random numbers of a kind; an upload repeats them.
inline std::vector<char> drawnBlock(Numbers kind) {
  switch (kind) {
#define CTXC_BLOCK_FORMAT(NAME, NAME_IN_TEXT, ELEMENTS, BYTES)                                     \
  case Numbers::NAME:                                                                              \
    return drawnBlocks(kind, BYTES);
#define CTXC_SCALED_FORMAT(NAME, NAME_IN_TEXT, TEXT, ELEMENTS, BYTES)
#include "ctxc/Support/BlockFormats.def"
  default:
    break;
  }
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
