// Ops that read earlier tokens: compared with formulas over the whole sequence, and step by step
// with all tokens at once.
#include "Fixture.h"
#include <cmath>

namespace ctxc::reference {
namespace {

class ContextualOpsTest : public ReferenceTest {
protected:
  /// Evaluates `text` in steps of the given sizes, and returns all outputs.
  Matrix inSteps(llvm::StringRef text, llvm::ArrayRef<Matrix> inputs,
                 llvm::ArrayRef<int64_t> positions, llvm::ArrayRef<int64_t> steps) {
    xf::BlockOp b = block(parse(text));
    BlockState state;
    Matrix result;
    int64_t at = 0;
    for (int64_t size : steps) {
      llvm::SmallVector<Matrix> rows;
      for (const Matrix &input : inputs)
        rows.push_back(input.middleRows(at, size));
      llvm::ArrayRef<int64_t> where = positions.slice(at, size);
      Environment environment{weights, nullptr, where, where, {{std::nullopt, &state}}};
      Evaluation evaluation(environment);
      auto outputs = evaluateBlock(b, rows, evaluation);
      if (!outputs) {
        ADD_FAILURE() << llvm::toString(outputs.takeError());
        return result;
      }
      result.conservativeResize(at + size, outputs->front().cols());
      result.bottomRows(size) = outputs->front();
      at += size;
    }
    return result;
  }
};

constexpr const char *attention = R"(
xf.block @b(%q: tensor<6x3xf32>, %k: tensor<2x3xf32>, %v: tensor<2x5xf32>) -> tensor<6x5xf32> {
  %w = xf.setting "window" : index = 4
  %y = xf.attention %q, %k, %v scale 0.5 window %w : tensor<6x3xf32>, tensor<2x3xf32>, tensor<2x5xf32> -> tensor<6x5xf32>
  xf.yield %y : tensor<6x5xf32>
})";

TEST_F(ContextualOpsTest, AttentionOverVisiblePositions) {
  for (auto [window, cap] : {std::pair(4, 0.0), {0, 0.0}, {4, 0.25}, {0, 1.5}}) {
    std::string text = attention;
    text.replace(text.find("= 4"), 3, "= " + std::to_string(window));
    if (cap)
      text.replace(text.find(" window %w"), 0, " softcap " + std::to_string(cap));
    std::vector<int64_t> positions = {1, 2, 5, 6, 9};
    Matrix q = noise(5, 18), k = noise(5, 6), v = noise(5, 10);
    Matrix expected = Matrix::Zero(5, 30);
    for (int64_t t = 0; t < 5; ++t)
      for (int64_t h = 0; h < 6; ++h) {
        int64_t g = h / 3; // three query heads read each key head
        std::vector<double> weight(5, 0);
        double sum = 0;
        for (int64_t j = 0; j <= t; ++j) {
          if (window && positions[t] - positions[j] >= window)
            continue;
          double score = 0;
          for (int64_t i = 0; i < 3; ++i)
            score += 0.5 * q(t, 3 * h + i) * k(j, 3 * g + i);
          if (cap)
            score = cap * std::tanh(score / cap);
          sum += weight[j] = std::exp(score);
        }
        for (int64_t j = 0; j <= t; ++j)
          for (int64_t i = 0; i < 5; ++i)
            expected(t, 5 * h + i) += weight[j] / sum * v(j, 5 * g + i);
      }
    expectNear(inSteps(text, {q, k, v}, positions, {5}), expected);
    expectNear(inSteps(text, {q, k, v}, positions, {1, 3, 1}), expected);
  }
}

TEST_F(ContextualOpsTest, SlopesWeighPositions) {
  for (bool rounded : {false, true}) {
    std::string text = R"(
xf.block @b(%q: tensor<2x3xf32>, %k: tensor<1x3xf32>, %v: tensor<1x1xf32>) -> tensor<2x1xf32> {
  %m = xf.setting "slopes" : tensor<2xf32> = dense<[0.7071, 0.01]> : tensor<2xf32>
  %y = xf.attention %q, %k, %v scale 0.5 slopes %m : tensor<2xf32> ROUNDED : tensor<2x3xf32>, tensor<1x3xf32>, tensor<1x1xf32> -> tensor<2x1xf32>
  xf.yield %y : tensor<2x1xf32>
})";
    text.replace(text.find("ROUNDED"), 7, rounded ? "rounded" : "");
    std::vector<int64_t> positions = {1, 4, 1001};
    // As bfloat16, 0.7071 and 1001 are 0.70703125 and 1000; 0.7071 ⋅ 1000 is 708, and 0.7071 ⋅ 4 is
    // 2.828125; 0.01 is 0.010009765625, and its products with 1000 and 4 are 10 and 0.0400390625.
    double first[2][3] = {{0.7071f, 4 * double(0.7071f), 1001 * double(0.7071f)},
                          {0.70703125, 2.828125, 708}};
    double second[2][3] = {{0.01f, 4 * double(0.01f), 1001 * double(0.01f)},
                           {0.010009765625, 0.0400390625, 10}};
    Matrix q = noise(3, 6), k = noise(3, 3), v = noise(3, 1);
    Matrix expected = Matrix::Zero(3, 2);
    for (int64_t t = 0; t < 3; ++t)
      for (int64_t h = 0; h < 2; ++h) {
        double sum = 0;
        auto bias = [&](int64_t j) { return (h ? second : first)[rounded][j]; };
        for (int64_t j = 0; j <= t; ++j) {
          double product = q.row(t).segment(3 * h, 3).dot(k.row(j)) + bias(j) - bias(t);
          sum += std::exp(0.5 * product);
          expected(t, h) += std::exp(0.5 * product) * v(j, 0);
        }
        expected(t, h) /= sum;
      }
    expectNear(inSteps(text, {q, k, v}, positions, {2, 1}), expected);
  }
}

TEST_F(ContextualOpsTest, SinksTakePartOfTheWeight) {
  const char *text = R"(
xf.block @b(%q: tensor<2x3xf32>, %k: tensor<1x3xf32>, %v: tensor<1x1xf32>) -> tensor<2x1xf32> {
  %b = xf.param "sinks" : tensor<2xbf16>
  %y = xf.attention %q, %k, %v scale 0.5 sinks %b : tensor<2xbf16> : tensor<2x3xf32>, tensor<1x3xf32>, tensor<1x1xf32> -> tensor<2x1xf32>
  xf.yield %y : tensor<2x1xf32>
})";
  Matrix q = noise(3, 6), k = noise(3, 3), v = noise(3, 1);
  std::vector<int64_t> positions = {0, 1, 2};
  Matrix found = inSteps(text, {q, k, v}, positions, {2, 1}), expected = Matrix::Zero(3, 2);
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t h = 0; h < 2; ++h) {
      double sum = std::exp(weights.numbers("sinks")[h]);
      for (int64_t j = 0; j <= t; ++j) {
        double power = std::exp(0.5 * q.row(t).segment(3 * h, 3).dot(k.row(j)));
        sum += power;
        expected(t, h) += power * v(j, 0);
      }
      expected(t, h) /= sum;
    }
  expectNear(found, expected);
}

TEST_F(ContextualOpsTest, BidirectionalSeesWhatTheRunHolds) {
  const char *text = R"(
xf.block @b(%q: tensor<1x3xf32>, %k: tensor<1x3xf32>, %v: tensor<1x1xf32>) -> tensor<1x1xf32> {
  %y = xf.attention %q, %k, %v scale 0.5 bidirectional : tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x1xf32> -> tensor<1x1xf32>
  xf.yield %y : tensor<1x1xf32>
})";
  Matrix q = noise(4, 3), k = noise(4, 3), v = noise(4, 1), expected(4, 1);
  for (int64_t t = 0; t < 4; ++t) {
    Eigen::RowVectorXd powers = (0.5 * q.row(t) * k.transpose()).array().exp();
    expected(t, 0) = powers.dot(v.col(0)) / powers.sum();
  }
  expectNear(inSteps(text, {q, k, v}, {0, 1, 2, 3}, {4}), expected);
}

TEST_F(ContextualOpsTest, ConvolutionCountsTokensSeen) {
  const char *text = R"(xf.block @b(%x: tensor<3xf32>) -> tensor<3xf32> {
    %W = xf.param "W" : tensor<3x4xf16>
    %y = xf.conv %W, %x : tensor<3x4xf16>, tensor<3xf32>
    xf.yield %y : tensor<3xf32>
  })";
  std::vector<int64_t> positions = {0, 1, 7, 8, 9, 20};
  Matrix x = noise(6, 3), found = inSteps(text, {x}, positions, {2, 1, 3});
  Matrix expected = Matrix::Zero(6, 3);
  for (int64_t t = 0; t < 6; ++t)
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t i = 0; i < 4 && i <= t; ++i)
        expected(t, c) += weights.numbers("W")[4 * c + 3 - i] * x(t - i, c);
  expectNear(found, expected);
}

TEST_F(ContextualOpsTest, ScanFromZero) {
  const char *text = R"(xf.block @b(%a: tensor<2x2xf32>, %x: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %y = xf.scan %a, %x : tensor<2x2xf32>
    xf.yield %y : tensor<2x2xf32>
  })";
  Matrix a = noise(5, 4), x = noise(5, 4), expected = x;
  for (int64_t t = 1; t < 5; ++t)
    for (int64_t i = 0; i < 4; ++i)
      expected(t, i) = a(t, i) * expected(t - 1, i) + x(t, i);
  expectNear(inSteps(text, {a, x}, {0, 1, 2, 3, 4}, {2, 1, 2}), expected);
}

TEST_F(ContextualOpsTest, MeanWhoseWeightsDecay) {
  const char *text = R"(
xf.block @b(%k: tensor<3xf32>, %v: tensor<3xf32>, %d: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %y = xf.decaying_mean %k, %v decay %d own %b : tensor<3xf32>
  xf.yield %y : tensor<3xf32>
})";
  // With keys of several hundreds, no weight is a number by itself.
  for (double size : {1.0, 400.0}) {
    Matrix k = noise(5, 3) * size, v = noise(5, 3), d = -noise(5, 3).cwiseAbs(), b = noise(5, 3);
    Matrix expected(5, 3);
    for (int64_t t = 0; t < 5; ++t)
      for (int64_t i = 0; i < 3; ++i) {
        std::vector<double> exponents;
        for (int64_t j = 0; j < t; ++j) {
          double exponent = k(j, i);
          for (int64_t between = j + 1; between < t; ++between)
            exponent += d(between, i);
          exponents.push_back(exponent);
        }
        exponents.push_back(k(t, i) + b(t, i));
        double top = *std::max_element(exponents.begin(), exponents.end()), sum = 0, weights = 0;
        for (int64_t j = 0; j <= t; ++j) {
          weights += std::exp(exponents[j] - top);
          sum += std::exp(exponents[j] - top) * v(j, i);
        }
        expected(t, i) = sum / weights;
      }
    expectNear(inSteps(text, {k, v, d, b}, {0, 1, 2, 3, 4}, {5}), expected);
    expectNear(inSteps(text, {k, v, d, b}, {0, 1, 2, 3, 4}, {1, 3, 1}), expected);
  }
}

TEST_F(ContextualOpsTest, TruncatedStateIsForgotten) {
  xf::BlockOp b = block(parse(attention));
  BlockState state;
  std::vector<Matrix> inputs = {noise(3, 18), noise(3, 6), noise(3, 10)};
  auto step = [&](int64_t token) {
    Environment environment{weights, nullptr, token, token, {{std::nullopt, &state}}};
    Evaluation evaluation(environment);
    llvm::SmallVector<Matrix> rows;
    for (const Matrix &input : inputs)
      rows.push_back(input.row(token));
    return llvm::cantFail(evaluateBlock(b, rows, evaluation)).front();
  };
  step(0);
  Matrix second = step(1);
  state.truncate(1);
  EXPECT_EQ(step(1), second);
  state.truncate(0);
  EXPECT_NE(step(1), second);
}

TEST_F(ContextualOpsTest, OpsWithoutAMeaningAreLocatedErrors) {
  EXPECT_EQ(
      messageOf(run("xf.block @b(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                    "  %y = xf.contextual \"mystery\"(%x) : (tensor<2xf32>) -> tensor<2xf32>\n"
                    "  xf.yield %y : tensor<2xf32>\n}",
                    {noise(1, 2)})),
      "test.mlir:2:8: 'xf.contextual' op has no meaning in the reference");
  EXPECT_EQ(messageOf(run("xf.block @b(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                          "  %y = xf.scan %x, %x run reduced : tensor<2xf32>\n"
                          "  xf.yield %y : tensor<2xf32>\n}",
                          {noise(1, 2)})),
            "test.mlir:2:8: 'xf.scan' op reads the state of the reduced run, which is not given");
}

} // namespace
} // namespace ctxc::reference
