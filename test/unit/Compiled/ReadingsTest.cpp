// How a matrix is read for a token changes no sum (Readings.h).
#include "ctxc/Runtime/Tune.h"
#include "lib/Runtime/Tune/LinearKernel.h"
#include "lib/Runtime/Workspace.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace ctxc;

namespace {

struct Case {
  llvm::StringLiteral element;
  int64_t outputs, inputs, numbers, bytes; ///< so many numbers take so many bytes
};

/// What a kernel gives for one and for two vectors, of a matrix with bytes that are numbers of any
/// type.
std::vector<float> resultsOf(const Case &of, const CpuTarget &target, int threads) {
  auto kernel =
      LinearKernel::compile(of.outputs, of.inputs, of.element, PromptProducts::Exact, target);
  if (!kernel) {
    ADD_FAILURE() << llvm::toString(kernel.takeError());
    return {};
  }
  const int64_t bytes = of.outputs * of.inputs / of.numbers * of.bytes;
  Workspace memory;
  auto *matrix = static_cast<unsigned char *>(memory.take(bytes));
  for (int64_t i = 0; i < bytes; ++i)
    matrix[i] = 0x3c + (i * i + i / 7) % 3; // neither tiny nor infinite
  std::vector<float> x(2 * of.inputs), all;
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = float(i % 11) - 5.25f;
  for (int64_t rows : {1, 2}) {
    std::vector<float> y(rows * of.outputs);
    (*kernel)->run(matrix, x.data(), y.data(), rows, threads);
    all.insert(all.end(), y.begin(), y.end());
  }
  return all;
}

class EachReading : public testing::TestWithParam<Case> {};

TEST_P(EachReading, GivesTheSameBits) {
  CpuTarget target = CpuTarget::host();
  target.readings = Readings();
  const std::vector<float> expected = resultsOf(GetParam(), target, 1);
  EXPECT_TRUE(llvm::none_of(expected, [](float y) { return y == 0 || !std::isfinite(y); }));
  for (int64_t streams : {1, 2, 4, 8})
    for (bool asksAhead : {false, true}) {
      for (const Readings::Kind &kind : Readings::kinds())
        target.readings.*kind.member = {streams, asksAhead};
      for (int threads : {1, 3})
        EXPECT_EQ(resultsOf(GetParam(), target, threads), expected)
            << target.readings.text() << ", " << threads << " threads";
    }
}

INSTANTIATE_TEST_SUITE_P(Matrices, EachReading,
                         testing::Values(Case{"f32", 37, 72, 1, 4}, Case{"bf16", 19, 2304, 1, 2},
                                         Case{"f16", 21, 131, 1, 2},
                                         Case{"!xf.quantized<q8_0>", 29, 96, 32, 34},
                                         Case{"!xf.quantized<q4_k>", 23, 512, 256, 144}),
                         [](auto &info) { return std::to_string(info.index); });

TEST(Tuning, KeepsTheDefaultOfWhatItDoesNotMeasure) {
  Tuning tuning;
  tuning.byDefault.longFrom = 1024;
  tuning.byDefault.blocks = {1, true};
  tuning.kinds = {{"half", 8, 8, "bf16", {{{2, false}, {1, 1}}, {{8, true}, {2, 2}}}, 0, 1}};
  Readings expected = tuning.byDefault;
  expected.half = {8, true};
  EXPECT_EQ(tuning.readings(), expected);
}

} // namespace
