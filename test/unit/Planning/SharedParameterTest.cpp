// A parameter, or a change, that several vectors share has several outputs to give, and one patch.
#include "../Transforms/Blocks.h"
#include "ctxc/Planning/Planner.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::test;

static bool hasPlan(const std::string &text) {
  Blocks blocks(text);
  EXPECT_TRUE(bool(blocks.module)) << text;
  return blocks.module && planBlock(blocks.block("b")).isSuccess();
}

/// How rows share a change is chosen from what they are: two matrices that are patched one after
/// the other would share what is left each time.
TEST(SharedParameter, OfRowsThatArePatchedApartHasNoPlan) {
  auto rows = [](const char *last) {
    return R"(xf.block @b(%x: tensor<6xf32>) -> tensor<6xf32> {
    %K = xf.param "conv" : tensor<6x3xf32>
    %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
    %v = xf.add %x, %c : tensor<6xf32>
    %A = xf.param "a" : tensor<6x6xf32>
    %a = xf.linear %A * %v : tensor<6x6xf32>, tensor<6xf32>
    %B = xf.param "b" : tensor<6x6xf32>
    %b = xf.linear %B * %v : tensor<6x6xf32>, tensor<6xf32>
    %r = xf.reshape %a : tensor<6xf32> to tensor<1x6xf32>
    %s = xf.reshape %b : tensor<6xf32> to tensor<1x6xf32>
    %rows = xf.concat %r, %s : tensor<1x6xf32>, tensor<1x6xf32>
    %w = xf.setting "weights" : tensor<2xf32> = dense<0.5> : tensor<2xf32>
)" + std::string(last) +
           R"(
    %y = xf.add %v, %m : tensor<6xf32>
    xf.yield %y : tensor<6xf32>
  })";
  };
  EXPECT_FALSE(hasPlan(rows("    %m = xf.combine %w, %rows : tensor<2xf32>, tensor<2x6xf32>")));
  EXPECT_TRUE(hasPlan(rows("    %m = xf.add %a, %b : tensor<6xf32>")));
}

/// A matrix or a bias that two vectors share has two outputs to give.
TEST(SharedParameter, OfSeveralVectorsHasNoPlan) {
  auto isPlanned = [](const std::string &rows, const std::string &op) {
    return hasPlan("xf.block @b(%x: tensor<6xf32>) -> tensor<6xf32> {\n"
                   "    %K = xf.param \"conv\" : tensor<6x3xf32>\n"
                   "    %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>\n"
                   "    %v = xf.add %x, %c : tensor<6xf32>\n"
                   "    %r = xf.reshape %v : tensor<6xf32> to " +
                   rows + "\n" + op + "    %f = xf.reshape %e : " + rows + " to tensor<6xf32>\n" +
                   "    %y = xf.add %v, %f : tensor<6xf32>\n    xf.yield %y : tensor<6xf32>\n  }");
  };
  auto matrix = [](const std::string &size, const std::string &rows) {
    std::string type = "tensor<" + size + "x" + size + "xf32>";
    return "    %D = xf.param \"down\" : " + type + "\n    %e = xf.linear %D * %r : " + type +
           ", " + rows + "\n";
  };
  auto bias = [](const std::string &type) {
    return "    %B = xf.param \"bias\" : " + type +
           "\n    %e = xf.bias %r + %B : tensor<2x3xf32>, " + type + "\n";
  };
  std::string one = "tensor<1x6xf32>", two = "tensor<2x3xf32>";
  EXPECT_TRUE(isPlanned(one, matrix("6", one)));
  EXPECT_FALSE(isPlanned(two, matrix("3", two)));
  EXPECT_TRUE(isPlanned(two, bias(two)));
  EXPECT_FALSE(isPlanned(two, bias("tensor<3xf32>")));
}

/// What a block is given may name an expert twice, whose matrix then has two outputs to give.
TEST(SharedParameter, OfAnExpertThatIsNamedTwiceHasNoPlan) {
  auto isPlanned = [](const std::string &arguments, const std::string &selection) {
    return hasPlan("xf.block @b(%x: tensor<6xf32>" + arguments + R"() -> tensor<6xf32> {
    %K = xf.param "conv" : tensor<6x3xf32>
    %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
    %v = xf.add %x, %c : tensor<6xf32>
    %w = xf.setting "weights" : tensor<2xf32> = dense<0.5> : tensor<2xf32>
)" + selection + R"(
    %D = xf.param "down" : tensor<4x6x6xf32>
    %e = xf.expert_linear %D[%s] * %v : tensor<4x6x6xf32>, tensor<2xi32>, tensor<6xf32>
    %m = xf.combine %w, %e : tensor<2xf32>, tensor<2x6xf32>
    %y = xf.add %v, %m : tensor<6xf32>
    xf.yield %y : tensor<6xf32>
  })");
  };
  EXPECT_FALSE(isPlanned(", %s: tensor<2xi32>", ""));
  EXPECT_TRUE(isPlanned("", "    %R = xf.param \"router\" : tensor<4x6xf32>\n"
                            "    %l = xf.linear %R * %v : tensor<4x6xf32>, tensor<6xf32>\n"
                            "    %s = xf.top_k %l k 2 : tensor<4xf32>\n"));
}
