// The interpreter's matrix instructions and asynchronous copies: their results, and the errors that
// they find.
#include "test/fake-gpu/Ptx.h"
#include "test/unit/CUDA/SmallKernels.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace ctxc::test;

namespace {

/// The problem found when `body` runs with `threads` threads over 64 words, without the kernel's
/// name.
std::string said(const std::string &body, void *words, unsigned threads = 32) {
  ptx::Module module;
  std::string error;
  if (!ptx::parse(smallModule(smallKernel("k", body)), module, error))
    return error;
  auto start = reinterpret_cast<uint64_t>(words);
  return ptx::run(module.kernels["k"], 1, threads, {start},
                  [&](uint64_t) { return ptx::Range{start, start + 256}; });
}

std::string without(std::string body, const std::string &line) {
  body.erase(body.find(line), line.size());
  return body;
}
std::string with(std::string body, const std::string &line, const std::string &other) {
  return body.replace(body.find(line), line.size(), other);
}

/// Threads 0 to 15 each copy 16 bytes to shared memory; then each reads a word that another has
/// copied.
const std::string copies = "\tshl.b32 \t%r5, %r1, 4;\n"
                           "\tmul.wide.u32 \t%rd5, %r1, 16;\n"
                           "\tadd.s64 \t%rd6, %rd1, %rd5;\n"
                           "\tsetp.gt.u32 \t%p1, %r1, 15;\n"
                           "\t@%p1 bra \t$L__BB0_1;\n"
                           "\tcp.async.cg.shared.global [%rd5], [%rd6], 16;\n"
                           "$L__BB0_1:\n"
                           "\tcp.async.commit_group;\n"
                           "\tcp.async.wait_group \t0;\n"
                           "\tbar.sync \t0;\n"
                           "\tld.shared.b32 \t%r6, [%rd2+128];\n"
                           "\tbar.sync \t0;\n"
                           "\tst.global.b32 \t[%rd3], %r6;\n";

TEST(PtxCopies, ArriveAtTheWait) {
  alignas(16) uint32_t words[64];
  for (uint32_t i = 0; i < 64; ++i)
    words[i] = i;
  EXPECT_EQ(said(copies, words), "");
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(words[i], i + 32);
  // A group may be incomplete when the kernel ends, and a copy of fewer bytes is filled with zeros.
  std::string part = with(copies, "[%rd6], 16;", "[%rd6], 16, 8;");
  for (uint32_t i = 0; i < 64; ++i)
    words[i] = i;
  EXPECT_EQ(said(with(part, "wait_group \t0;", "commit_group;\n\tcp.async.wait_group 1;"), words),
            "");
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(words[i], i % 4 < 2 ? i + 32 : 0);
}

TEST(PtxCopies, FindsWhatIsReadTooEarly) {
  alignas(16) uint32_t words[64] = {};
  std::string load = "ld.shared.b32 \t%r6, [%rd2+128]";
  EXPECT_EQ(said(without(copies, "\tcp.async.wait_group \t0;\n"), words),
            "k, block 0, thread 0: memory that a copy is under way to: " + load);
  EXPECT_EQ(said(with(copies, "wait_group \t0", "wait_group \t1"), words),
            "k, block 0, thread 0: memory that a copy is under way to: " + load);
  EXPECT_EQ(said(without(copies, "\tcp.async.commit_group;\n"), words),
            "k, block 0, thread 0: memory that a copy is under way to: " + load);
  // The copy begins while another thread may still read the old contents.
  std::string text = ": cp.async.cg.shared.global [%rd5], [%rd6], 16";
  EXPECT_EQ(said(without(copies, "\tbar.sync \t0;\n"), words),
            "k, block 0, thread 8: a race with thread 0's load" + text);
  std::string again = copies;
  again.insert(again.rfind("\tbar.sync"), "\tcp.async.cg.shared.global [%rd5], [%rd6], 16;\n");
  EXPECT_EQ(said(again, words, 16), "k, block 0, thread 8: a race with thread 0's load" + text);
  // The thread that waits sees the data; others need a barrier.
  std::string late = without(copies, "\tbar.sync \t0;\n");
  late.insert(late.find("\tcp.async.wait"), "\tbar.sync \t0;\n");
  late = with(late, "[%rd2+128]", "[%rd2]");
  EXPECT_EQ(said(late, words), "k, block 0, thread 1: a race with thread 0's store: "
                               "ld.shared.b32 \t%r6, [%rd2]");
}

TEST(PtxCopies, RefusesPlacesThatAreNone) {
  alignas(16) uint32_t words[64] = {};
  auto place = [&](const char *addresses) {
    return said(std::string("\tcp.async.cg.shared.global ") + addresses + ", 16;\n", words, 1);
  };
  EXPECT_EQ(place("[%rd2+256], [%rd3]"), "k, block 0, thread 0: a store outside: "
                                         "cp.async.cg.shared.global [%rd2+256], [%rd3], 16");
  EXPECT_EQ(place("[%rd2], [%rd3+248]"), "k, block 0, thread 0: a load from outside: "
                                         "cp.async.cg.shared.global [%rd2], [%rd3+248], 16");
  EXPECT_EQ(place("[%rd2+8], [%rd3]"), "k, block 0, thread 0: an address that is not aligned: "
                                       "cp.async.cg.shared.global [%rd2+8], [%rd3], 16");
  EXPECT_EQ(place("[%rd2], [%rd3+8]"), "k, block 0, thread 0: an address that is not aligned: "
                                       "cp.async.cg.shared.global [%rd2], [%rd3+8], 16");
}

/// Two matrices of 8 by 8 in 256 bytes; each is loaded twice.
const std::string load =
    "\txor.b32 \t%r4, %r1, 1;\n"
    "\tmul.wide.u32 \t%rd4, %r4, 4;\n"
    "\tst.shared.b32 \t[%rd4], %r4;\n"
    "\tadd.s32 \t%r4, %r1, 32;\n"
    "\tst.shared.b32 \t[%rd2+128], %r4;\n"
    "\tbar.sync \t0;\n"
    "\tand.b32 \t%r5, %r1, 15;\n"
    "\tmul.wide.u32 \t%rd5, %r5, 16;\n"
    "\tldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r6, %r7, %r8, %r9}, [%rd5];\n";

TEST(PtxMatrices, AreLoadedByRows) {
  alignas(16) uint32_t words[64];
  EXPECT_EQ(said(load + "\tadd.s32 \t%r6, %r6, %r8;\n\tst.global.b32 \t[%rd3], %r6;\n"
                        "\tst.global.b32 \t[%rd3+128], %r9;\n",
                 words),
            "");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(words[lane], 2 * lane);
    EXPECT_EQ(words[32 + lane], 32 + lane);
  }
}

TEST(PtxMatrices, FindsWhatIsWrongWithRows) {
  alignas(16) uint32_t words[64] = {};
  std::string text = ": ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r6, %r7, %r8, %r9}, [%rd5";
  EXPECT_EQ(said(with(load, "%r5, 16", "%r5, 32"), words),
            "k, block 0, thread 0: rows of a matrix that are in the same banks" + text + "]");
  EXPECT_EQ(said(with(load, "[%rd5]", "[%rd5+16]"), words),
            "k, block 0, thread 15: a load from outside" + text + "+16]");
  EXPECT_EQ(said(with(load, "[%rd5]", "[%rd5+-16]"), words),
            "k, block 0, thread 0: a load from outside" + text + "+-16]");
  EXPECT_EQ(said(with(load, "[%rd5]", "[%rd5+8]"), words),
            "k, block 0, thread 0: an address that is not aligned" + text + "+8]");
  EXPECT_EQ(said(without(load, "\tbar.sync \t0;\n"), words),
            "k, block 0, thread 0: a race with thread 1's store" + text + "]");
  std::string some = with(load, "\tldmatrix",
                          "\tsetp.gt.u32 \t%p1, %r1, 30;\n\t@%p1 bra \t$L__BB0_1;\n\tldmatrix");
  EXPECT_EQ(said(some + "$L__BB0_1:\n", words),
            "k, block 0, thread 31: a load of matrices that not all lanes come to: ret");
}

uint32_t pairOf(float low, float high) {
  uint32_t words[2];
  memcpy(&words[0], &low, 4);
  memcpy(&words[1], &high, 4);
  return words[0] >> 16 | (words[1] & 0xffff0000);
}

const std::string product =
    "\tld.global.b32 \t%r2, [%rd3];\n"
    "\tld.global.b32 \t%r3, [%rd3+128];\n"
    "\tmov.b32 \t%r4, 0;\n"
    "\tmov.b32 \t%r5, 0f3F800000;\n"
    "\tmma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32\n"
    "\t\t{%r6, %r7, %r8, %r9},\n\t\t{%r2, %r4, %r4, %r2},\n\t\t{%r3, %r4},\n"
    "\t\t{%r5, %r4, %r5, %r4};\n";

TEST(PtxMatrices, AreMultiplied) {
  alignas(16) uint32_t words[64];
  // A has eight rows and eight columns, A[g, k] = g + k; B[k, n] = 8 k - n.
  for (int lane = 0; lane < 32; ++lane) {
    int g = lane / 4, k = lane % 4 * 2;
    words[lane] = pairOf(g + k, g + k + 1);
    words[32 + lane] = pairOf(8 * k - g, 8 * k + 8 - g);
  }
  EXPECT_EQ(
      said(product + "\tst.global.b32 \t[%rd3], %r6;\n\tst.global.b32 \t[%rd3+128], %r7;\n", words),
      "");
  for (int lane = 0; lane < 32; ++lane)
    for (int next : {0, 1}) {
      int g = lane / 4, n = lane % 4 * 2 + next;
      float sum = next ? 0 : 1, found;
      for (int k = 0; k < 8; ++k)
        sum += (g + k) * (8 * k - n);
      memcpy(&found, &words[32 * next + lane], 4);
      EXPECT_EQ(found, sum) << g << " " << n;
    }
}

TEST(PtxMatrices, FindsLanesThatAreMissing) {
  alignas(16) uint32_t words[64] = {};
  EXPECT_EQ(
      said("\tsetp.gt.u32 \t%p1, %r1, 30;\n\t@%p1 bra \t$L__BB0_1;\n" + product + "$L__BB0_1:\n",
           words),
      "k, block 0, thread 31: a product that not all lanes come to: ret");
  EXPECT_EQ(
      said("\tmma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%r6}, {%r2}, {%r3}, {%r4};\n",
           words),
      "line 18: unknown instruction: mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%r6}, "
      "{%r2}, {%r3}, {%r4}");
}

} // namespace
