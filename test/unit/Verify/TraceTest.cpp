#include "FakeExecutor.h"
#include "gtest/gtest.h"

using namespace ctxc;
using namespace ctxc::testing;

namespace {

LayerRecord record(std::vector<std::vector<double>> layers) {
  LayerRecord result;
  LayerObserver observer = result.observer();
  for (size_t i = 0; i < layers.size(); ++i)
    observer(static_cast<int64_t>(i) - 1, layers[i], 1);
  return result;
}

std::string summary(const Trace &trace) {
  std::string text;
  llvm::raw_string_ostream os(text);
  trace.summarize(os);
  return text;
}

TEST(Trace, recordsTheLastRow) {
  LayerRecord result;
  result.observer()(0, {1, 2, 3, 4}, 2);
  EXPECT_EQ(result.outputs().at(0), (std::vector<double>{3, 4}));
}

TEST(Trace, findsTheFirstLayerApart) {
  Trace trace(1e-3);
  trace.add(5, "full", record({{1}, {2, 4}, {8}}), "control", record({{1}, {2, 4.5}, {9}}));
  EXPECT_EQ(summary(trace),
            "full | control: part at layer 0 of position 5 (L∞ 0.5, largest output 4)\n");
}

TEST(Trace, saysTogetherAndTheWorst) {
  Trace trace(1e-3);
  trace.add(5, "full", record({{1}, {2, 4}}), "patched", record({{1}, {2, 4.001}}));
  trace.add(6, "full", record({{1}, {2, 4}}), "patched", record({{1}, {2, 4.002}}));
  EXPECT_EQ(summary(trace),
            "full | patched: together in all 2 outputs (L∞ at most 0.002, in layer 0)\n");
}

TEST(Trace, aNaNIsApart) {
  auto lines = compareLayers(record({{NAN, 1}}), record({{NAN, 1}}), 1e-3);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].apart);
}

TEST(Trace, comparesASecondExecutor) {
  FakeExecutor first, second;
  FakeNorms norms;
  Trace trace(1e-3, "compiled", &second, "reference");
  RunRequest request{{3, 1, 4}, {1}, 0, false, &trace, {}};
  auto result = verify(first, request, 2, norms, [](const VerifyStep &) {});
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  EXPECT_EQ(summary(trace),
            "full | patched: together in all 3 outputs (L∞ at most 0, in the embedding)\n"
            "full | control: part at layer 0 of position 2 (L∞ 3, largest output 8)\n"
            "compiled full | reference full: together in all 3 outputs (L∞ at most 0, in the "
            "embedding)\n"
            "compiled patched | reference patched: together in all 3 outputs (L∞ at most 0, in "
            "the embedding)\n");
}

TEST(Trace, writesOneObjectALayer) {
  Trace trace(1e-3);
  trace.add(5, "full", record({{1}, {2}}), "patched", record({{1}, {2}}));
  std::string text;
  llvm::raw_string_ostream os(text);
  trace.write(os);
  EXPECT_EQ(
      text,
      R"({"apart":false,"format":"ctxc-trace","layer":-1,"linf":0,"magnitude":1,"position":5,"runs":["full","patched"]}
{"apart":false,"format":"ctxc-trace","layer":0,"linf":0,"magnitude":2,"position":5,"runs":["full","patched"]}
)");
}

} // namespace
