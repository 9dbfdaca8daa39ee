#include "ctxc/Numerics/CpuFeatures.h"
#include <cstring>
#ifdef __x86_64__
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

using namespace ctxc;

namespace {

/// Bits of XCR0: SSE and AVX; with them the masks and both halves of AVX-512's; and with these the
/// tiles and their configuration.
enum Registers : uint64_t { General = 0, Avx = 0x06, Avx512 = 0xe6, Amx = 0x600e6 };

struct Feature {
  const char *name, *refusal;
  CpuIdentity::Word word;
  int bit;
  Registers registers;
};

using Id = CpuIdentity;
constexpr Feature features[] = {
#define CTXC_GIVEN_General ""
#define CTXC_GIVEN_Avx ""
#define CTXC_GIVEN_Avx512 ""
#define CTXC_GIVEN_Amx " or the system does not give this process"
#define CTXC_CPU_FEATURE(NAME, WORD, BIT, REGISTERS)                                               \
  {NAME, "the kernels need " NAME ", which this machine lacks" CTXC_GIVEN_##REGISTERS, Id::WORD,   \
   BIT, REGISTERS},
#include "ctxc/Numerics/CpuFeatures.def"
};
constexpr int featureCount = sizeof features / sizeof *features;
static_assert(featureCount <= 64, "a set of features is one word");

} // namespace

CpuIdentity CpuIdentity::ofThisMachine() {
  CpuIdentity identity;
#ifdef __x86_64__
  uint32_t a, b, c, d;
  auto *words = identity.words;
  constexpr uint32_t savesRegisters = 1u << 27; // OSXSAVE
  if (__get_cpuid(1, &a, &b, &c, &d)) {
    words[Leaf1Ecx] = c;
    if (c & savesRegisters) {
      uint32_t low, high;
      __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
      identity.savedRegisters = uint64_t(high) << 32 | low;
    }
  }
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    words[Leaf7Ebx] = b, words[Leaf7Ecx] = c, words[Leaf7Edx] = d;
    uint32_t lastSubleaf = a;
    if (lastSubleaf >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
      words[Leaf7Sub1Eax] = a;
  }
  if (__get_cpuid(0x80000001, &a, &b, &c, &d))
    words[Extended1Ecx] = c;
#elif defined(__aarch64__) && defined(__linux__)
  identity.words[HwCap] = uint32_t(getauxval(AT_HWCAP));
  identity.words[HwCap2] = uint32_t(getauxval(AT_HWCAP2));
#endif
  return identity;
}

uint64_t ctxc::cpuFeatures(const CpuIdentity &identity) {
  uint64_t present = 0;
  for (int i = 0; i < featureCount; ++i) {
    const Feature &f = features[i];
    bool has = identity.words[f.word] >> f.bit & 1;
    if (has && (identity.savedRegisters & f.registers) == f.registers)
      present |= uint64_t(1) << i;
  }
  return present;
}

uint64_t ctxc::cpuFeatureNamed(const char *name, int64_t length) {
  for (int i = 0; i < featureCount; ++i)
    if (int64_t(strlen(features[i].name)) == length && !memcmp(features[i].name, name, length))
      return uint64_t(1) << i;
  return 0;
}

bool ctxc::requestTiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long requestPermission = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
#else
  return false;
#endif
}

uint64_t ctxc_cpu_features(uint64_t needed) {
  uint64_t tiles = cpuFeatureNamed("amx-tile", 8) | cpuFeatureNamed("amx-bf16", 8);
  uint64_t present = cpuFeatures(CpuIdentity::ofThisMachine());
  return present & needed & tiles && requestTiles() ? present : present & ~tiles;
}

const char *ctxc_cpu_refusal(uint64_t needed, uint64_t present) {
  for (int i = 0; i < featureCount; ++i)
    if ((needed & ~present) >> i & 1)
      return features[i].refusal;
  return nullptr;
}

int32_t ctxc_cpu_runs(uint64_t needed, int32_t *known) {
  int32_t answer = __atomic_load_n(known, __ATOMIC_RELAXED);
  if (answer == 0) {
    answer = ctxc_cpu_refusal(needed, ctxc_cpu_features(needed)) ? -1 : 1;
    __atomic_store_n(known, answer, __ATOMIC_RELAXED);
  }
  return answer;
}
