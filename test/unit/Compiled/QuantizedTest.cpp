// Quantised matrices, and banks of them: the reference compared with compiled kernels, and these
// with kernels for the same numbers in float32, bit for bit where they are multiplied in float32.
#include "QuantizedWeights.h"
#include "TextModel.h"
#include "ctxc/Lowering/CpuTarget.h"
#include "mlir/AsmParser/AsmParser.h"
#include <array>
#include <cstring>

using namespace ctxc;
using namespace ctxc::test;

namespace {

/// The numbers that other weights store in `format`, as float32.
class Dequantized : public Weights {
public:
  Dequantized(std::unique_ptr<Weights> from, std::string format, mlir::MLIRContext &context)
      : from(std::move(from)), element(mlir::parseType(format, &context)) {}

  llvm::Expected<const void *> get(llvm::StringRef name, mlir::RankedTensorType type) override {
    if (!name.contains("q_"))
      return from->get(name, type);
    auto data = from->get(name, type.clone(element));
    if (!data)
      return data;
    std::vector<float> &numbers = made[name.str()];
    numbers.resize(type.getNumElements());
    readFloats(storageOf(element), *data, numbers);
    return numbers.data();
  }
  llvm::Expected<std::string> hash() override { return "dequantised"; }

private:
  std::unique_ptr<Weights> from;
  mlir::Type element;
  std::map<std::string, std::vector<float>> made;
};

/// Names the parameters of `format` so that Dequantized knows them.
struct QuantizedText : BlockText {
  using BlockText::BlockText;
  TextValue param(const Shape &shape, const std::string &element,
                  const std::string &suffix) override {
    bool quantized = element[0] == '!' || element == "twin";
    return op("xf.param \"" + fresh(quantized ? "q_" : "p") + suffix + "\"",
              typeOf(shape, element == "twin" ? "f32" : element), shape);
  }
};

std::string modelIn(const std::string &element, int64_t in, int64_t inner) {
  // Parameters have the element type of the text, which the float32 twin replaces by f32.
  QuantizedText b("quantised", in);
  TextValue x = b.input();
  std::string shown = element == "twin" ? "f32" : element;
  auto linear = [&](const TextValue &v, int64_t out) {
    Shape stored{out, v.shape.back()}, shape = v.shape;
    shape.back() = out;
    TextValue w = b.param(stored, element, "");
    return b.op("xf.linear " + w.name + " * " + v.name, typeOf(stored, shown) + ", " + typeOf(v),
                shape);
  };
  auto experts = [&](const TextValue &v, const TextValue &sel, int64_t out, bool each) {
    Shape stored{5, out, v.shape.back()};
    TextValue w = b.param(stored, element, each ? ".*" : "");
    return b.op("xf.expert_linear " + w.name + "[" + sel.name + "] * " + v.name,
                typeOf(stored, shown) + ", " + typeOf(sel.shape, "i32") + ", " + typeOf(v),
                {sel.shape[0], out});
  };
  b.output(b.unary("times", linear(x, in), " by 0.5"));
  TextValue z = b.unary("normalize rms", x, " eps 1.0e-2");
  TextValue scores = b.unary("softmax", b.linear(z, 5)), top = b.topK(scores, 2);
  for (bool each : {false, true}) {
    TextValue h = b.unary("activation silu", experts(z, top, inner, each));
    b.output(b.combine(b.gather(scores, top), experts(h, top, 11, each)));
  }
  return modelText({b});
}

struct Quantized : testing::TestWithParam<const char *> {};

TEST_P(Quantized, CompiledIsTheReferenceAndTheSameInFloat32ToTheLastBit) {
  std::string element = "!xf.quantized<" + std::string(GetParam()) + ">";
  bool isF8 = element.find("f8e4m3") != std::string::npos,
       isK = element.find("_k") != std::string::npos;
  int64_t in = isF8 ? 45 : isK ? 256 : 96, inner = isF8 ? 64 : isK ? 512 : 64;
  TextModel model(modelIn(element, in, inner), std::make_unique<QuantizedWeights>(3));
  expectAgreement(model, 2e-5);

  mlir::MLIRContext context;
  context.loadDialect<xf::XFDialect>();
  if (multipliesInFixedPoint(GetParam(), CpuTarget::host()))
    return; // FixedProductsTest.cpp compares these with float32
  TextModel twin(
      modelIn("twin", in, inner),
      std::make_unique<Dequantized>(std::make_unique<QuantizedWeights>(3), element, context));
  ASSERT_EQ(twin.compile(), "");
  std::vector<int64_t> tokens = someTokens(5, 2), at = upTo(5);
  auto run = model.compiled->start(5), twinRun = twin.compiled->start(5);
  Seen found = see(*model.compiled, *run, tokens, at),
       expected = see(*twin.compiled, *twinRun, tokens, at);
  EXPECT_EQ(found.layers, expected.layers);
  EXPECT_EQ(found.logits, expected.logits);
}

/// In tile registers, of a panel of W and of several, with rows that do not fill a register.
TEST_P(Quantized, IsAsExactAsFloat32WhenSplit) {
  if (!CpuTarget::host().tiles)
    GTEST_SKIP() << "this processor has no AMX, or the system does not give it";
  std::string element = "!xf.quantized<" + std::string(GetParam()) + ">";
  bool isF8 = element.find("f8e4m3") != std::string::npos,
       isK = element.find("_k") != std::string::npos;
  for (int64_t in : isF8  ? std::vector<int64_t>{45, 2088}
                    : isK ? std::vector<int64_t>{256, 2304}
                          : std::vector<int64_t>{96, 2080}) {
    QuantizedText b("quantised", in);
    b.output(b.linear(b.input(), 70, element));
    TextModel exact(modelText({b}), std::make_unique<QuantizedWeights>(3), 1),
        split(modelText({b}), std::make_unique<QuantizedWeights>(3), 3);
    split.prompts = PromptProducts::Split;
    ::setenv("CTXC_VNNI", "off", /*overwrite=*/1); // float32
    const std::string error = exact.compile();
    ::unsetenv("CTXC_VNNI");
    ASSERT_EQ(error, "");
    ASSERT_EQ(split.compile(), "");
    auto [found, usual] = expectAsExactWhenSplit(exact, split);
    EXPECT_NE(found, usual); // in tiles, and so in another order
  }
}

//===----------------------------------------------------------------------===//
// Products in integers
//===----------------------------------------------------------------------===//

/// A matrix and a bank that read the input itself. Behind another op the executors' vectors would
/// differ by a rounding, which may fall on the other side of a step of 8 bits.
std::string integerModel(const std::string &element, int64_t in) {
  QuantizedText b("quantised", in);
  TextValue x = b.input();
  auto matrix = [&](const Shape &stored) {
    return b.op("xf.param \"" + b.fresh("q_") + "\" {kernel.integer}", typeOf(stored, element),
                stored);
  };
  TextValue w = matrix({37, in}), bank = matrix({5, 19, in});
  b.output(b.op("xf.linear " + w.name + " * " + x.name, typeOf(w.shape, element) + ", " + typeOf(x),
                {37}));
  TextValue scores = b.unary("softmax", b.linear(x, 5)), top = b.topK(scores, 2);
  TextValue each = b.op(
      "xf.expert_linear " + bank.name + "[" + top.name + "] * " + x.name,
      typeOf(bank.shape, element) + ", " + typeOf(top.shape, "i32") + ", " + typeOf(x), {2, 19});
  b.output(b.combine(b.gather(scores, top), each));
  return modelText({b});
}

struct IntegerProducts : testing::TestWithParam<const char *> {};

TEST_P(IntegerProducts, CompiledIsTheReferenceForAnyNumberOfVectors) {
  std::string element = "!xf.quantized<" + std::string(GetParam()) + ">";
  bool isK = element.find("_k") != std::string::npos;
  std::vector<int64_t> widths = isK ? std::vector<int64_t>{512} : std::vector<int64_t>{96, 544};
  for (int64_t in : widths) {
    TextModel model(integerModel(element, in), std::make_unique<QuantizedWeights>(5));
    expectAgreement(model, 1e-6);
    // 29 vectors go in tiles of twelve, four and one, and have the sums that each has by itself.
    const int64_t count = 29;
    std::vector<int64_t> tokens = someTokens(count, 3), at = upTo(count);
    auto run = model.compiled->start(count), single = model.compiled->start(count),
         expectedRun = model.reference->start(count);
    Seen all = see(*model.compiled, *run, tokens, at);
    expectSame(all, see(*model.reference, *expectedRun, tokens, at), 1e-6, "29 at once");
    for (int64_t i = 0; i < count; ++i) {
      Seen one = see(*model.compiled, *single, tokens[i], at[i]);
      EXPECT_EQ(one.logits, llvm::ArrayRef(all.logits).slice(i * kVocabulary, kVocabulary).vec())
          << i;
    }
  }
}

TEST_P(IntegerProducts, RoundsTheVectors) {
  std::string element = "!xf.quantized<" + std::string(GetParam()) + ">",
              text = integerModel(element, 512), exact = text;
  for (size_t at; (at = exact.find(" {kernel.integer}")) != std::string::npos;)
    exact.erase(at, strlen(" {kernel.integer}"));
  TextModel rounded(text, std::make_unique<QuantizedWeights>(5)),
      other(exact, std::make_unique<QuantizedWeights>(5));
  std::vector<int64_t> tokens = someTokens(3, 2), at = upTo(3);
  auto run = rounded.reference->start(3), otherRun = other.reference->start(3);
  Seen found = see(*rounded.reference, *run, tokens, at),
       expected = see(*other.reference, *otherRun, tokens, at);
  double difference = relativeDifference(found.logits, expected.logits);
  EXPECT_GT(difference, 1e-5);
  EXPECT_LT(difference, 0.05);
}

/// The largest integers that a format has, and other parameters that are all one number. Where a
/// block has bytes of integers from `from` on, `count` of them are `byte`.
class LargestWeights : public Weights {
public:
  LargestWeights(float number, const std::string &format)
      : number(number), from(std::make_unique<QuantizedWeights>(5)) {
    static const std::map<std::string, std::array<int64_t, 3>> integers = {
        {"q4_0", {2, 16, 0xff}},   {"q4_1", {4, 16, 0xff}},  {"q5_0", {2, 20, 0xff}},
        {"q5_1", {4, 20, 0xff}},   {"q8_0", {2, 32, 0x7f}},  {"q4_k", {16, 128, 0xff}},
        {"q5_k", {16, 160, 0xff}}, {"q6_k", {0, 192, 0xff}}, {"block_mxfp4", {1, 16, 0x77}}};
    where = integers.at(format);
  }
  llvm::Expected<const void *> get(llvm::StringRef name, mlir::RankedTensorType type) override {
    DType dtype = storageOf(type.getElementType());
    std::vector<uint8_t> &bytes = made[name.str()];
    bytes.resize(bytesOf(dtype, type.getNumElements()));
    if (!isQuantized(dtype)) {
      for (size_t at = 0; at < bytes.size(); at += sizeof number)
        std::memcpy(bytes.data() + at, &number, sizeof number);
      return bytes.data();
    }
    auto data = from->get(name, type);
    if (!data)
      return data;
    std::memcpy(bytes.data(), *data, bytes.size());
    for (size_t block = 0; block < bytes.size(); block += blockSizeOf(dtype).bytes)
      std::memset(bytes.data() + block + where[0], int(where[2]), where[1]);
    return bytes.data();
  }
  llvm::Expected<std::string> hash() override { return "largest"; }

private:
  float number;
  std::unique_ptr<Weights> from;
  std::array<int64_t, 3> where;
  std::map<std::string, std::vector<uint8_t>> made;
};

TEST_P(IntegerProducts, TheLargestSumsFit) {
  std::string format = GetParam();
  if (format == "mxfp4")
    return; // its scales lie apart, and its integers are those of block_mxfp4
  for (float number : {1.0f, -1.0f}) {
    TextModel model(integerModel("!xf.quantized<" + format + ">", 512),
                    std::make_unique<LargestWeights>(number, format));
    expectAgreement(model, 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, IntegerProducts,
                         testing::Values("mxfp4", "block_mxfp4", "q4_0", "q4_1", "q5_0", "q5_1",
                                         "q8_0", "q4_k", "q5_k", "q6_k"),
                         [](const auto &info) { return std::string(info.param); });

INSTANTIATE_TEST_SUITE_P(Formats, Quantized,
                         testing::Values("f8e4m3", "mxfp4", "block_mxfp4", "q4_0", "q4_1", "q5_0",
                                         "q5_1", "q8_0", "q4_k", "q5_k", "q6_k"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
