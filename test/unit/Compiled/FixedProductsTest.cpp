// Products of quantised matrices with vectors in fixed point (FixedContraction.h), beside exact
// sums, and the same formats on processors without such products.
#include "QuantizedWeights.h"
#include "lib/Runtime/Tune/LinearKernel.h"
#include "mlir/AsmParser/AsmParser.h"
#include <limits>
#include <optional>

using namespace ctxc;
using namespace ctxc::test;

namespace {

constexpr int64_t outputs = 37;

struct FixedProducts : testing::TestWithParam<const char *> {
  FixedProducts() : weights(5), element("!xf.quantized<" + std::string(GetParam()) + ">") {
    context.loadDialect<xf::XFDialect>();
    format = mlir::cast<xf::QuantizedType>(mlir::parseType(element, &context));
  }

  bool isFixed(const CpuTarget &target) { return multipliesInFixedPoint(GetParam(), target); }
  /// Row lengths: a span, several, and with small blocks a part of one.
  std::vector<int64_t> widths() {
    if (format.getBlockElements() == 256)
      return {256, 1280};
    return {96, 256, 1312};
  }
  const void *matrix(int64_t width) {
    auto data = weights.get("w" + std::to_string(width),
                            mlir::RankedTensorType::get({outputs, width}, format));
    return data ? *data : nullptr;
  }
  std::vector<float> decoded(int64_t width) {
    std::vector<float> numbers(outputs * width);
    readFloats(storageOf(format), matrix(width), numbers);
    return numbers;
  }
  std::unique_ptr<ctxc::LinearKernel> kernel(int64_t width, const CpuTarget &target,
                                             const std::string &of) {
    auto made = ctxc::LinearKernel::compile(outputs, width, of, PromptProducts::Exact, target);
    if (!made)
      ADD_FAILURE() << llvm::toString(made.takeError());
    return made ? std::move(*made) : nullptr;
  }

  mlir::MLIRContext context;
  QuantizedWeights weights;
  std::string element;
  xf::QuantizedType format;
};

/// Vectors with numbers of very different sizes, and one of zeros.
std::vector<float> unevenVectors(int64_t count, int64_t width) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  std::vector<float> x(count * width);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = normal(random) * (random() % 97 ? 1.0f : 1000.0f);
  std::fill_n(x.begin() + width, width, 0.0f);
  return x;
}

std::vector<float> productsOf(ctxc::LinearKernel &kernel, const void *w, const float *x,
                              int64_t rows, int threads) {
  std::vector<float> y(rows * outputs);
  kernel.run(w, x, y.data(), rows, threads);
  return y;
}

/// What FixedContraction.h says of the error, with |w − zero| d + |m| from above: a number's own
/// magnitude and twice its group's largest.
TEST_P(FixedProducts, AreWithinTheirBoundOfExactSums) {
  CpuTarget host = CpuTarget::host();
  if (!isFixed(host))
    GTEST_SKIP() << "this processor does not multiply bytes in registers of 512 bits";
  for (int64_t width : widths()) {
    auto fixed = kernel(width, host, element);
    ASSERT_TRUE(fixed);
    const int64_t count = 29;
    std::vector<float> x = unevenVectors(count, width), w = decoded(width),
                       y = productsOf(*fixed, matrix(width), x.data(), count, 2);
    double n = 6 + 3 * std::ceil(width / 256.0), gamma = n * 0x1p-24 / (1 - n * 0x1p-24), worst = 0;
    for (int64_t v = 0; v < count; ++v)
      for (int64_t row = 0; row < outputs; ++row) {
        double sum = 0, bound = 0;
        for (int64_t from = 0; from < width; from += 16) {
          double largest = 0, magnitudes = 0;
          for (int64_t k = from; k < from + 16; ++k) {
            double number = w[row * width + k], factor = x[v * width + k], ofGroup = 0;
            for (int64_t j = k / 32 * 32; j < k / 32 * 32 + 32; ++j)
              ofGroup = std::max(ofGroup, std::abs(double(w[row * width + j])));
            sum += number * factor;
            bound += gamma * (std::abs(number) + 2 * ofGroup) * std::abs(factor);
            largest = std::max(largest, std::abs(factor));
            magnitudes += std::abs(number);
          }
          bound += 1.004 * 0x1p-23 * largest * magnitudes;
        }
        double error = std::abs(y[v * outputs + row] - sum);
        EXPECT_LE(error, bound) << width << ", vector " << v << ", row " << row;
        worst = std::max(worst, bound > 0 ? error / bound : error);
      }
    EXPECT_GT(worst, 0); // they are no sums in float64
    EXPECT_EQ(std::vector<float>(y.begin() + outputs, y.begin() + 2 * outputs),
              std::vector<float>(outputs, 0.0f));
  }
}

TEST_P(FixedProducts, AreTheSameForAnyNumberOfVectorsAndThreads) {
  CpuTarget target = CpuTarget::host();
  if (!isFixed(target))
    GTEST_SKIP() << "this processor does not multiply bytes in registers of 512 bits";
  const int64_t count = 29, width = widths().back();
  std::vector<float> x = unevenVectors(count, width), expected;
  for (int64_t streams : {1, 2, 8}) {
    target.readings.blocks = target.readings.kBlocks = {streams, streams == 8};
    auto fixed = kernel(width, target, element);
    ASSERT_TRUE(fixed);
    for (int threads : {1, 3}) {
      std::vector<float> all = productsOf(*fixed, matrix(width), x.data(), count, threads);
      if (expected.empty())
        expected = all;
      EXPECT_EQ(all, expected);
      // Few and many vectors, tiles that overlap, and each by itself.
      for (int64_t rows : {1, 2, 3, 15, 16, 17})
        for (int64_t v : {int64_t(0), count - rows})
          EXPECT_EQ(productsOf(*fixed, matrix(width), x.data() + v * width, rows, threads),
                    std::vector<float>(expected.begin() + v * outputs,
                                       expected.begin() + (v + rows) * outputs))
              << rows << " vectors from " << v;
    }
  }
}

TEST_P(FixedProducts, ShowWhatIsNotFinite) {
  CpuTarget host = CpuTarget::host();
  if (!isFixed(host))
    GTEST_SKIP() << "this processor does not multiply bytes in registers of 512 bits";
  const int64_t width = widths().back();
  auto fixed = kernel(width, host, element);
  ASSERT_TRUE(fixed);
  for (float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x = unevenVectors(16, width);
    x[5] = bad;
    for (int64_t rows : {1, 16})
      for (int64_t row = 0; row < outputs; ++row)
        EXPECT_FALSE(std::isfinite(productsOf(*fixed, matrix(width), x.data(), rows, 1)[row]));
  }
}

/// Without such products, they are those of the decoded numbers, to the last bit.
TEST_P(FixedProducts, AreThoseInFloat32OnOtherProcessors) {
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    auto target = CpuTarget::named(name);
    ASSERT_TRUE(bool(target));
    CpuTarget host = CpuTarget::host();
    if (host.lanes < target->lanes || !host.isOfThisArchitecture())
      GTEST_SKIP() << "this processor does not run code for " << name;
    ASSERT_FALSE(isFixed(*target));
    for (int64_t width : widths()) {
      auto stored = kernel(width, *target, element), wide = kernel(width, *target, "f32");
      ASSERT_TRUE(stored && wide);
      std::vector<float> w = decoded(width);
      for (int64_t rows : {1, 2, 3, 29}) {
        std::vector<float> x = unevenVectors(std::max<int64_t>(rows, 2), width);
        EXPECT_EQ(productsOf(*stored, matrix(width), x.data(), rows, 2),
                  productsOf(*wide, w.data(), x.data(), rows, 2))
            << name << ", " << rows << " vectors of " << width;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, FixedProducts,
                         testing::Values("q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k", "q6_k"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
