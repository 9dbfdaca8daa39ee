// No plan divides by what the same values make zero: permuted ones, the context's, products of
// parts.
#include "FactorBlock.h"
#include "ctxc/Analysis/Sites.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::test;

namespace {

std::string permuted(const std::string &to, const std::string &x, const char *how) {
  return unary(to, "permute", x, std::string(" parts ") + how);
}

/// What is moved elsewhere meets itself in the entries that stay.
TEST(CancelledSums, OfAPermutationWithWhatItPermutes) {
  const char *some = "[1, 1, 4] by [1, 0, 2]", *all = "[3, 3] by [1, 0]";
  const std::string column = "    %r = xf.reshape %u : tensor<6xf32> to tensor<1x6xf32>\n"
                             "    %t = xf.transpose %r by [1, 0] : tensor<1x6xf32>\n"
                             "    %f = xf.reshape %t : tensor<6x1xf32> to tensor<6xf32>\n";
  const std::string exchanged = "    %r = xf.reshape %u : tensor<6xf32> to tensor<2x3xf32>\n"
                                "    %t = xf.transpose %r by [1, 0] : tensor<2x3xf32>\n"
                                "    %f = xf.reshape %t : tensor<3x2xf32> to tensor<6xf32>\n";
  const Case wrong[] = {
      {"u - u with two entries exchanged", permuted("m", "u", some) + binary("h", "sub", "u", "m")},
      {"u - u in the same order",
       permuted("m", "u", "[2, 4] by [0, 1]") + binary("h", "sub", "m", "u")},
      {"u - u there and back",
       permuted("m", "u", all) + permuted("n", "m", all) + binary("h", "sub", "n", "u")},
      {"u - u as a column", column + binary("h", "sub", "u", "f")},
      {"u - u transposed", exchanged + binary("h", "sub", "u", "f")}, // the first and last entry
      {"relu", unary("r", "activation relu", "u") + permuted("h", "r", all)},
      {"relu transposed", exchanged + unary("h", "activation relu", "f")},
  };
  for (const Case &each : wrong)
    EXPECT_FALSE(isSuccess(verdictOn(withFactor(each.body)))) << each.name;
  const Case right[] = {
      {"g permuted", permuted("h", "g", all)},
      {"u + g permuted", permuted("m", "g", some) + binary("h", "add", "u", "m")},
      {"exp permuted", unary("e", "activation exp", "u") + permuted("h", "e", all)},
      {"g as a column", column + binary("h", "add", "g", "f")},
      {"g + u transposed", exchanged + binary("h", "add", "g", "f")},
  };
  for (const Case &each : right)
    EXPECT_TRUE(isSuccess(verdictOn(withFactor(each.body)))) << each.name;
}

/// Two taps read another token, and a recurrence whose operands change places is another one.
TEST(CancelledSums, OfTheContextIsNotSeenWhereThereIsNone) {
  const Case cases[] = {
      {"two taps", "    %K = xf.param \"conv\" : tensor<6x2xf32>\n"
                   "    %d = xf.conv %K, %x : tensor<6x2xf32>, tensor<6xf32>\n"},
      {"a window of two",
       "    %n = xf.setting \"window\" : index = 2\n"
       "    %q = xf.reshape %x : tensor<6xf32> to tensor<1x6xf32>\n"
       "    %a = xf.attention %q, %q, %q scale 1.0 window %n : tensor<1x6xf32>, tensor<1x6xf32>, "
       "tensor<1x6xf32> -> tensor<1x6xf32>\n"
       "    %d = xf.reshape %a : tensor<1x6xf32> to tensor<6xf32>\n"},
      {"a recurrence minus another",
       unary("s", "activation sigmoid", "x") + binary("a", "scan", "s", "x") +
           binary("b", "scan", "x", "s") + binary("d", "sub", "a", "b")},
      {"a convolution minus its roll",
       "    %K = xf.param \"conv\" : tensor<6x2xf32>\n"
       "    %a = xf.conv %K, %x : tensor<6x2xf32>, tensor<6xf32>\n" +
           permuted("b", "a", "[1, 5] by [1, 0]") + binary("d", "sub", "a", "b")},
      {"a convolution minus itself transposed",
       "    %K = xf.param \"conv\" : tensor<6x2xf32>\n"
       "    %a = xf.conv %K, %x : tensor<6x2xf32>, tensor<6xf32>\n"
       "    %r = xf.reshape %a : tensor<6xf32> to tensor<2x3xf32>\n"
       "    %t = xf.transpose %r by [1, 0] : tensor<2x3xf32>\n"
       "    %b = xf.reshape %t : tensor<3x2xf32> to tensor<6xf32>\n" +
           binary("d", "sub", "a", "b")},
  };
  for (const Case &each : cases)
    EXPECT_FALSE(
        isSuccess(verdictOn("xf.block @b(%x: tensor<6xf32>) -> tensor<6xf32> {\n" + each.body +
                            binary("y", "add", "x", "d") + "    xf.yield %y : tensor<6xf32>\n  }")))
        << each.name;
}

/// Each expert divides by the length of its own row: one of them may be zero alone.
TEST(CancelledSums, OfOneRowIsAConditionOfItsExpert) {
  for (const char *op : {"activation relu", "activation gelu"}) {
    std::string text =
        mixture("    %w = xf.softmax %q : tensor<2xf32>\n    %r = xf." + std::string(op) +
                " %v : tensor<6xf32>\n"
                "    %a = xf.reshape %r : tensor<6xf32> to tensor<1x6xf32>\n"
                "    %b = xf.reshape %v : tensor<6xf32> to tensor<1x6xf32>\n"
                "    %rows = xf.concat %a, %b : tensor<1x6xf32>, tensor<1x6xf32>\n");
    std::string data = "* %v : tensor<4x6x6xf32>, tensor<2xi32>, tensor<6xf32>";
    text.replace(text.find(data), data.size(),
                 "* %rows : tensor<4x6x6xf32>, tensor<2xi32>, tensor<2x6xf32>");
    Blocks blocks(text);
    Verdict verdict = planBlock(blocks.block("b"));
    EXPECT_TRUE(verdict.isSuccess());
    bool found = false;
    for (const PlanObligation &o : verdict.plan.obligations)
      if (Sites::name(o.site) == "down" && o.kind == xf::Obligation::NonzeroVector) {
        found = true;
        EXPECT_EQ(o.likelihood,
                  StringRef(op).ends_with("relu") ? xf::Zeros::OpenSet : xf::Zeros::NullSet);
      }
    EXPECT_TRUE(found);
  }
}

/// Entries of one factor vanish where the other's do not: then all of the product does.
TEST(CancelledSums, OfAProductOfPartsIsACondition) {
  auto zerosOf = [](const std::string &first, const std::string &second) {
    auto factor = [](const std::string &to, const std::string &low, const std::string &high) {
      return "    %" + to + "l = xf.slice %" + to.substr(0, 1) +
             " from 0 : tensor<6xf32> to tensor<3xf32>\n    %" + to + "h = xf.slice %" +
             to.substr(0, 1) + " from 3 : tensor<6xf32> to tensor<3xf32>\n    %" + to + "a = xf." +
             low + " %" + to + "l : tensor<3xf32>\n    %" + to + "b = xf." + high + " %" + to +
             "h : tensor<3xf32>\n    %" + to + "f = xf.concat %" + to + "a, %" + to +
             "b : tensor<3xf32>, tensor<3xf32>\n";
    };
    Blocks blocks(R"(xf.block @b(%x: tensor<6xf32>) -> tensor<6xf32> {
    %K = xf.param "conv" : tensor<6x3xf32>
    %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
    %v = xf.add %x, %c : tensor<6xf32>
    %U = xf.param "up" : tensor<6x6xf32>
    %u = xf.linear %U * %v : tensor<6x6xf32>, tensor<6xf32>
    %G = xf.param "gate" : tensor<6x6xf32>
    %g = xf.linear %G * %v : tensor<6x6xf32>, tensor<6xf32>
)" + factor("u", first, second) +
                  factor("g", second, first) + R"(
    %p = xf.mul %uf, %gf : tensor<6xf32>, tensor<6xf32>
    %D = xf.param "down" : tensor<6x6xf32>
    %d = xf.linear %D * %p : tensor<6x6xf32>, tensor<6xf32>
    %y = xf.add %v, %d : tensor<6xf32>
    xf.yield %y : tensor<6xf32>
  })");
    Verdict verdict = planBlock(blocks.block("b"));
    EXPECT_TRUE(verdict.isSuccess());
    for (const PlanObligation &o : verdict.plan.obligations)
      if (Sites::name(o.site) == "down")
        return o.likelihood;
    ADD_FAILURE() << "the outer matrix is not patched";
    return xf::Zeros::Never;
  };
  EXPECT_EQ(zerosOf("activation relu", "activation gelu"), xf::Zeros::OpenSet);
  EXPECT_EQ(zerosOf("activation gelu", "activation gelu"), xf::Zeros::NullSet);
}

/// A model with two layers of `block`; the second has `settings`.
std::string twoLayers(const std::string &block, const std::string &settings) {
  return block + R"(
  xf.model @m {
    %id = xf.token : tensor<i32>
    %E = xf.param "embed" : tensor<11x6xf32>
    %e = xf.embed %E[%id] : tensor<11x6xf32>, tensor<i32>
    %x1 = xf.layer @b(%e) at "l.0." : (tensor<6xf32>) -> tensor<6xf32>
    %x2 = xf.layer @b(%x1) at "l.1." )" +
         settings + R"( : (tensor<6xf32>) -> tensor<6xf32>
    %y = xf.linear %E * %x2 : tensor<11x6xf32>, tensor<6xf32>
    xf.yield %y : tensor<11xf32>
  })";
}

TEST(CancelledSums, OfOneLayerIsThatLayersVerdict) {
  std::string block = withFactor(setting("h", "1.0"));
  Blocks blocks(twoLayers(block, "settings {h = dense<0.0> : tensor<6xf32>}"));
  auto groups = groupVerdicts(checkModel(*blocks.module));
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_TRUE(groups[0].verdict->isSuccess());
  EXPECT_FALSE(groups[1].verdict->isSuccess());
  EXPECT_EQ(groups[1].layers, (SmallVector<unsigned>{1}));
  // Layers whose verdict does not depend on the settings stay in one group.
  Blocks alike(twoLayers(withFactor(unary("h", "activation gelu", "u")),
                         "settings {ones = dense<0.0> : tensor<6xf32>}"));
  EXPECT_EQ(groupVerdicts(checkModel(*alike.module)).size(), 1u);
}

} // namespace
