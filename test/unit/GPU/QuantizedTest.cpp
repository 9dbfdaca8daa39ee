// Quantised matrices on a device: a table, Algorithm 1 on a layer, and a prompt in chunks, compared
// with the reference.
#include "Device.h"
#include "test/unit/Compiled/QuantizedWeights.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

std::string elementOf(const std::string &format) { return "!xf.quantized<" + format + ">"; }

/// A table and a pre-norm layer, attention and an MLP, whose matrices are all stored in `format`.
/// Rows of the MLP's last matrix have two blocks.
std::string modelIn(const std::string &format) {
  const std::string element = elementOf(format);
  const int64_t width = format.find("_k") != std::string::npos ? 256 : 32;
  BlockText b("quantised", width);
  TextValue x = b.input();
  auto normed = [&](const TextValue &v) { return b.unary("normalize rms", v, " eps 1.0e-2"); };
  auto heads = [&](const TextValue &v) {
    return b.reshape(b.linear(v, width, element), {2, width / 2});
  };
  TextValue n = normed(x), q = heads(n), k = heads(n), v = heads(n);
  TextValue mixed = b.reshape(b.attention(q, k, v, 0), {width});
  // The numbers of the formats are of different sizes; the context shall have an effect in all.
  mixed = b.unary("times", mixed, " by 50.0");
  x = b.add(x, b.linear(mixed, width, element));
  n = normed(x);
  TextValue gate = b.unary("activation silu", b.linear(n, 2 * width, element));
  TextValue h = b.mul(gate, b.linear(n, 2 * width, element));
  x = b.add(x, b.linear(h, width, element));
  b.output(x);
  std::string text = modelText({b}), table = typeOf(Shape{kVocabulary, width});
  std::string stored = typeOf(Shape{kVocabulary, width}, element);
  for (const std::string &before : {"\"embed\" : ", "%E[%t] : "}) {
    size_t at = text.find(before + table);
    EXPECT_NE(at, std::string::npos);
    text.replace(at + before.size(), table.size(), stored);
  }
  return text;
}

/// A mixture whose banks are stored in `format`: all slots read one vector, and then each its own.
std::string mixtureIn(const std::string &format) {
  const std::string element = elementOf(format);
  const int64_t width = format.find("_k") != std::string::npos ? 256 : 32;
  BlockText b("mixture", width);
  TextValue x = b.input(), scores = b.unary("softmax", b.linear(x, 5)), top = b.topK(scores, 2);
  auto experts = [&](const TextValue &v) {
    return b.expertLinear(v, top, /*experts=*/5, width, element, /*transposed=*/false,
                          /*tensorEach=*/false);
  };
  TextValue h = b.unary("activation silu", experts(x));
  b.output(b.combine(b.gather(scores, top), experts(h)));
  return modelText({b});
}

/// Two matrices of `rows` rows that are longer than a subgroup's span, by a part of one.
std::string longRowsIn(const std::string &format, int64_t rows) {
  const std::string element = elementOf(format);
  const int64_t width = 1280;
  BlockText b("quantised", width);
  TextValue x = b.input(), y = b.mul(b.linear(x, rows, element), b.linear(x, rows, element));
  b.output(b.add(x, b.linear(y, width)));
  return modelText({b});
}

/// Algorithm 1 behind a prompt of `count` tokens: the device's logits are the reference's, and its
/// patch replaces the prompt.
void expectPatches(const std::string &text, std::unique_ptr<Device> device, int64_t count) {
  TextModel model(text, std::make_unique<QuantizedWeights>(3, /*wholeSpans=*/true),
                  /*threads=*/2,
                  /*planned=*/true);
  ASSERT_EQ(model.plans, 1);
  GpuOptions options;
  options.chunk = 4;
  auto gpu = onDevice(model.program, *model.weights, std::move(device), options);
  ASSERT_NE(gpu, nullptr);
  std::vector<int64_t> tokens = someTokens(count + 1, 5), prompt(tokens.begin(), tokens.end() - 1);
  std::vector<PatchStep> steps;
  for (Executor *executor : {model.reference.get(), gpu.get()}) {
    auto full = executor->start(count + 1), reduced = executor->start(1);
    auto read = executor->forward(*full, prompt, upTo(count), ForwardOptions());
    ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
    auto step = executor->patch(*full, *reduced, tokens.back(), count, {});
    ASSERT_TRUE(bool(step)) << llvm::toString(step.takeError());
    ForwardOptions forward;
    forward.append = false;
    forward.patch = &step->patch;
    auto patched = executor->forward(*reduced, tokens.back(), count, forward);
    ASSERT_TRUE(bool(patched)) << llvm::toString(patched.takeError());
    EXPECT_LE(relativeDifference(*patched, step->fullLogits.doubles()), 1e-4);
    forward.patch = nullptr;
    auto without = executor->forward(*reduced, tokens.back(), count, forward);
    ASSERT_TRUE(bool(without)) << llvm::toString(without.takeError());
    EXPECT_GT(relativeDifference(*without, step->fullLogits.doubles()), 1e-3);
    steps.push_back(std::move(*step));
  }
  EXPECT_LE(relativeDifference(steps[1].fullLogits.doubles(), steps[0].fullLogits.doubles()), 1e-4);
  EXPECT_LE(relativeDifference(steps[1].reducedLogits.doubles(), steps[0].reducedLogits.doubles()),
            1e-4);
}

struct GpuQuantized : testing::TestWithParam<const char *> {};

TEST_P(GpuQuantized, IsTheReferences) {
  CTXC_OPEN_DEVICE(device);
  expectPatches(modelIn(GetParam()), std::move(device), 9); // two chunks, and a token
}

TEST_P(GpuQuantized, BanksAreTheReferences) {
  CTXC_OPEN_DEVICE(device);
  TextModel model(mixtureIn(GetParam()),
                  std::make_unique<QuantizedWeights>(3, /*wholeSpans=*/true));
  GpuOptions options;
  options.chunk = 4;
  auto gpu = onDevice(model.program, *model.weights, std::move(device), options);
  ASSERT_NE(gpu, nullptr);
  std::vector<int64_t> tokens = someTokens(5, 5);
  auto run = gpu->start(5), expectedRun = model.reference->start(5);
  Seen found = see(*gpu, *run, tokens, upTo(5)),
       expected = see(*model.reference, *expectedRun, tokens, upTo(5));
  expectSame(found, expected, 1e-4, "a prompt of two chunks");
}

TEST_P(GpuQuantized, LongRowsAreTheReferences) {
  CTXC_OPEN_DEVICE(device);
  TextModel model(longRowsIn(GetParam(), 9),
                  std::make_unique<QuantizedWeights>(3, /*wholeSpans=*/true));
  GpuOptions options;
  options.chunk = 4;
  auto gpu = onDevice(model.program, *model.weights, std::move(device), options);
  ASSERT_NE(gpu, nullptr);
  for (int64_t count : {2, 5}) { // tokens one by one, and in a chunk
    auto run = gpu->start(count), expectedRun = model.reference->start(count);
    std::vector<int64_t> tokens = someTokens(count, 5);
    Seen found = see(*gpu, *run, tokens, upTo(count)),
         expected = see(*model.reference, *expectedRun, tokens, upTo(count));
    expectSame(found, expected, 1e-5, "rows of 1280");
  }
}

/// Attention, and a matrix of `rows` rows that are longer than a subgroup's span.
std::string patchedRowsIn(const std::string &format, int64_t rows) {
  const int64_t width = 1280, head = 16;
  BlockText b("quantised", width);
  TextValue x = b.input();
  auto heads = [&] { return b.reshape(b.linear(x, head), {1, head}); };
  TextValue q = heads(), k = heads(), v = heads();
  x = b.add(x, b.linear(b.reshape(b.attention(q, k, v, 0), {head}), width));
  TextValue h = b.unary("activation silu", b.linear(x, rows, elementOf(format)));
  b.output(b.add(x, b.linear(h, width)));
  return modelText({b});
}

TEST(GpuQuantizedRows, PatchesAreTheReferences) {
  for (auto [format, rows] : {std::pair("q6_k", 1027), std::pair("q4_0", 8195)}) {
    CTXC_OPEN_DEVICE(device);
    expectPatches(patchedRowsIn(format, rows), std::move(device), 2);
  }
}

/// So many rows that a subgroup takes two or four of them, and the last one fewer.
TEST(GpuQuantizedRows, AreTheReferences) {
  for (auto [format, rows] : {std::pair("q6_k", 1027), std::pair("q4_0", 8195)}) {
    CTXC_OPEN_DEVICE(device);
    TextModel model(longRowsIn(format, rows),
                    std::make_unique<QuantizedWeights>(3, /*wholeSpans=*/true));
    auto gpu = onDevice(model.program, *model.weights, std::move(device), {});
    ASSERT_NE(gpu, nullptr);
    auto run = gpu->start(1), expectedRun = model.reference->start(1);
    Seen found = see(*gpu, *run, {5}, {0}),
         expected = see(*model.reference, *expectedRun, {5}, {0});
    expectSame(found, expected, 1e-5, format);
  }
}

/// Scales for 12 columns each, of which some of these matrices have.
TEST(GpuQuantizedScales, OfOtherBlocksAreRefused) {
  CTXC_OPEN_DEVICE(device);
  TextModel model(modelIn("f8e4m3"), std::make_unique<QuantizedWeights>(3));
  auto refused = createGpuExecutor(model.program, *model.weights, std::move(device));
  std::string message = llvm::toString(refused.takeError());
  EXPECT_NE(message.find("has a scale for each 12 columns; on a GPU, expected a multiple of 32"),
            std::string::npos)
      << message;
}

INSTANTIATE_TEST_SUITE_P(Formats, GpuQuantized,
                         testing::Values("block_mxfp4", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0",
                                         "q4_k", "q5_k", "q6_k", "f8e4m3", "mxfp4"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
