// No plan divides by what is zero, identically or on an open set: constants, equal values,
// correlated terms of a sum, norms of one entry, weights that add up to zero. Blocks without such
// divisors keep their verdicts. Only facts are used here; nothing is tried in numbers.
#include "FactorBlock.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::test;

namespace {

TEST(Cancellation, IsNeverDividedBy) {
  const char *matrix = "tensor<6x6xf32>";
  const Case cases[] = {
      {"u - relu u", unary("r", "activation relu", "u") + binary("h", "sub", "u", "r")},
      {"relu u - u", unary("r", "activation relu", "u") + binary("h", "sub", "r", "u")},
      {"u - clamp u", unary("r", "clamp", "u", " to 8.0") + binary("h", "sub", "u", "r")},
      {"u - clamp u above",
       unary("r", "clamp", "u", " to 8.0 above") + binary("h", "sub", "u", "r")},
      {"relu -exp", unary("e", "activation exp", "u") + times("n", "e", "-1.0") +
                        unary("h", "activation relu", "n")},
      {"tanh - tanh", unary("s", "activation tanh", "u") + unary("t", "activation tanh", "u") +
                          binary("h", "sub", "s", "t")},
      {"tanh of u + relu g, - tanh u",
       unary("r", "activation relu", "g") + binary("w", "add", "u", "r") +
           unary("s", "activation tanh", "w") + unary("t", "activation tanh", "u") +
           binary("h", "sub", "s", "t")},
      {"u + v - u - v",
       binary("a", "add", "u", "v") + binary("b", "sub", "a", "u") + binary("h", "sub", "b", "v")},
      {"0.1 u + 0.2 u - 0.3 u", times("a", "u", "0.1") + times("b", "u", "0.2") +
                                    times("c3", "u", "-0.3") + binary("ab", "add", "a", "b") +
                                    binary("h", "add", "ab", "c3")},
      {"layer norm of one",
       inRows("normalize layer %rows eps 1.0e-5") + unary("h", "times", "flat", " by 1.0")},
      {"zero by zero",
       inRows("normalize layer %rows eps 0.0") + unary("h", "times", "flat", " by 1.0")},
      {"softmax of one - 1", inRows("softmax %rows") + binary("h", "sub", "flat", "one")},
      {"share of one - 1",
       inRows("normalize sum %rows eps 0.0") + binary("h", "sub", "flat", "one")},
      {"layer norm of a clamp",
       unary("r", "clamp", "u", " to 1.0") + unary("h", "normalize layer", "r", " eps 1.0e-5")},
      {"a setting of zeros", setting("h", "0.0")},
      {"a setting with a zero", setting("h", "[1.0, 2.0, 0.0, 3.0, 4.0, 5.0]")},
      {"tanh of a setting of zeros", setting("z", "0.0") + unary("h", "activation tanh", "z")},
      {"u times a setting of zeros", setting("z", "0.0") + binary("h", "mul", "u", "z")},
      {"one setting - another", setting("a", "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]") +
                                    setting("b", "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]") +
                                    binary("h", "sub", "a", "b")},
      {"settings that are opposite", setting("a", "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]") +
                                         setting("b", "[-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]") +
                                         binary("h", "add", "a", "b")},
      {"a scale of 1 - 1",
       "    %h = xf.scale %u by %one offset -1.0 : tensor<6xf32>, tensor<6xf32>\n"},
      {"a scale of relu - 0", unary("r", "activation relu", "g") +
                                  "    %h = xf.scale %u by %r : tensor<6xf32>, tensor<6xf32>\n"},
      {"a scale of clamp g to 1, - 1", unary("r", "clamp", "g", " to 1.0 above") +
                                           "    %h = xf.scale %u by %r offset -1.0 : "
                                           "tensor<6xf32>, tensor<6xf32>\n"},
      {"a matrix times a relu, beside g", unary("r", "activation relu", "u") + R"(
    %W = xf.param "w" frozen : tensor<3x6xf32>
    %l = xf.linear %W * %r : tensor<3x6xf32>, tensor<6xf32>
    %p3 = xf.slice %g from 0 : tensor<6xf32> to tensor<3xf32>
    %h = xf.concat %p3, %l : tensor<3xf32>, tensor<3xf32>
)"},
      {"a bias of -u",
       times("n", "u", "-1.0") + "    %h = xf.bias %u + %n : tensor<6xf32>, tensor<6xf32>\n"},
      {"a matrix of zeros", setting("Z", "0.0", matrix) +
                                "    %h = xf.linear %Z * %u : tensor<6x6xf32>, tensor<6xf32>\n"},
      {"sums of centred values",
       setting("O", "1.0", matrix) + unary("n", "normalize layer", "u", " eps 1.0e-5") +
           "    %h = xf.linear %O * %n : tensor<6x6xf32>, tensor<6xf32>\n"},
      {"clamp u to 1, + 1", unary("r", "clamp", "u", " to 1.0") + binary("h", "add", "r", "one")},
      {"(clamp u - 1) g, multiplied out", unary("r", "clamp", "u", " to 1.0") +
                                              binary("p1", "mul", "r", "g") +
                                              binary("h", "sub", "p1", "g")},
      {"relu 2 (u) - relu 2 (u)", unary("a", "activation relu2", "u") +
                                      unary("b", "activation relu2", "u") +
                                      binary("h", "sub", "a", "b")},
      {"u - |u|", unary("r", "activation abs", "u") + binary("h", "sub", "u", "r")},
      {"|u| - |-u|", times("n", "u", "-1.0") + unary("a", "activation abs", "u") +
                         unary("b", "activation abs", "n") + binary("h", "sub", "a", "b")},
      {"|exp u| - exp u", unary("e", "activation exp", "u") + unary("a", "activation abs", "e") +
                              binary("h", "sub", "a", "e")},
      {"relu exp u - exp u", unary("e", "activation exp", "u") +
                                 unary("a", "activation relu", "e") + binary("h", "sub", "a", "e")},
      {"clamp tanh u to 2, - tanh u", unary("t", "activation tanh", "u") +
                                          unary("a", "clamp", "t", " to 2.0") +
                                          binary("h", "sub", "a", "t")},
      {"convolution of a clamp that its weights made", convolved("clamp", " to 1.0", "conv")},
      {"convolution of a relu", convolved("activation relu")},
      {"recurrence of numbers of any sign", recurrence("activation sigmoid", "activation gelu")},
      {"recurrence of a silu", recurrence("activation sigmoid", "activation silu")},
      {"recurrence with a gate of any sign", recurrence("activation tanh", "activation exp")},
      {"recurrence of a relu", recurrence("activation sigmoid", "activation relu")},
      {"u / u - clamp g", binary("q", "div", "one", "u") + binary("p1", "mul", "u", "q") +
                              unary("r", "clamp", "g", " to 1.0") + binary("h", "sub", "p1", "r")},
      {"weighed rows that cancel", times("n", "u", "-1.0") + unary("s", "activation tanh", "u") +
                                       unary("t", "activation tanh", "n") +
                                       setting("w2", "1.0", "tensor<2xf32>") + R"(
    %s1 = xf.reshape %s : tensor<6xf32> to tensor<1x6xf32>
    %t1 = xf.reshape %t : tensor<6xf32> to tensor<1x6xf32>
    %both = xf.concat %s1, %t1 : tensor<1x6xf32>, tensor<1x6xf32>
    %h = xf.combine %w2, %both : tensor<2xf32>, tensor<2x6xf32>
)"},
      {"a matrix times what is orthogonal to it", setting("e", "1.0", "tensor<1xf32>") + R"(
    %W = xf.param "w" frozen : tensor<1x2xf32>
    %l = xf.linear %W * %e transposed : tensor<1x2xf32>, tensor<1xf32>
    %a = xf.slice %l from 0 : tensor<2xf32> to tensor<1xf32>
    %b = xf.slice %l from 1 : tensor<2xf32> to tensor<1xf32>
    %n = xf.times %a by -1.0 : tensor<1xf32>
    %t = xf.concat %b, %n : tensor<1xf32>, tensor<1xf32>
    %z = xf.linear %W * %t : tensor<1x2xf32>, tensor<2xf32>
    %h = xf.mul %one, %z : tensor<6xf32>, tensor<1xf32>
)"},
      {"an expert's matrix times a relu", ofExperts("activation relu")},
      {"sqrt u", unary("h", "activation sqrt", "u")},
      {"sqrt -exp", unary("e", "activation exp", "u") + times("n", "e", "-1.0") +
                        unary("h", "activation sqrt", "n")},
      {"the sign of a layer norm of two",
       "    %two = xf.reshape %u : tensor<6xf32> to tensor<3x2xf32>\n"
       "    %n2 = xf.normalize layer %two eps 0.0 : tensor<3x2xf32>\n"
       "    %s2 = xf.reshape %n2 : tensor<3x2xf32> to tensor<6xf32>\n" +
           binary("h", "add", "s2", "one")},
  };
  for (const Case &each : cases)
    EXPECT_FALSE(isSuccess(verdictOn(withFactor(each.body)))) << each.name;
}

TEST(Cancellation, IsNotSeenWhereThereIsNone) {
  const Case cases[] = {
      {"gelu u", unary("h", "activation gelu", "u")},
      {"u - g", binary("h", "sub", "u", "g")},
      {"u + relu g", unary("r", "activation relu", "g") + binary("h", "add", "u", "r")},
      {"u - clamp g", unary("r", "clamp", "g", " to 1.0") + binary("h", "sub", "u", "r")},
      {"clamp u to 7, + 1", unary("r", "clamp", "u", " to 7.0") + binary("h", "add", "r", "one")},
      {"(clamp u + 1) g, multiplied out", unary("r", "clamp", "u", " to 0.6") +
                                              binary("p1", "mul", "r", "g") +
                                              binary("h", "add", "p1", "g")},
      {"2 u - u", times("t", "u", "2.0") + binary("h", "sub", "t", "u")},
      {"u - tanh u", unary("t", "activation tanh", "u") + binary("h", "sub", "u", "t")},
      {"a setting of numbers", setting("h", "[1.0, 2.0, -3.0, 4.0, 5.0, 6.0]")},
      {"convolution of a clamp", convolved("clamp", " to 1.0")},
      {"convolution of a gelu", convolved("activation gelu")},
      {"recurrence of positive numbers", recurrence("activation sigmoid", "activation exp")},
      {"an expert's matrix times a gelu", ofExperts("activation gelu")},
      {"|u|", unary("h", "activation abs", "u")},
      {"|u| + 1", unary("a", "activation abs", "u") + binary("h", "add", "a", "one")},
      {"|u| - g", unary("a", "activation abs", "u") + binary("h", "sub", "a", "g")},
      {"sqrt of exp", unary("e", "activation exp", "u") + unary("h", "activation sqrt", "e")},
      {"clamp tanh u to 2, - g", unary("t", "activation tanh", "u") +
                                     unary("a", "clamp", "t", " to 2.0") +
                                     binary("h", "sub", "a", "g")},
      {"relu of exp", unary("e", "activation exp", "u") + unary("h", "activation relu", "e")},
      {"rms norm of one, with an epsilon",
       inRows("normalize rms %rows eps 1.0e-5") + binary("h", "sub", "flat", "one")},
      {"a scale of 1 + 1",
       "    %h = xf.scale %u by %one offset 1.0 : tensor<6xf32>, tensor<6xf32>\n"},
  };
  for (const Case &each : cases)
    EXPECT_TRUE(isSuccess(verdictOn(withFactor(each.body)))) << each.name;
}

/// v + Σ w_j D_j h_j, where `weights` computes w from the scores' logits l and the selection s.
std::string mixture(const std::string &weights) {
  return R"(xf.block @b(%x: tensor<6xf32>) -> tensor<6xf32> {
    %K = xf.param "conv" : tensor<6x3xf32>
    %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
    %v = xf.add %x, %c : tensor<6xf32>
    %R = xf.param "router" : tensor<4x6xf32>
    %Q = xf.param "second" : tensor<2x6xf32>
    %l = xf.linear %R * %v : tensor<4x6xf32>, tensor<6xf32>
    %q = xf.linear %Q * %v : tensor<2x6xf32>, tensor<6xf32>
    %s = xf.top_k %l k 2 : tensor<4xf32>
)" + weights +
         R"(
    %D = xf.param "down" : tensor<4x6x6xf32>
    %d = xf.expert_linear %D[%s] * %v : tensor<4x6x6xf32>, tensor<2xi32>, tensor<6xf32>
    %m = xf.combine %w, %d : tensor<2xf32>, tensor<2x6xf32>
    %y = xf.add %v, %m : tensor<6xf32>
    xf.yield %y : tensor<6xf32>
  })";
}

TEST(Cancellation, OfWeightsIsNoEvenSplit) {
  const Case cases[] = {
      {"layer norm", "    %w = xf.normalize layer %q eps 1.0e-5 : tensor<2xf32>\n"},
      {"a difference of softmaxes",
       "    %a = xf.softmax %q : tensor<2xf32>\n    %t = xf.times %q by 2.0 : tensor<2xf32>\n"
       "    %b = xf.softmax %t : tensor<2xf32>\n    %w = xf.sub %a, %b : tensor<2xf32>\n"},
      {"r and -r", "    %r = xf.slice %q from 0 : tensor<2xf32> to tensor<1xf32>\n"
                   "    %n = xf.times %r by -1.0 : tensor<1xf32>\n"
                   "    %w = xf.concat %r, %n : tensor<1xf32>, tensor<1xf32>\n"},
      {"a number and its opposite, as a multiple", R"(
    %r = xf.slice %q from 0 : tensor<2xf32> to tensor<1xf32>
    %sign = xf.setting "sign" : tensor<2xf32> = dense<[1.0, -1.0]> : tensor<2xf32>
    %w = xf.mul %sign, %r : tensor<2xf32>, tensor<1xf32>
)"},
      {"a number and its opposite, one a broadcast's", R"(
    %r = xf.slice %q from 0 : tensor<2xf32> to tensor<1xf32>
    %once = xf.reshape %r : tensor<1xf32> to tensor<1x1xf32>
    %twice = xf.broadcast %once : tensor<1x1xf32> to tensor<2x1xf32>
    %flat = xf.reshape %twice : tensor<2x1xf32> to tensor<2xf32>
    %sign = xf.setting "sign" : tensor<2xf32> = dense<[1.0, -1.0]> : tensor<2xf32>
    %w = xf.mul %flat, %sign : tensor<2xf32>, tensor<2xf32>
)"},
      {"r and -r, scaled by one number", R"(
    %r = xf.slice %q from 0 : tensor<2xf32> to tensor<1xf32>
    %n = xf.times %r by -1.0 : tensor<1xf32>
    %o = xf.concat %r, %n : tensor<1xf32>, tensor<1xf32>
    %rows = xf.reshape %o : tensor<2xf32> to tensor<2x1xf32>
    %one = xf.param "one" : tensor<1xf32>
    %each = xf.scale %rows by %one : tensor<2x1xf32>, tensor<1xf32>
    %w = xf.reshape %each : tensor<2x1xf32> to tensor<2xf32>
)"},
  };
  // Weights that are a mixture themselves: all of them vanish where its own weights do.
  auto weighed = [](const std::string &by) {
    return "    %r = xf." + by +
           " %q : tensor<2xf32>\n"
           "    %V = xf.param \"values\" : tensor<4x2x6xf32>\n"
           "    %e = xf.expert_linear %V[%s] * %v : tensor<4x2x6xf32>, tensor<2xi32>, "
           "tensor<6xf32>\n"
           "    %w = xf.combine %r, %e : tensor<2xf32>, tensor<2x2xf32>\n";
  };
  for (const Case &each : cases)
    EXPECT_FALSE(isSuccess(verdictOn(mixture(each.body)))) << each.name;
  EXPECT_FALSE(isSuccess(verdictOn(mixture(weighed("activation relu")))));
  EXPECT_TRUE(isSuccess(verdictOn(mixture(weighed("softmax")))));
  const Case right[] = {
      {"softmax", "    %w = xf.softmax %q : tensor<2xf32>\n"},
      {"logits", "    %w = xf.gather %l[%s] : tensor<4xf32>, tensor<2xi32>\n"},
      {"tanh", "    %w = xf.activation tanh %q : tensor<2xf32>\n"},
  };
  for (const Case &each : right)
    EXPECT_TRUE(isSuccess(verdictOn(mixture(each.body)))) << each.name;
}

} // namespace
