// Every op of xf that is a function of its token, compared with a formula written out here, with
// odd sizes, for one token and for three.
#include "Fixture.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

namespace ctxc::reference {
namespace {

class TokenOpsTest : public ReferenceTest {
protected:
  /// Checks an op with one operand of type tensor<2x5xf32> that applies `f` elementwise.
  void expectElementwise(llvm::StringRef op, double (*f)(double)) {
    std::string text = llvm::formatv("xf.block @b(%x: tensor<2x5xf32>) -> tensor<2x5xf32> {{\n"
                                     "  %y = {0} : tensor<2x5xf32>\n"
                                     "  xf.yield %y : tensor<2x5xf32>\n}",
                                     op);
    for (int64_t tokens : {1, 3}) {
      Matrix x = 2 * noise(tokens, 10);
      x(0, 3) = 0;
      Matrix expected = x;
      for (double &number : llvm::MutableArrayRef(expected.data(), expected.size()))
        number = f(number);
      SCOPED_TRACE(text);
      expectNear(runOne(text, {x}), expected);
    }
  }

  /// Checks an op with two operands.
  void expectBinary(llvm::StringRef op, llvm::StringRef rhsType, double (*f)(double, double)) {
    std::string text = llvm::formatv("xf.block @b(%x: tensor<2x5xf32>, %y: {1})"
                                     " -> tensor<2x5xf32> {{\n"
                                     "  %z = {0}\n  xf.yield %z : tensor<2x5xf32>\n}",
                                     op, rhsType);
    bool one = rhsType == "tensor<1xf32>";
    for (int64_t tokens : {1, 3}) {
      Matrix x = noise(tokens, 10), y = noise(tokens, one ? 1 : 10), expected = x;
      y(0, 0) = 0;
      for (int64_t t = 0; t < tokens; ++t)
        for (int64_t i = 0; i < 10; ++i)
          expected(t, i) = f(x(t, i), y(t, one ? 0 : i));
      SCOPED_TRACE(text);
      expectNear(runOne(text, {x, y}), expected);
    }
  }
};

TEST_F(TokenOpsTest, Activations) {
  expectElementwise("xf.activation gelu %x",
                    [](double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); });
  expectElementwise("xf.activation gelu_tanh %x", [](double x) {
    return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * std::pow(x, 3))));
  });
  expectElementwise("xf.activation silu %x", [](double x) { return x / (1 + std::exp(-x)); });
  expectElementwise("xf.activation relu %x", [](double x) { return x < 0 ? 0 : x; });
  expectElementwise("xf.activation relu2 %x", [](double x) { return x < 0 ? 0 : x * x; });
  expectElementwise("xf.activation sigmoid %x",
                    [](double x) { return 0.5 + 0.5 * std::tanh(x / 2); });
  expectElementwise("xf.activation tanh %x",
                    [](double x) { return (std::exp(2 * x) - 1) / (std::exp(2 * x) + 1); });
  expectElementwise("xf.activation quick_gelu %x",
                    [](double x) { return x / (1 + std::exp(-1.702 * x)); });
  expectElementwise("xf.activation exp %x", [](double x) { return std::exp(x); });
  expectElementwise("xf.activation softplus %x",
                    [](double x) { return std::log(1 + std::exp(x)); });
  expectElementwise("xf.activation abs %x", [](double x) { return x < 0 ? -x : x; });
  expectElementwise("xf.activation sqrt %x", [](double x) { return x < 0 ? 0 : std::sqrt(x); });
  expectElementwise("xf.activation log %x",
                    [](double x) { return x > 0 ? std::log(x) : -126 * std::log(2.0); });
}

TEST_F(TokenOpsTest, ActivationsStayFiniteFarOut) {
  for (const char *kind : {"gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "quick_gelu", "softplus",
                           "abs", "sqrt", "log"})
    for (double x : {-1e4, 1e4}) {
      std::string text = llvm::formatv("xf.block @b(%x: tensor<1xf32>) -> tensor<1xf32> {{\n"
                                       "  %y = xf.activation {0} %x : tensor<1xf32>\n"
                                       "  xf.yield %y : tensor<1xf32>\n}",
                                       kind);
      EXPECT_TRUE(std::isfinite(runOne(text, {Matrix::Constant(1, 1, x)})(0, 0))) << kind;
    }
}

TEST_F(TokenOpsTest, ConstantsAreTheAttributesFloats) {
  expectElementwise("xf.times %x by 0.1", [](double x) { return double(0.1f) * x; });
  expectElementwise("xf.clamp %x to 0.3", [](double x) {
    return x > double(0.3f) ? double(0.3f) : x < -double(0.3f) ? -double(0.3f) : x;
  });
  expectElementwise("xf.clamp %x to 0.3 above",
                    [](double x) { return x > double(0.3f) ? double(0.3f) : x; });
  expectElementwise("xf.softcap %x at 0.3",
                    [](double x) { return double(0.3f) * std::tanh(x / double(0.3f)); });
  expectElementwise("xf.leaky %x by 0.3", [](double x) { return x > 0 ? x : double(0.3f) * x; });
  expectElementwise("xf.power %x to 2", [](double x) { return x * std::abs(x); });
  expectElementwise("xf.power %x to 3", [](double x) { return x * x * x; });
  expectElementwise("xf.power %x to 3 root", [](double x) { return std::cbrt(x); });
}

TEST_F(TokenOpsTest, SumsAndProducts) {
  const char *same = "tensor<2x5xf32>", *one = "tensor<1xf32>";
  expectBinary("xf.add %x, %y : tensor<2x5xf32>", same, [](double a, double b) { return a + b; });
  expectBinary("xf.sub %x, %y : tensor<2x5xf32>", same, [](double a, double b) { return a - b; });
  expectBinary("xf.mul %x, %y : tensor<2x5xf32>, tensor<2x5xf32>", same,
               [](double a, double b) { return a * b; });
  expectBinary("xf.mul %x, %y : tensor<2x5xf32>, tensor<1xf32>", one,
               [](double a, double b) { return a * b; });
  auto divide = [](double a, double b) { return a / (b == 0 ? 1 : b); };
  expectBinary("xf.div %x, %y : tensor<2x5xf32>, tensor<2x5xf32>", same, divide);
  expectBinary("xf.div %x, %y : tensor<2x5xf32>, tensor<1xf32>", one, divide);
}

TEST_F(TokenOpsTest, NormsAndSoftmaxGoAlongTheLastDimension) {
  for (const char *op : {"normalize rms %x eps 0.25", "normalize layer %x eps 0.25",
                         "normalize l2 %x eps 0.25", "softmax %x"})
    for (int64_t tokens : {1, 3}) {
      std::string text = llvm::formatv("xf.block @b(%x: tensor<2x5xf32>) -> tensor<2x5xf32> {{\n"
                                       "  %y = xf.{0} : tensor<2x5xf32>\n"
                                       "  xf.yield %y : tensor<2x5xf32>\n}",
                                       op);
      Matrix x = noise(tokens, 10), expected = x;
      for (int64_t t = 0; t < tokens; ++t)
        for (int64_t head = 0; head < 2; ++head) {
          double sum = 0, squares = 0, exponentials = 0;
          for (int64_t i = 0; i < 5; ++i) {
            double v = x(t, 5 * head + i);
            sum += v, squares += v * v, exponentials += std::exp(v);
          }
          for (int64_t i = 0; i < 5; ++i) {
            double v = x(t, 5 * head + i), mean = sum / 5;
            llvm::StringRef name(op);
            expected(t, 5 * head + i) =
                name.contains("rms")     ? v / std::sqrt(squares / 5 + 0.25)
                : name.contains("layer") ? (v - mean) / std::sqrt(squares / 5 - mean * mean + 0.25)
                : name.contains("l2")    ? v / std::sqrt(squares + 0.25)
                                         : std::exp(v) / exponentials;
          }
        }
      SCOPED_TRACE(text);
      expectNear(runOne(text, {x}), expected);
    }
}

TEST_F(TokenOpsTest, SoftmaxOfLargeNumbers) {
  Matrix y = runOne("xf.block @b(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                    "  %y = xf.softmax %x : tensor<2xf32>\n  xf.yield %y : tensor<2xf32>\n}",
                    {Matrix::Constant(1, 2, 1e6)});
  expectNear(y, Matrix::Constant(1, 2, 0.5));
}

TEST_F(TokenOpsTest, Shapes) {
  const char *text = R"(
  xf.block @b(%x: tensor<3x2xf32>, %y: tensor<1x2xf32>) -> (tensor<4xf32>, tensor<4x2xf32>) {
    %s = xf.slice %x from 1 : tensor<3x2xf32> to tensor<2x2xf32>
    %r = xf.reshape %s : tensor<2x2xf32> to tensor<4xf32>
    %c = xf.concat %x, %y : tensor<3x2xf32>, tensor<1x2xf32>
    xf.yield %r, %c : tensor<4xf32>, tensor<4x2xf32>
  })";
  Matrix x = noise(3, 6), y = noise(3, 2);
  auto outputs = run(text, {x, y});
  ASSERT_TRUE(bool(outputs));
  for (int64_t t = 0; t < 3; ++t) {
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_EQ((*outputs)[0](t, i), x(t, 2 + i));
    for (int64_t i = 0; i < 8; ++i)
      EXPECT_EQ((*outputs)[1](t, i), i < 6 ? x(t, i) : y(t, i - 6));
  }
}

TEST_F(TokenOpsTest, TransposeExchangesDimensions) {
  const char *text = R"(
  xf.block @b(%x: tensor<2x3x4xf32>) -> (tensor<4x2x3xf32>, tensor<3x2x4xf32>) {
    %a = xf.transpose %x by [2, 0, 1] : tensor<2x3x4xf32>
    %b = xf.transpose %x by [1, 0, 2] : tensor<2x3x4xf32>
    xf.yield %a, %b : tensor<4x2x3xf32>, tensor<3x2x4xf32>
  })";
  Matrix x = noise(3, 24);
  auto outputs = run(text, {x});
  ASSERT_TRUE(bool(outputs));
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 3; ++j)
        for (int64_t k = 0; k < 4; ++k) {
          EXPECT_EQ((*outputs)[0](t, (k * 2 + i) * 3 + j), x(t, (i * 3 + j) * 4 + k));
          EXPECT_EQ((*outputs)[1](t, (j * 2 + i) * 4 + k), x(t, (i * 3 + j) * 4 + k));
        }
}

/// A permutation is the concatenation of its slices.
TEST_F(TokenOpsTest, PermuteOrdersParts) {
  for (const char *types : {"6x2", "2x6"}) {
    bool isFirst = types[0] == '6';
    std::string along = isFirst ? "" : " along 1", of = std::string("tensor<") + types + "xf32>";
    auto part = [&](int64_t size) {
      return "tensor<" + (isFirst ? std::to_string(size) + "x2" : "2x" + std::to_string(size)) +
             "xf32>";
    };
    std::string text = "xf.block @b(%x: " + of + ") -> (" + of + ", " + of + ") {\n" +
                       "  %p = xf.permute %x parts [1, 2, 3] by [2, 0, 1]" + along + " : " + of +
                       "\n  %a = xf.slice %x from 0" + along + " : " + of + " to " + part(1) +
                       "\n  %b = xf.slice %x from 1" + along + " : " + of + " to " + part(2) +
                       "\n  %c = xf.slice %x from 3" + along + " : " + of + " to " + part(3) +
                       "\n  %q = xf.concat %c, %a, %b" + along + " : " + part(3) + ", " + part(1) +
                       ", " + part(2) + "\n  xf.yield %p, %q : " + of + ", " + of + "\n}";
    auto outputs = run(text, {noise(3, 12)});
    ASSERT_TRUE(bool(outputs)) << text;
    EXPECT_EQ((*outputs)[0], (*outputs)[1]) << text;
  }
}

TEST_F(TokenOpsTest, RotaryPairsByStyle) {
  for (bool half : {true, false}) {
    std::string text = llvm::formatv(R"(xf.block @b(%x: tensor<2x7xf32>) -> tensor<2x7xf32> {{
      %f = xf.setting "f" : tensor<3xf32> = #xf.rope<base = 100.0, dims = 6, linear = 2.0>
      %y = xf.rotary {0} %x by %f : tensor<2x7xf32>, tensor<3xf32>
      xf.yield %y : tensor<2x7xf32>
    })",
                                     half ? "half" : "interleaved");
    Matrix x = noise(3, 14), expected = x;
    for (int64_t t = 0; t < 3; ++t)
      for (int64_t head = 0; head < 2; ++head)
        for (int64_t i = 0; i < 3; ++i) {
          double angle = t * std::pow(100.0, -i / 3.0) / 2;
          int64_t a = 7 * head + (half ? i : 2 * i), b = 7 * head + (half ? i + 3 : 2 * i + 1);
          expected(t, a) = x(t, a) * std::cos(angle) - x(t, b) * std::sin(angle);
          expected(t, b) = x(t, a) * std::sin(angle) + x(t, b) * std::cos(angle);
        }
    expectNear(runOne(text, {x}), expected);
  }
}

TEST_F(TokenOpsTest, RotaryByYarnWithAnAmplitude) {
  // With original context 64 and base 100, index i makes 64 · 100^(-i/4) / 2π turns: 10.2, 3.2,
  // 1.02 and 0.32. 4 turns and 1 turn are at the indices 0.81 and 2.02; rounded outwards, 0 and 3.
  for (bool truncate : {true, false}) {
    double from = truncate ? 0 : 4 * std::log(64 / (4 * 2 * M_PI)) / std::log(100.0);
    double to = truncate ? 3 : 4 * std::log(64 / (2 * M_PI)) / std::log(100.0);
    std::string text = llvm::formatv(R"(xf.block @b(%x: tensor<2x9xf32>) -> tensor<2x9xf32> {{
      %f = xf.setting "f" : tensor<4xf32> = #xf.rope<base = 100.0, dims = 8, yarn = [8.0, 4.0, 1.0, 64.0, {0}.0]>
      %y = xf.rotary half %x by %f amplitude 1.5 : tensor<2x9xf32>, tensor<4xf32>
      xf.yield %y : tensor<2x9xf32>
    })",
                                     int(truncate));
    Matrix x = noise(3, 18), expected = x;
    for (int64_t t = 0; t < 3; ++t)
      for (int64_t head = 0; head < 2; ++head)
        for (int64_t i = 0; i < 4; ++i) {
          double share = std::min(std::max((i - from) / (to - from), 0.0), 1.0);
          double angle = t * std::pow(100.0, -i / 4.0) * (share / 8 + 1 - share);
          int64_t a = 9 * head + i, b = 9 * head + i + 4;
          expected(t, a) = 1.5 * (x(t, a) * std::cos(angle) - x(t, b) * std::sin(angle));
          expected(t, b) = 1.5 * (x(t, a) * std::sin(angle) + x(t, b) * std::cos(angle));
        }
    expectNear(runOne(text, {x}), expected);
  }
}

TEST_F(TokenOpsTest, ConcatAndBroadcast) {
  const char *text = R"(xf.block @b(%x: tensor<2x3xf32>, %y: tensor<1x2xf32>) -> tensor<2x5xf32> {
    %b = xf.broadcast %y : tensor<1x2xf32> to tensor<2x2xf32>
    %c = xf.concat %x, %b along 1 : tensor<2x3xf32>, tensor<2x2xf32>
    xf.yield %c : tensor<2x5xf32>
  })";
  Matrix x = noise(3, 6), y = noise(3, 2), expected(3, 10);
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t i = 0; i < 10; ++i)
      expected(t, i) = i % 5 < 3 ? x(t, i / 5 * 3 + i % 5) : y(t, i % 5 - 3);
  expectNear(runOne(text, {x, y}), expected, 0);
}

TEST_F(TokenOpsTest, TheTokenAndItsRow) {
  const char *text = R"(xf.block @b(%x: tensor<1xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %E = xf.param "E" : tensor<3x4xbf16>
    %t = xf.token : tensor<i32>
    %p = xf.position : tensor<i32>
    %e = xf.embed %E[%t] : tensor<3x4xbf16>, tensor<i32>
    %q = xf.embed %E[%p] : tensor<3x4xbf16>, tensor<i32>
    xf.yield %e, %q : tensor<4xf32>, tensor<4xf32>
  })";
  auto outputs = run(text, {noise(3, 1)});
  ASSERT_TRUE(bool(outputs));
  for (int64_t i = 0; i < 12; ++i) {
    EXPECT_EQ((*outputs)[0].data()[i], weights.numbers("E")[i]);
    EXPECT_EQ((*outputs)[1].data()[i], weights.numbers("E")[i]);
  }
  EXPECT_EQ(messageOf(run(text, {noise(4, 1)})),
            "test.mlir:5:10: 'xf.embed' op is given the id 3; the table has 3 rows");
}

TEST_F(TokenOpsTest, ThePositionAsANumber) {
  const char *text = R"(xf.block @b(%x: tensor<1xf32>) -> (tensor<1xf32>, tensor<1xf32>) {
    %p = xf.position : tensor<1xf32>
    %q = xf.position plus 1 over 3 : tensor<1xf32>
    xf.yield %p, %q : tensor<1xf32>, tensor<1xf32>
  })";
  auto outputs = run(text, {noise(7, 1)});
  ASSERT_TRUE(bool(outputs));
  for (int64_t i = 0; i < 7; ++i) {
    EXPECT_EQ((*outputs)[0].data()[i], double(i));
    EXPECT_EQ((*outputs)[1].data()[i], std::floor(double(i + 1) / 3));
  }
}

TEST_F(TokenOpsTest, LinearOfEveryStorageTypeAndOrientation) {
  for (const char *type : {"f32", "bf16", "f16"})
    for (bool transposed : {false, true})
      for (int64_t tokens : {1, 3}) {
        // More rows than are widened at a time.
        std::string shape = (transposed ? "67x70x" : "70x67x") + std::string(type);
        std::string text = llvm::formatv(R"(xf.block @b(%x: tensor<2x67xf32>) -> tensor<2x70xf32> {{
          %W = xf.param "W{0}{1}" : tensor<{1}>
          %y = xf.linear %W * %x {2} : tensor<{1}>, tensor<2x67xf32>
          xf.yield %y : tensor<2x70xf32>
        })",
                                         type, shape, transposed ? "transposed" : "");
        Matrix x = noise(tokens, 134), y = runOne(text, {x}), expected = Matrix::Zero(tokens, 140);
        const std::vector<double> &w = weights.numbers("W" + std::string(type) + shape);
        for (int64_t t = 0; t < tokens; ++t)
          for (int64_t head = 0; head < 2; ++head)
            for (int64_t o = 0; o < 70; ++o)
              for (int64_t i = 0; i < 67; ++i)
                expected(t, 70 * head + o) +=
                    w[transposed ? i * 70 + o : o * 67 + i] * x(t, 67 * head + i);
        expectNear(y, expected);
      }
}

TEST_F(TokenOpsTest, BiasAndScaleAreSharedByLeadingDimensions) {
  const char *text = R"(xf.block @b(%x: tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
    %b = xf.param "b" : tensor<3x5xf32>
    %m = xf.param "m" : tensor<5xbf16>
    %y = xf.bias %x + %b : tensor<2x3x5xf32>, tensor<3x5xf32>
    %z = xf.scale %y by %m offset 1.0 : tensor<2x3x5xf32>, tensor<5xbf16>
    xf.yield %z : tensor<2x3x5xf32>
  })";
  for (int64_t tokens : {1, 3}) {
    Matrix x = noise(tokens, 30), z = runOne(text, {x}), expected = x;
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t i = 0; i < 30; ++i)
        expected(t, i) =
            (x(t, i) + weights.numbers("b")[i % 15]) * (1 + weights.numbers("m")[i % 5]);
    expectNear(z, expected);
  }
}

TEST_F(TokenOpsTest, AParameterIsAValueToo) {
  const char *text = R"(xf.block @b(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %p = xf.param "p" : tensor<2xf32>
    %n = xf.softmax %p : tensor<2xf32>
    %y = xf.add %x, %p : tensor<2xf32>
    xf.yield %y, %p : tensor<2xf32>, tensor<2xf32>
  })";
  Matrix x = noise(3, 2);
  auto outputs = run(text, {x});
  ASSERT_TRUE(bool(outputs));
  Matrix p = Eigen::Map<const Matrix>(weights.numbers("p").data(), 1, 2).replicate(3, 1);
  EXPECT_EQ((*outputs)[0], x + p);
  EXPECT_EQ((*outputs)[1], p);
}

TEST_F(TokenOpsTest, VectorsOfOneEntry) {
  Matrix one = runOne("xf.block @b(%x: tensor<1xf32>) -> tensor<1xf32> {\n"
                      "  %y = xf.softmax %x : tensor<1xf32>\n  xf.yield %y : tensor<1xf32>\n}",
                      {noise(3, 1)});
  expectNear(one, Matrix::Ones(3, 1));
}

TEST_F(TokenOpsTest, WrongInputsAreErrors) {
  const char *text = "xf.block @b(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                     "  %w = xf.param \"w\" : tensor<2xf32>\n"
                     "  %y = xf.bias %x + %w : tensor<2xf32>, tensor<2xf32>\n"
                     "  xf.yield %y : tensor<2xf32>\n}";
  EXPECT_EQ(messageOf(run(text, {noise(1, 3)})),
            "test.mlir:1:1: 'xf.block' op is given an input of 1×3 numbers, expected 1×2");
  EXPECT_EQ(messageOf(run(text, {noise(0, 2)})), "test.mlir:1:1: 'xf.block' op is given no token");
  weights.missing = "w";
  EXPECT_EQ(messageOf(run(text, {noise(1, 2)})), "w: no such tensor");
}

} // namespace
} // namespace ctxc::reference
