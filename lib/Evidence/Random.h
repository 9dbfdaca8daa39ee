// A counter-based generator (SplitMix64), the same everywhere.
#ifndef CTXC_LIB_EVIDENCE_RANDOM_H
#define CTXC_LIB_EVIDENCE_RANDOM_H

#include "ctxc/Reference/State.h"
#include <cmath>

namespace ctxc {

class Random {
public:
  explicit Random(uint64_t seed) : state(mix(seed + 1)) {}

  uint64_t bits() { return mix(state += 0x9e3779b97f4a7c15u); }
  /// In (0, 1].
  double uniform() { return double((bits() >> 11) + 1) * 0x1p-53; }
  /// Box and Muller's method, one of its two numbers.
  double normal() {
    double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * M_PI * uniform());
  }
  reference::Matrix normal(int64_t rows, int64_t columns) {
    reference::Matrix m(rows, columns);
    for (double &x : m.reshaped())
      x = normal();
    return m;
  }

private:
  static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  uint64_t state;
};

} // namespace ctxc

#endif // CTXC_LIB_EVIDENCE_RANDOM_H
