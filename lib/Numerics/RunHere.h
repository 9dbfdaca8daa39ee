// Loops over vectors, compiled for the processors that differ in them.
#ifndef CTXC_LIB_NUMERICS_RUNHERE_H
#define CTXC_LIB_NUMERICS_RUNHERE_H

namespace ctxc::detail {

// Vectors as wide as those of the widest processors; on others the compiler uses several.
using Floats = float __attribute__((vector_size(64)));

/// The vector at `from`, which need not be aligned.
template <typename V> [[gnu::always_inline]] inline V load(const void *from) {
  V vector;
  __builtin_memcpy(&vector, from, sizeof vector);
  return vector;
}

#if defined(__clang__) && defined(__x86_64__) && defined(__ELF__)
#define CTXC_RUN_ON_EACH_CPU
#endif

#define CTXC_BODY(NAME, TARGET)                                                                    \
  template <typename Body> TARGET void NAME(Body body) { [[clang::always_inline]] body(); }
CTXC_BODY(runAnywhere, )
#ifdef CTXC_RUN_ON_EACH_CPU
CTXC_BODY(runOnV3, __attribute__((target("arch=x86-64-v3"))))
CTXC_BODY(runOnV4, __attribute__((target("arch=x86-64-v4,no-prefer-256-bit"))))
#endif
#undef CTXC_BODY

/// Calls `body`, compiled for the processors that differ in their vectors.
template <typename Body> void runHere(Body body) {
#ifdef CTXC_RUN_ON_EACH_CPU
  if (__builtin_cpu_supports("x86-64-v4"))
    return runOnV4(body);
  if (__builtin_cpu_supports("x86-64-v3"))
    return runOnV3(body);
#endif
  runAnywhere(body);
}

#undef CTXC_RUN_ON_EACH_CPU

} // namespace ctxc::detail

#endif // CTXC_LIB_NUMERICS_RUNHERE_H
