// Inner loops are compiled once for each vector width of processors, and the version for this
// machine is chosen when the program starts.
#ifndef CTXC_NUMERICS_EACHCPU_H
#define CTXC_NUMERICS_EACHCPU_H

#include <cstdint>

#if defined(__x86_64__) && defined(__ELF__)
#define CTXC_EACH_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CTXC_EACH_CPU
#endif

namespace ctxc::detail {

/// Σ term(k) in eight lanes: the order of the sum is the same on every machine.
template <typename Term> [[gnu::always_inline]] inline double sumEach(int64_t size, Term term) {
  constexpr int lanes = 8;
  double sums[lanes] = {}, total = 0;
  int64_t k = 0;
  for (; k + lanes <= size; k += lanes)
    for (int lane = 0; lane < lanes; ++lane)
      sums[lane] += term(k + lane);
  for (; k < size; ++k)
    sums[0] += term(k);
  for (double sum : sums)
    total += sum;
  return total;
}

} // namespace ctxc::detail

#endif // CTXC_NUMERICS_EACHCPU_H
