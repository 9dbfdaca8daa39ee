// The interpreter finds the errors that it is meant to find.
#include "test/fake-gpu/Ptx.h"
#include "test/unit/CUDA/SmallKernels.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace ctxc::test;

namespace {

/// The problem found when `body` runs with 64 threads over 64 floats, without the kernel's name.
std::string said(const std::string &body, float *numbers) {
  ptx::Module module;
  std::string error;
  if (!ptx::parse(smallModule(smallKernel("k", body)), module, error))
    return error;
  auto start = reinterpret_cast<uint64_t>(numbers);
  return ptx::run(module.kernels["k"], 1, 64, {start},
                  [&](uint64_t) { return ptx::Range{start, start + 64 * sizeof(float)}; });
}

TEST(Ptx, Computes) {
  alignas(16) float numbers[64];
  for (int i = 0; i < 64; ++i)
    numbers[i] = i;
  EXPECT_EQ(said("\tld.global.b32 \t%r2, [%rd3];\n"
                 "\tshfl.sync.bfly.b32 \t%r3, %r2, 1, 31, -1;\n"
                 "\tfma.rn.f32 \t%r4, %r3, 0f40000000, 0fBF800000;\n"
                 "\tsetp.gt.u32 \t%p1, %r1, 31;\n"
                 "\tselp.f32 \t%r4, %r4, %r2, %p1;\n"
                 "\t@%p1 bra \t$L__BB0_1;\n"
                 "\tneg.f32 \t%r4, %r4;\n"
                 "$L__BB0_1:\n"
                 "\tst.global.b32 \t[%rd3], %r4;\n",
                 numbers),
            "");
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(numbers[i], i > 31 ? 2 * (i ^ 1) - 1 : -i) << i;
}

TEST(Ptx, TakesNumbersApart) {
  alignas(16) float numbers[64];
  EXPECT_EQ(said("\tmov.b64 \t%rd4, 4611686019505324032;\n" // 0x4000000040400000
                 "\t{ .reg .b32 tmp; mov.b64 {tmp, %r2}, %rd4; }\n"
                 "\tmov.b64 \t{%r3, %r4}, %rd4;\n"
                 "\tadd.rn.f32 \t%r3, %r3, %r2;\n"
                 "\tst.global.b32 \t[%rd3], %r3;\n",
                 numbers),
            "");
  EXPECT_EQ(numbers[5], 5);
}

TEST(Ptx, ReadsSignedBytes) {
  alignas(16) float numbers[64];
  for (float &number : numbers)
    std::memcpy(&number, "\x05\x00\xfd\x00", 4);
  EXPECT_EQ(said("\tld.global.s8 \t%r2, [%rd3+2];\n" // −3
                 "\tcvt.rn.f32.s32 \t%r2, %r2;\n"
                 "\tst.global.b32 \t[%rd3], %r2;\n",
                 numbers),
            "");
  EXPECT_EQ(numbers[5], -3);
}

TEST(Ptx, SelectsBytes) {
  alignas(16) float numbers[64];
  // Of bytes 0x10 to 0x40 and 0x81 to 0x84: the third, the fifth, the sign of the sixth, and of the
  // first.
  EXPECT_EQ(said("\tmov.b32 \t%r2, 1076895760;\n"
                 "\tmov.b32 \t%r3, -2071756159;\n"
                 "\tprmt.b32 \t%r4, %r2, %r3, 0x8d42U;\n"
                 "\tst.global.b32 \t[%rd3], %r4;\n",
                 numbers),
            "");
  uint32_t bits;
  std::memcpy(&bits, &numbers[5], 4);
  EXPECT_EQ(bits, 0x00ff8130u);
}

TEST(Ptx, SharesMemoryAtBarriers) {
  alignas(16) float numbers[64];
  std::string body = "\tst.shared.b32 \t[%rd2], %r1;\n"
                     "\tbar.sync \t0;\n"
                     "\txor.b32 \t%r2, %r1, 63;\n"
                     "\tmul.wide.u32 \t%rd4, %r2, 4;\n"
                     "\tld.shared.b32 \t%r3, [%rd4];\n"
                     "\tcvt.rn.f32.u32 \t%r3, %r3;\n"
                     "\tst.global.b32 \t[%rd3], %r3;\n";
  EXPECT_EQ(said(body, numbers), "");
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(numbers[i], 63 - i);
  body.erase(body.find("\tbar"), strlen("\tbar.sync \t0;\n"));
  EXPECT_EQ(said(body, numbers), "k, block 0, thread 32: a race with thread 31's load: "
                                 "st.shared.b32 \t[%rd2], %r1");
}

TEST(Ptx, RefusesWhatADeviceLeavesToChance) {
  alignas(16) float numbers[64] = {};
  EXPECT_EQ(said("\tld.global.b32 \t%r2, [%rd3+4];\n", numbers),
            "k, block 0, thread 63: a load from outside: ld.global.b32 \t%r2, [%rd3+4]");
  EXPECT_EQ(said("\tst.global.b32 \t[%rd3+-4], %r1;\n", numbers),
            "k, block 0, thread 0: a store outside: st.global.b32 \t[%rd3+-4], %r1");
  EXPECT_EQ(said("\tst.shared.b32 \t[%rd2+16], %r1;\n", numbers),
            "k, block 0, thread 60: a store outside: st.shared.b32 \t[%rd2+16], %r1");
  EXPECT_EQ(said("\tld.global.b64 \t%rd4, [%rd3];\n", numbers),
            "k, block 0, thread 1: an address that is not aligned: ld.global.b64 \t%rd4, [%rd3]");
  EXPECT_EQ(said("\tst.global.b32 \t[%rd1], %r1;\n", numbers),
            "k, block 0, thread 2: a race with thread 1's store: st.global.b32 \t[%rd1], %r1");
  std::string some = "\tsetp.gt.u32 \t%p1, %r1, 40;\n\t@%p1 bra \t$L__BB0_1;\n";
  EXPECT_EQ(said(some + "\tshfl.sync.bfly.b32 \t%r3, %r1, 1, 31, -1;\n$L__BB0_1:\n", numbers),
            "k, block 0, thread 41: a shuffle that not all lanes come to: ret");
  EXPECT_EQ(said(some + "\tbar.sync \t0;\n$L__BB0_1:\n", numbers),
            "k, block 0, thread 41: a barrier that not all threads come to: ret");
  EXPECT_EQ(said("\tfrob.b32 \t%r2, %r1;\n", numbers),
            "line 18: unknown instruction: frob.b32 \t%r2, %r1");
}

} // namespace
