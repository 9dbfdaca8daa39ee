// Random numbers that are the same on every machine.
#ifndef CTXC_LIB_DISTIL_RANDOM_H
#define CTXC_LIB_DISTIL_RANDOM_H

#include <cstdint>

namespace ctxc {

/// splitmix64.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  /// Stream `number` of a seed.
  Random(uint64_t seed, uint64_t number) : state(seed) {
    state = next() + number;
    state = next();
  }

  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// From 0 to below 1.
  double uniform() { return double(next() >> 11) * 0x1p-53; }

private:
  uint64_t state;
};

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_RANDOM_H
