// Blocks whose output has a factor that may be zero.
#ifndef CTXC_TEST_UNIT_PLANNING_FACTORBLOCK_H
#define CTXC_TEST_UNIT_PLANNING_FACTORBLOCK_H

#include "../Transforms/Blocks.h"
#include "ctxc/Planning/ModelCheck.h"

namespace ctxc::test {

constexpr const char *six = "tensor<6xf32>";

/// A block with the output v + (down h') ⊙ h, where `body` computes h from u, g and v.
inline std::string withFactor(const std::string &body) {
  return R"(xf.block @b(%x: tensor<6xf32>) -> tensor<6xf32> {
    %K = xf.param "conv" : tensor<6x3xf32>
    %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
    %v = xf.add %x, %c : tensor<6xf32>
    %U = xf.param "up" : tensor<6x6xf32>
    %u = xf.linear %U * %v : tensor<6x6xf32>, tensor<6xf32>
    %G = xf.param "gate" : tensor<6x6xf32>
    %g = xf.linear %G * %v : tensor<6x6xf32>, tensor<6xf32>
    %one = xf.setting "ones" : tensor<6xf32> = dense<1.0> : tensor<6xf32>
)" + body +
         R"(
    %D = xf.param "down" : tensor<6x6xf32>
    %d = xf.linear %D * %v : tensor<6x6xf32>, tensor<6xf32>
    %p = xf.mul %d, %h : tensor<6xf32>, tensor<6xf32>
    %y = xf.add %v, %p : tensor<6xf32>
    xf.yield %y : tensor<6xf32>
  })";
}

inline std::string unary(const std::string &to, const std::string &op, const std::string &x,
                         const std::string &rest = "") {
  return "    %" + to + " = xf." + op + " %" + x + rest + " : " + six + "\n";
}
inline std::string binary(const std::string &to, const std::string &op, const std::string &a,
                          const std::string &b) {
  std::string type = op == "mul" || op == "div" ? std::string(six) + ", " + six : six;
  return "    %" + to + " = xf." + op + " %" + a + ", %" + b + " : " + type + "\n";
}
/// Reshapes to six rows of one entry each.
inline std::string inRows(const std::string &op) {
  return "    %rows = xf.reshape %u : tensor<6xf32> to tensor<6x1xf32>\n    %each = xf." + op +
         " : tensor<6x1xf32>\n    %flat = xf.reshape %each : tensor<6x1xf32> to tensor<6xf32>\n";
}
inline std::string setting(const std::string &to, const std::string &value,
                           const char *type = six) {
  return "    %" + to + " = xf.setting \"" + to + "\" : " + type + " = dense<" + value +
         "> : " + type + "\n";
}
inline std::string times(const std::string &to, const std::string &x, const std::string &by) {
  return unary(to, "times", x, " by " + by);
}

/// A convolution of u through `op`, with weights of its own or those of `weights`.
inline std::string convolved(const std::string &op, const std::string &rest = "",
                             const std::string &weights = "conv2") {
  return unary("r", op, "u", rest) + "    %k2 = xf.param \"" + weights +
         "\" : tensor<6x3xf32>\n"
         "    %h = xf.conv %k2, %r : tensor<6x3xf32>, tensor<6xf32>\n";
}
/// A recurrence whose gate is g through `gate`, and whose input is u through `input`.
inline std::string recurrence(const std::string &gate, const std::string &input) {
  return unary("a", gate, "g") + unary("b", input, "u") + binary("h", "scan", "a", "b");
}

/// What two selected experts make of a vector each: of three entries of u, through `op`, and of g.
inline std::string ofExperts(const std::string &op) {
  return "    %u3 = xf.slice %u from 0 : tensor<6xf32> to tensor<3xf32>\n"
         "    %g3 = xf.slice %g from 0 : tensor<6xf32> to tensor<3xf32>\n    %r3 = xf." +
         op +
         " %u3 : tensor<3xf32>\n"
         "    %a3 = xf.reshape %r3 : tensor<3xf32> to tensor<1x3xf32>\n"
         "    %b3 = xf.reshape %g3 : tensor<3xf32> to tensor<1x3xf32>\n"
         "    %both = xf.concat %a3, %b3 : tensor<1x3xf32>, tensor<1x3xf32>\n"
         "    %s = xf.top_k %u k 2 : tensor<6xf32>\n"
         "    %V = xf.param \"experts\" frozen : tensor<6x3x3xf32>\n"
         "    %e = xf.expert_linear %V[%s] * %both : tensor<6x3x3xf32>, tensor<2xi32>, "
         "tensor<2x3xf32>\n"
         "    %h = xf.reshape %e : tensor<2x3xf32> to tensor<6xf32>\n";
}

struct Case {
  const char *name;
  std::string body;
};

inline VerdictKind verdictOn(const std::string &text, const std::string &name = "b") {
  Blocks blocks(text);
  EXPECT_TRUE(bool(blocks.module)) << text;
  return blocks.module ? planBlock(blocks.block(name)).kind : VerdictKind::Undecided;
}

inline bool isSuccess(VerdictKind kind) {
  return kind == VerdictKind::Controllable || kind == VerdictKind::OutputOnly;
}

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_PLANNING_FACTORBLOCK_H
