// A rejection stands with a counterexample that is found in the same run, whatever the sizes of the
// block, and whatever its contextual op.
#include "../Transforms/Blocks.h"
#include "ctxc/Evidence/Witness.h"
#include "lib/Evidence/Subject.h"

using namespace ctxc;
using namespace ctxc::test;
using namespace mlir;

namespace {

std::string vec(int64_t n) { return "tensor<" + std::to_string(n) + "xf32>"; }
std::string mat(int64_t m, int64_t n, const char *element = "f32") {
  return "tensor<" + std::to_string(m) + "x" + std::to_string(n) + "x" + element + ">";
}
std::string linear(const std::string &to, const std::string &from, int64_t out, int64_t in,
                   const char *element = "f32") {
  std::string type = mat(out, in, element);
  return "    %P" + to + " = xf.param \"" + to + "\" : " + type + "\n    %" + to +
         " = xf.linear %P" + to + " * %" + from + " : " + type + ", " + vec(in) + "\n";
}

struct Sizes {
  int64_t hidden, heads, groups, width, inner, narrow;
};

/// Grouped attention by one fused matrix, rotary embeddings, a gated MLP, and `ending` from %d to
/// %r.
std::string decoder(const Sizes &s, const std::string &ending, const char *element = "f32") {
  int64_t q = s.heads * s.width, k = s.groups * s.width, all = q + 2 * k, d = s.hidden;
  auto slice = [&](const char *to, const char *from, int64_t at, int64_t of, int64_t size) {
    return "    %" + std::string(to) + " = xf.slice %" + from + " from " + std::to_string(at) +
           " : " + vec(of) + " to " + vec(size) + "\n";
  };
  auto heads = [&](const char *to, const char *from, int64_t n) {
    return "    %" + std::string(to) + " = xf.reshape %" + from + " : " + vec(n * s.width) +
           " to " + mat(n, s.width) + "\n";
  };
  auto turn = [&](const char *to, const char *from, int64_t n) {
    return "    %" + std::string(to) + " = xf.rotary half %" + from +
           " by %f : " + mat(n, s.width) + ", " + vec(s.width / 2) + "\n";
  };
  return "  xf.block @b(%x: " + vec(d) + ") -> " + vec(d) +
         " {\n    %h = xf.normalize rms %x eps 1.0e-6 : " + vec(d) + "\n" +
         linear("qkv", "h", all, d, element) + slice("q", "qkv", 0, all, q) +
         slice("k", "qkv", q, all, k) + slice("v", "qkv", q + k, all, k) +
         heads("Q", "q", s.heads) + heads("K", "k", s.groups) + heads("V", "v", s.groups) +
         "    %f = xf.setting \"rope\" : " + vec(s.width / 2) +
         " = #xf.rope<base = 1.0e4, dims = " + std::to_string(s.width) + ">\n" +
         turn("Qr", "Q", s.heads) + turn("Kr", "K", s.groups) +
         "    %A = xf.attention %Qr, %Kr, %V scale 0.125 : " + mat(s.heads, s.width) + ", " +
         mat(s.groups, s.width) + ", " + mat(s.groups, s.width) + " -> " + mat(s.heads, s.width) +
         "\n    %c = xf.reshape %A : " + mat(s.heads, s.width) + " to " + vec(q) + "\n" +
         linear("o", "c", d, q, element) + "    %w = xf.add %x, %o : " + vec(d) +
         "\n    %z = xf.normalize rms %w eps 1.0e-6 : " + vec(d) + "\n" +
         linear("gate", "z", s.inner, d, element) + linear("up", "z", s.inner, d, element) +
         "    %s = xf.activation silu %gate : " + vec(s.inner) +
         "\n    %p = xf.mul %s, %up : " + vec(s.inner) + ", " + vec(s.inner) + "\n" +
         linear("d", "p", d, s.inner, element) + ending + "    %y = xf.add %w, %r : " + vec(d) +
         "\n    xf.yield %y : " + vec(d) + "\n  }\n";
}

Verdict judge(xf::BlockOp block) {
  PlanOptions options;
  options.refute = refuteByWitness;
  return planBlock(block, options);
}

constexpr Sizes sizes[] = {{8, 2, 1, 4, 12, 3},
                           {512, 8, 2, 64, 2048, 3},
                           {512, 8, 2, 64, 2048, 16},
                           {4096, 32, 8, 128, 14336, 3},
                           {4096, 32, 8, 128, 14336, 16},
                           {4096, 32, 8, 128, 14336, 4095},
                           {16384, 128, 8, 128, 53248, 3},
                           {16384, 128, 8, 128, 53248, 64},
                           {2560, 40, 40, 64, 6912, 3},
                           {1600, 25, 25, 64, 6400, 100},
                           {640, 4, 1, 256, 2048, 320},
                           {5120, 64, 8, 128, 25600, 129},
                           {7168, 128, 2, 64, 18432, 1536}};

TEST(Refute, LargeBlocksAreRejectedInSmallerSizes) {
  for (const Sizes &s : sizes) {
    SCOPED_TRACE(s.hidden);
    std::string n = vec(s.hidden);
    const std::pair<std::string, StringRef> endings[] = {
        {"    %r = xf.normalize rms %d eps 1.0e-6 : " + n + "\n", rules::BoundedOutput},
        {"    %r = xf.activation relu %d : " + n + "\n", rules::OneSidedOutput},
        {"    %E = xf.param \"e\" : " + mat(s.narrow, s.hidden) +
             "\n    %e = xf.linear %E * %d : " + mat(s.narrow, s.hidden) + ", " + n +
             "\n    %F = xf.param \"f\" frozen : " + mat(s.hidden, s.narrow) +
             "\n    %r = xf.linear %F * %e : " + mat(s.hidden, s.narrow) + ", " + vec(s.narrow) +
             "\n",
         rules::ThinOutput}};
    for (const auto &[ending, rule] : endings) {
      Blocks blocks(decoder(s, ending));
      ASSERT_TRUE(blocks.module);
      Verdict verdict = judge(blocks.block("b"));
      ASSERT_FALSE(verdict.causes.empty());
      EXPECT_EQ(verdict.kind, VerdictKind::Rejected) << verdict.causes.front().message;
      EXPECT_EQ(verdict.causes.front().rule, rule);
    }
  }
}

/// A small factor moves the output as far as a large one, by a larger patch.
TEST(Refute, SmallFactorsReachAsFarAsLargeOnes) {
  for (const char *factor : {"1.0e-3", "1.0e-9", "1.0e-11", "1.0e-13", "1.0e-20", "1.0e-30"}) {
    SCOPED_TRACE(factor);
    Blocks blocks(block("b", "    %K = xf.param \"conv\" : tensor<6x3xf32>\n"
                             "    %a = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>\n" +
                                 add("v", "x", "a") + linear("small", "v", 2, 6) +
                                 linear("large", "v", 4, 6) + "    %s = xf.times %small by " +
                                 factor +
                                 " : tensor<2xf32>\n"
                                 "    %d = xf.concat %large, %s : tensor<4xf32>, tensor<2xf32>\n" +
                                 add("y", "v", "d")));
    ASSERT_TRUE(blocks.module);
    EXPECT_NE(judge(blocks.block("b")).kind, VerdictKind::Rejected);
  }
}

/// What patches move is seen beside a constant that float64 holds no smaller number beside.
TEST(Refute, NothingIsRoundedAwayBesideAConstant) {
  Blocks blocks(block("b", "    %K = xf.param \"conv\" : tensor<6x3xf32>\n"
                           "    %a = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>\n" +
                               add("v", "x", "a") + linear("up", "v", 6, 6) +
                               "    %c = xf.times %x by 1.0e18 : tensor<6xf32>\n" +
                               add("y", "c", "up")));
  ASSERT_TRUE(blocks.module);
  Subject subject(blocks.block("b"), SiteScope());
  auto weights = randomWeights(1);
  ConvexSum reached =
      llvm::cantFail(subject.reachable(randomSample(subject.block, SampleOptions()), *weights));
  EXPECT_EQ(reached.support(Vector::Unit(6, 2)), HUGE_VAL);
}

TEST(Refute, ALargeBlocksWitnessIsOfItsStructure) {
  std::string ending = "    %r = xf.normalize rms %d eps 1.0e-6 : " + vec(4096) + "\n";
  for (const char *element : {"f32", "bf16", "!xf.quantized<q4_k>"}) {
    SCOPED_TRACE(element);
    Blocks blocks(decoder({4096, 32, 8, 128, 14336, 16}, ending, element));
    ASSERT_TRUE(blocks.module);
    WitnessOptions how;
    how.rule = rules::BoundedOutput;
    how.anySize = false;
    auto witness = findWitness(blocks.block("b"), {}, {}, how);
    ASSERT_TRUE(bool(witness)) << llvm::toString(witness.takeError());
    ASSERT_TRUE(*witness);
    EXPECT_NE((*witness)->sizes.find(" for 14336"), std::string::npos) << (*witness)->sizes;
    int64_t numbers = 0;
    for (const WitnessTensor &tensor : (*witness)->weights)
      numbers += tensor.bytes.size();
    EXPECT_LT(numbers, 2 * 4 * WitnessOptions::mostNumbers);
    auto replay = replayWitness(**witness, blocks.context);
    ASSERT_TRUE(bool(replay)) << llvm::toString(replay.takeError());
    EXPECT_TRUE(replay->confirms(**witness));
  }
}

TEST(Refute, AMixtureIsMadeSmaller) {
  // 64 experts, of which 6 are active, in groups.
  Blocks blocks(R"(
  xf.block @b(%x: tensor<512xf32>) -> tensor<512xf32> {
    %K = xf.param "conv" : tensor<512x4xf32>
    %a = xf.conv %K, %x : tensor<512x4xf32>, tensor<512xf32>
    %v = xf.add %x, %a : tensor<512xf32>
    %R = xf.param "router" : tensor<64x512xf32>
    %l = xf.linear %R * %v : tensor<64x512xf32>, tensor<512xf32>
    %s = xf.activation sigmoid %l : tensor<64xf32>
    %sel = xf.top_k %s k 6 groups 8 keep 4 : tensor<64xf32>
    %w = xf.gather %s[%sel] : tensor<64xf32>, tensor<6xi32>
    %U = xf.param "experts.*.up" : tensor<64x96x512xf32>
    %u = xf.expert_linear %U[%sel] * %v : tensor<64x96x512xf32>, tensor<6xi32>, tensor<512xf32>
    %h = xf.activation silu %u : tensor<6x96xf32>
    %D = xf.param "experts.*.down" : tensor<64x512x96xf32>
    %d = xf.expert_linear %D[%sel] * %h : tensor<64x512x96xf32>, tensor<6xi32>, tensor<6x96xf32>
    %m = xf.combine %w, %d : tensor<6xf32>, tensor<6x512xf32>
    %r = xf.normalize rms %m eps 1.0e-6 : tensor<512xf32>
    %y = xf.add %v, %r : tensor<512xf32>
    xf.yield %y : tensor<512xf32>
  })");
  ASSERT_TRUE(blocks.module);
  Verdict verdict = judge(blocks.block("b"));
  ASSERT_FALSE(verdict.causes.empty());
  EXPECT_EQ(verdict.kind, VerdictKind::Rejected) << verdict.causes.front().message;
}

/// What an op reads that is known to read the context, and no more.
TEST(Refute, AnyContextualOpHasAStandIn) {
  for (const char *result :
       {"\"mixer\"(%x) : (tensor<6xf32>) -> tensor<6xf32>",
        "\"mixer\"(%x, %p) : (tensor<6xf32>, tensor<2x3xf32>) -> tensor<6xf32>",
        "\"mixer\"(%K) : (tensor<6x6xf32>) -> tensor<6xf32>",
        "\"mixer\"() : () -> tensor<6xf32>"}) {
    SCOPED_TRACE(result);
    Blocks blocks(
        block("b", std::string("    %p = xf.reshape %x : tensor<6xf32> to tensor<2x3xf32>\n"
                               "    %K = xf.param \"k\" : tensor<6x6xf32>\n"
                               "    %a = xf.contextual ") +
                       result + "\n" + add("v", "x", "a") +
                       "    %W = xf.param \"w\" : tensor<6x6xf32>\n"
                       "    %d = xf.linear %W * %v : tensor<6x6xf32>, tensor<6xf32>\n"
                       "    %r = xf.activation tanh %d : tensor<6xf32>\n" +
                       add("y", "v", "r")));
    ASSERT_TRUE(blocks.module);
    Verdict verdict = judge(blocks.block("b"));
    EXPECT_EQ(verdict.kind, VerdictKind::Rejected);
    WitnessOptions how;
    how.rule = verdict.causes.front().rule;
    auto witness = findWitness(blocks.block("b"), {}, {}, how);
    ASSERT_TRUE(bool(witness)) << llvm::toString(witness.takeError());
    ASSERT_TRUE(*witness);
    auto replay = replayWitness(**witness, blocks.context);
    ASSERT_TRUE(bool(replay)) << llvm::toString(replay.takeError());
    EXPECT_TRUE(replay->confirms(**witness));
  }
}

/// The context moves the stream along one direction, and a patch along the same.
std::string oneDirection(int64_t n) {
  std::string v = vec(n);
  auto along = [&](const std::string &to, const std::string &from) {
    return linear(to + "1", from, 1, n) + "    %" + to + " = xf.mul %one, %" + to + "1 : " + v +
           ", tensor<1xf32>\n";
  };
  return "  xf.block @b(%x: " + v + ") -> " + v + " {\n    %K = xf.param \"conv\" : " + mat(n, 3) +
         "\n    %c = xf.conv %K, %x : " + mat(n, 3) + ", " + v +
         "\n    %one = xf.setting \"one\" : " + v + " = dense<1.0> : " + v + "\n" +
         along("a", "c") + "    %v = xf.add %x, %a : " + v + "\n" + along("d", "x") +
         "    %y = xf.add %v, %d : " + v + "\n    xf.yield %y : " + v + "\n  }\n";
}

TEST(Refute, WhatNoNumbersShowIsUndecided) {
  for (int64_t n : {4, 8, 512, 60000}) { // the last is too large to be looked at as it is
    SCOPED_TRACE(n);
    Blocks blocks(oneDirection(n));
    ASSERT_TRUE(blocks.module);
    EXPECT_EQ(planBlock(blocks.block("b")).kind, VerdictKind::Rejected) << "by structure alone";
    Verdict verdict = judge(blocks.block("b"));
    EXPECT_EQ(verdict.kind, VerdictKind::Undecided);
    ASSERT_EQ(verdict.causes.size(), 1u);
    EXPECT_EQ(verdict.causes.front().rule, rules::UnconfirmedRejection);
    EXPECT_FALSE(verdict.bound);
    EXPECT_FALSE(verdict.causes.front().notes.empty());
  }
}

/// Two streams of n entries into which the context enters, one by half of what the other gets, and
/// a matrix 'down' behind both; `ending` makes %y and %z of %w, %j and %d.
std::string streams(int64_t n, const std::string &ending) {
  std::string v = vec(n);
  return "  xf.block @b(%x: " + v + ", %x2: " + v + ") -> (" + v + ", " + v +
         ") {\n    %K = xf.param \"conv\" : " + mat(n, 3) +
         "\n    %a = xf.conv %K, %x : " + mat(n, 3) + ", " + v + "\n    %w = xf.add %x, %a : " + v +
         "\n    %i = xf.times %a by 0.5 : " + v + "\n    %j = xf.add %x2, %i : " + v + "\n" +
         linear("up", "w", n + 2, n) + "    %h = xf.activation gelu %up : " + vec(n + 2) + "\n" +
         linear("d", "h", n, n + 2) + linear("q", "w", 1, n) +
         "    %t = xf.activation sigmoid %q : tensor<1xf32>\n" + ending +
         "    xf.yield %y, %z : " + v + ", " + v + "\n  }\n";
}

TEST(Refute, StreamsThatMixTooFewVectors) {
  for (int64_t n : {5, 8, 512}) {
    SCOPED_TRACE(n);
    std::string v = vec(n), types = v + ", tensor<1xf32>\n",
                y = "    %y = xf.add %w, %d : " + v + "\n";
    struct Case {
      const char *name;
      std::string ending;
      bool isRejected;
    };
    const Case cases[] = {
        {"a multiple of one matrix's",
         y + "    %e = xf.mul %d, %t : " + types + "    %z = xf.add %j, %e : " + v + "\n", true},
        {"streams that are mixed as well",
         "    %m = xf.mul %w, %t : " + types + "    %k = xf.mul %j, %t : " + types +
             "    %o = xf.add %m, %k : " + v + "\n    %y = xf.add %o, %d : " + v +
             "\n    %e = xf.mul %d, %t : " + types + "    %z = xf.sub %k, %e : " + v + "\n",
         true},
        {"a matrix for each",
         y + linear("e", "h", n, n + 2) + "    %z = xf.add %j, %e : " + v + "\n", false},
        {"a bias for one",
         y + "    %B = xf.param \"b\" : " + v + "\n    %e = xf.mul %d, %t : " + types +
             "    %f = xf.bias %e + %B : " + v + ", " + v + "\n    %z = xf.add %j, %f : " + v +
             "\n",
         false},
        {"the second follows from the first", y + "    %z = xf.mul %y, %t : " + types, false},
    };
    for (const Case &each : cases) {
      SCOPED_TRACE(each.name);
      Blocks blocks(streams(n, each.ending));
      ASSERT_TRUE(blocks.module);
      Verdict verdict = judge(blocks.block("b"));
      EXPECT_EQ(verdict.kind == VerdictKind::Rejected, each.isRejected);
      if (verdict.kind == VerdictKind::Rejected)
        EXPECT_EQ(verdict.causes.front().rule, rules::FewVectors);
    }
  }
}

/// Both outputs get one stream in proportions of their own, which patches change, and the same
/// vector: what the proportions do is no second vector.
TEST(Refute, WhatNoPatchMovesIsNoSecondVector) {
  Blocks blocks(R"(
  xf.block @b(%x: tensor<6xf32>, %c: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
    %K = xf.param "conv" : tensor<6x3xf32>
    %a = xf.conv %K, %c : tensor<6x3xf32>, tensor<6xf32>
    %p = xf.param "p" : tensor<1x6xf32>
    %s = xf.linear %p * %a : tensor<1x6xf32>, tensor<6xf32>
    %q = xf.param "q" : tensor<1x6xf32>
    %t = xf.linear %q * %a : tensor<1x6xf32>, tensor<6xf32>
    %W = xf.param "w" : tensor<6x6xf32>
    %d = xf.linear %W * %a : tensor<6x6xf32>, tensor<6xf32>
    %u = xf.mul %x, %s : tensor<6xf32>, tensor<1xf32>
    %v = xf.mul %x, %t : tensor<6xf32>, tensor<1xf32>
    %y = xf.add %u, %d : tensor<6xf32>
    %z = xf.sub %v, %d : tensor<6xf32>
    xf.yield %y, %z : tensor<6xf32>, tensor<6xf32>
  })");
  ASSERT_TRUE(blocks.module);
  PlanOptions all;
  all.scope = SiteScope::All;
  auto witness = findWitness(blocks.block("b"), all, {});
  ASSERT_TRUE(bool(witness)) << llvm::toString(witness.takeError());
  EXPECT_FALSE(*witness);
}

/// Wᵀ W u turns u by no more than a right angle, and is any vector where patches move u.
TEST(Refute, NoPatchMovesTheNormalOfAHalfSpace) {
  for (bool isFrozen : {true, false}) {
    Blocks blocks(R"(
  xf.block @b(%x: tensor<4xf32>) -> tensor<4xf32> {
    %K = xf.param "conv" : tensor<4x3xf32>
    %c = xf.conv %K, %x : tensor<4x3xf32>, tensor<4xf32>
)" + linear("u", "c", 4, 4) +
                  linear("h", "u", 6, 4) + R"(
    %g = xf.linear %Ph * %h transposed : tensor<6x4xf32>, tensor<6xf32>
    %y = xf.add %x, %g : tensor<4xf32>
    xf.yield %y : tensor<4xf32>
  })");
    ASSERT_TRUE(blocks.module);
    xf::BlockOp block = blocks.block("b");
    block.walk([&](xf::ParamOp param) { param.setFrozen(isFrozen && param.getName() == "u"); });
    BlockGraph graph(block);
    ZeroRange zeros(block);
    Bindings bindings;
    Sites sites(graph, zeros, bindings, SiteScope::All);
    Moved moved(graph, sites);
    block.walk([&](xf::LinearOp op) {
      if (op.getTransposed())
        EXPECT_EQ(isHalfSpace(moved, op.getResult()), isFrozen);
    });
  }
}

} // namespace
