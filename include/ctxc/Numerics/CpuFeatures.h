//===- CpuFeatures.h - what this machine can execute ----------------------===//
//
// Generated libraries refuse a machine that lacks the features that their code uses. A set
// of features is a mask: bit i is line i of CpuFeatures.def. A library calls the C functions;
// they run on any x86-64 or AArch64, allocate nothing and may be
// called by any number of threads.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_NUMERICS_CPUFEATURES_H
#define CTXC_NUMERICS_CPUFEATURES_H

#include <cstdint>

namespace ctxc {

/// What CPUID says, and which registers the operating system saves (XCR0; 0 if it has none). On
/// AArch64, what Linux says (AT_HWCAP and AT_HWCAP2).
struct CpuIdentity {
  enum Word { Leaf1Ecx, Leaf7Ebx, Leaf7Ecx, Leaf7Edx, Leaf7Sub1Eax, Extended1Ecx, HwCap, HwCap2 };
  static constexpr int wordCount = HwCap2 + 1;
  uint32_t words[wordCount] = {};
  uint64_t savedRegisters = 0;

  static CpuIdentity ofThisMachine(); ///< all zero on other architectures
};

/// The features that a machine with this identity has: those that the processor has and
/// whose registers are saved.
uint64_t cpuFeatures(const CpuIdentity &identity);

/// Requests AMX's tile registers for this process, and returns whether it may use them. Linux gives
/// them on request, and may refuse; a process that has them keeps them, as do its children. May be
/// called any number of times.
bool requestTiles();

/// The bit of a feature that LLVM calls `name`, or 0.
uint64_t cpuFeatureNamed(const char *name, int64_t length);

} // namespace ctxc

extern "C" {
/// The features of this machine. AMX is one of them only if `needed` has it and the operating
/// system gives this process its registers; unless `needed` has it, they are not requested.
uint64_t ctxc_cpu_features(uint64_t needed);

/// NULL if `present` has all of `needed`; otherwise a sentence that names what is missing.
const char *ctxc_cpu_refusal(uint64_t needed, uint64_t present);

/// 1 if this machine has all of `needed`, otherwise -1. `*known` is 0 before the first call and
/// holds the answer after it; it is the only writable memory of a library, and is written once.
int32_t ctxc_cpu_runs(uint64_t needed, int32_t *known);
}

#endif // CTXC_NUMERICS_CPUFEATURES_H
