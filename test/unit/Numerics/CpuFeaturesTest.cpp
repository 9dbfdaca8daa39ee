#include "ctxc/Numerics/CpuFeatures.h"
#include "test/unit/WithoutTiles.h"
#include "gtest/gtest.h"
#include <cstring>

using namespace ctxc;

static uint64_t bit(const char *name) { return cpuFeatureNamed(name, strlen(name)); }

/// A processor with all features, under an operating system that saves all registers.
static CpuIdentity everything() {
  CpuIdentity identity;
  for (uint32_t &word : identity.words)
    word = ~0u;
  identity.savedRegisters = 0x600e7;
  return identity;
}

/// Stands before the tests that ask for tiles, since a process that has them keeps them. Where the
/// processor has none, nothing is to be refused.
TEST(CpuFeatures, TilesThatAreRefusedAreNotThere) {
  uint64_t tiles = bit("amx-tile") | bit("amx-bf16");
  int status = test::withoutTiles([&] {
    int32_t known = 0;
    return !requestTiles() && (ctxc_cpu_features(tiles) & tiles) == 0 &&
           ctxc_cpu_runs(tiles, &known) == -1;
  });
  if (status == test::hadTiles)
    GTEST_SKIP() << "this process already has the tile registers";
  EXPECT_EQ(status, 0);
}

TEST(CpuFeatures, EachNameHasABitOfItsOwn) {
  uint64_t all = 0;
#define CTXC_CPU_FEATURE(NAME, WORD, BIT, REGISTERS)                                               \
  EXPECT_NE(bit(NAME), 0u) << NAME;                                                                \
  EXPECT_EQ(all &bit(NAME), 0u) << NAME;                                                           \
  all |= bit(NAME);
#include "ctxc/Numerics/CpuFeatures.def"
  EXPECT_EQ(cpuFeatures(everything()), all);
  EXPECT_EQ(bit("avx512"), 0u);
  EXPECT_EQ(bit("amx-complex"), 0u);
}

TEST(CpuFeatures, RegistersThatAreNotSavedAreNotThere) {
  CpuIdentity identity = everything();
  identity.savedRegisters = 0x07; // AVX, but not AVX-512
  uint64_t present = cpuFeatures(identity);
  EXPECT_TRUE(present & bit("avx2"));
  EXPECT_TRUE(present & bit("bmi2"));
  EXPECT_FALSE(present & bit("avx512f"));
  identity.savedRegisters = 0xe7;
  EXPECT_TRUE(cpuFeatures(identity) & bit("avx512f"));
  EXPECT_FALSE(cpuFeatures(identity) & bit("amx-tile"));
  identity.savedRegisters = 0;
  present = cpuFeatures(identity);
  EXPECT_TRUE(present & bit("sse4.2"));
  EXPECT_FALSE(present & bit("avx"));
  EXPECT_FALSE(present & bit("fma"));
}

TEST(CpuFeatures, ARefusalNamesWhatIsMissing) {
  uint64_t needed = bit("avx2") | bit("avx512f") | bit("avx512fp16");
  EXPECT_EQ(ctxc_cpu_refusal(needed, needed | bit("aes")), nullptr);
  EXPECT_STREQ(ctxc_cpu_refusal(needed, needed & ~bit("avx512fp16")),
               "the kernels need avx512fp16, which this machine lacks");
  EXPECT_STREQ(ctxc_cpu_refusal(needed, 0), "the kernels need avx2, which this machine lacks");
  EXPECT_EQ(ctxc_cpu_refusal(0, 0), nullptr);
}

TEST(CpuFeatures, TheAnswerIsKept) {
  int32_t known = 0;
  EXPECT_EQ(ctxc_cpu_runs(0, &known), 1);
  EXPECT_EQ(known, 1);
  uint64_t all = cpuFeatures(everything());
  known = 0;
  EXPECT_EQ(ctxc_cpu_runs(all, &known), ctxc_cpu_features(all) == all ? 1 : -1);
  known = -1;
  EXPECT_EQ(ctxc_cpu_runs(0, &known), -1);
}

#ifdef __x86_64__
TEST(CpuFeatures, TilesAreAskedForOnlyWhereTheyAreNeeded) {
  uint64_t tiles = bit("amx-tile") | bit("amx-bf16");
  bool isThere = (cpuFeatures(CpuIdentity::ofThisMachine()) & tiles) == tiles;
  EXPECT_EQ(ctxc_cpu_features(0) & tiles, 0u);
  EXPECT_EQ(ctxc_cpu_features(bit("avx2")) & tiles, 0u);
  if (!isThere)
    GTEST_SKIP() << "this processor has no AMX";
  EXPECT_EQ(requestTiles(), requestTiles());
  EXPECT_EQ(ctxc_cpu_features(tiles) & tiles, requestTiles() ? tiles : 0);
}

TEST(CpuFeatures, AreThoseThatTheCompilerFinds) {
  uint64_t present = ctxc_cpu_features(0);
  EXPECT_EQ(bool(present & bit("sse4.2")), bool(__builtin_cpu_supports("sse4.2")));
  EXPECT_EQ(bool(present & bit("avx2")), bool(__builtin_cpu_supports("avx2")));
  EXPECT_EQ(bool(present & bit("fma")), bool(__builtin_cpu_supports("fma")));
  EXPECT_EQ(bool(present & bit("avx512f")), bool(__builtin_cpu_supports("avx512f")));
  EXPECT_EQ(bool(present & bit("avx512vl")), bool(__builtin_cpu_supports("avx512vl")));
  EXPECT_EQ(bool(present & bit("avx512vnni")), bool(__builtin_cpu_supports("avx512vnni")));
}
#endif
