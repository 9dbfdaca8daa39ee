// Where parameters' numbers come from: checkpoints and random seeds.
#include "ctxc/Program/Weights.h"
#include "ctxc/Checkpoint/Checkpoint.h"
#include "mlir/IR/MLIRContext.h"
#include "test/unit/Checkpoint/Fixture.h"
#include <cmath>
#include <cstring>
#include <limits>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::test;

namespace {

struct WeightsTest : TempDirectory {
  /// A checkpoint with one tensor "w" of type F32 and shape (n).
  void writeF32(const std::vector<float> &numbers, StringRef padding = "") {
    std::string n = std::to_string(numbers.size()), end = std::to_string(4 * numbers.size());
    write("config.json", "{}");
    write("model.safetensors", fileOf("{\"w\":{\"dtype\":\"F32\",\"shape\":[" + n +
                                          "],\"data_offsets\":[0," + end + "]}}" + padding.str(),
                                      bytesOf(numbers)));
    checkpoint = cantFail(Checkpoint::open(dir.str()));
    weights = checkpointWeights(*checkpoint);
  }
  mlir::RankedTensorType type(ArrayRef<int64_t> shape, mlir::Type element) {
    return mlir::RankedTensorType::get(shape, element);
  }

  mlir::MLIRContext context;
  mlir::Type f32 = mlir::Float32Type::get(&context), bf16 = mlir::BFloat16Type::get(&context),
             f16 = mlir::Float16Type::get(&context);
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Weights> weights;
};

TEST_F(WeightsTest, TheStoredTypeIsMapped) {
  for (StringRef padding : {"", " ", "  ", "   ", "    "}) {
    writeF32({1, 2, 3}, padding);
    const void *data = cantFail(weights->get("w", type({3}, f32)));
    const uint8_t *stored = checkpoint->find("w")->data;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 4, 0u);
    EXPECT_EQ(data == stored, reinterpret_cast<uintptr_t>(stored) % 4 == 0);
    EXPECT_EQ(ArrayRef(static_cast<const float *>(data), 3), ArrayRef<float>({1, 2, 3}));
  }
}

TEST_F(WeightsTest, LargePagesHoldACopyOfWhatIsLarge) {
  std::vector<float> numbers(100000);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = float(i);
  for (StringRef padding : {"", " "}) {
    writeF32(numbers, padding);
    EXPECT_EQ(bytesInLargePages(*checkpoint), 4 * numbers.size());
    weights = checkpointWeights(*checkpoint, /*inLargePages=*/true);
    const void *data = cantFail(weights->get("w", type({100000}, f32)));
    const TensorView &stored = *checkpoint->find("w");
    EXPECT_NE(data, stored.data);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    EXPECT_EQ(ArrayRef(static_cast<const float *>(data), numbers.size()), ArrayRef(numbers));
    EXPECT_EQ(cantFail(weights->get("w", type({100000}, f32))), data);
    // The file's own pages, which were given back, are still there to be read.
    EXPECT_EQ(std::memcmp(stored.data, data, stored.bytes), 0);
  }
  writeF32({1, 2, 3});
  EXPECT_EQ(bytesInLargePages(*checkpoint), 0u);
}

TEST_F(WeightsTest, PartsAreReadAlone) {
  std::vector<float> numbers(100000);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = float(i);
  numbers[50000] = std::numeric_limits<float>::quiet_NaN();
  const mlir::RankedTensorType whole = type({100000}, f32), narrow = type({100000}, bf16);
  auto read = [&](mlir::RankedTensorType as, ArrayRef<ElementRun> runs) {
    return cantFail(weights->getPart("w", as, runs));
  };
  auto floatsOf = [](const void *data, size_t count) {
    return ArrayRef(static_cast<const float *>(data), count);
  };
  writeF32(numbers);
  for (std::string padding = " "; reinterpret_cast<uintptr_t>(checkpoint->find("w")->data) % 4;
       padding += " ")
    writeF32(numbers, padding);
  const auto *stored = reinterpret_cast<const float *>(checkpoint->find("w")->data);
  // One run lies in the file, several are a copy; what lies between them is not looked at.
  EXPECT_EQ(read(whole, ElementRun{50001, 49999}), stored + 50001);
  const ElementRun two[] = {{49998, 2}, {50001, 3}};
  const void *copy = read(whole, two);
  EXPECT_EQ(floatsOf(copy, 5), ArrayRef<float>({49998, 49999, 50001, 50002, 50003}));
  EXPECT_EQ(read(whole, two), copy);
  const ElementRun others[] = {{49998, 2}, {50002, 3}};
  EXPECT_EQ(floatsOf(read(whole, others), 5), ArrayRef<float>({49998, 49999, 50002, 50003, 50004}));
  EXPECT_EQ(bf16ToFloat(static_cast<const uint16_t *>(read(narrow, two))[4]),
            bf16ToFloat(floatToBf16(50003)));
  EXPECT_NE(messageOf(weights->getPart("w", whole, ElementRun{49999, 2})).find("[50000] is NaN"),
            std::string::npos);
  EXPECT_NE(messageOf(weights->get("w", whole)).find("[50000] is NaN"), std::string::npos);
  // Large pages hold a copy of the part alone.
  weights = checkpointWeights(*checkpoint, /*inLargePages=*/true);
  const void *large = read(whole, ElementRun{60000, 20000});
  EXPECT_NE(large, stored + 60000);
  EXPECT_EQ(floatsOf(large, 20000), ArrayRef(numbers).slice(60000, 20000));
  EXPECT_EQ(cantFail(randomWeights(1)->getPart("w", whole, two)), nullptr);
}

TEST_F(WeightsTest, AnotherTypeIsAConvertedCopyRoundedToEvenAndKept) {
  // 1 + 2^-8 and 1 + 3·2^-8 lie halfway between bfloat16 neighbours.
  writeF32({1 + 0x1p-8f, 1 + 0x3p-8f, -0.0f, 1 + 0x1p-8f + 0x1p-20f});
  const void *data = cantFail(weights->get("w", type({4}, bf16)));
  EXPECT_EQ(ArrayRef(static_cast<const uint16_t *>(data), 4),
            ArrayRef<uint16_t>({0x3f80, 0x3f82, 0x8000, 0x3f81}));
  EXPECT_EQ(cantFail(weights->get("w", type({4}, bf16))), data);
  EXPECT_NE(cantFail(weights->get("w", type({4}, f16))), data);
}

TEST_F(WeightsTest, ConversionCoversTensorsOfManyChunks) {
  std::vector<float> numbers(40001);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = float(i % 200);
  writeF32(numbers);
  auto *data = static_cast<const uint16_t *>(cantFail(weights->get("w", type({40001}, bf16))));
  for (size_t i = 0; i < numbers.size(); ++i)
    ASSERT_EQ(bf16ToFloat(data[i]), numbers[i]) << i;
}

TEST_F(WeightsTest, Errors) {
  auto expectError = [&](StringRef name, mlir::RankedTensorType type, StringRef part) {
    std::string message = messageOf(weights->get(name, type));
    EXPECT_NE(message.find(part.str()), std::string::npos) << message;
  };
  writeF32({1, 70000});
  expectError("v", type({2}, f32), "has no tensor 'v'");
  expectError("w", type({1, 2}, f32), "has shape [2]; expected [1, 2]");
  expectError("w", type({2}, f16), "beyond the range of F16");
  expectError("w", type({2}, mlir::IntegerType::get(&context, 32)), "does not convert to i32");
  writeF32({1, std::numeric_limits<float>::quiet_NaN()});
  for (mlir::Type element : {f32, bf16, f32}) // every time, also where it was asked for before
    expectError("w", type({2}, element), "element [1] is NaN");
}

TEST_F(WeightsTest, HashIsTheCheckpoints) {
  writeF32({1, 2});
  EXPECT_EQ(cantFail(weights->hash()), cantFail(checkpoint->hash()));
  EXPECT_EQ(cantFail(randomWeights(7)->hash()), "random-7");
}

TEST_F(WeightsTest, RandomOnesDependOnSeedNameAndShapeAlone) {
  auto first = [&](uint64_t seed, StringRef name, ArrayRef<int64_t> shape) {
    std::unique_ptr<Weights> random = randomWeights(seed);
    return *static_cast<const float *>(cantFail(random->get(name, type(shape, f32))));
  };
  EXPECT_EQ(first(1, "a", {8}), first(1, "a", {8}));
  EXPECT_NE(first(1, "a", {8}), first(2, "a", {8}));
  EXPECT_NE(first(1, "a", {8}), first(1, "b", {8}));
  EXPECT_NE(first(1, "a", {8}), first(1, "a", {9}));

  std::unique_ptr<Weights> random = randomWeights(1);
  auto *wide = static_cast<const float *>(cantFail(random->get("a", type({8}, f32))));
  auto *narrow = static_cast<const uint16_t *>(cantFail(random->get("a", type({8}, bf16))));
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(narrow[i], floatToBf16(wide[i]));
}

TEST_F(WeightsTest, RandomOnesHaveTheirDeviations) {
  std::unique_ptr<Weights> random = randomWeights(3);
  auto deviation = [&](ArrayRef<int64_t> shape) {
    mlir::RankedTensorType t = type(shape, f32);
    auto *x = static_cast<const float *>(cantFail(random->get("w", t)));
    double sum = 0, squares = 0, n = t.getNumElements();
    for (int64_t i = 0; i < t.getNumElements(); ++i)
      sum += x[i], squares += double(x[i]) * x[i];
    EXPECT_NEAR(sum / n, 0, 4 * std::sqrt(squares) / n);
    return std::sqrt(squares / n);
  };
  EXPECT_NEAR(deviation({400, 100}), 0.1, 0.002);
  EXPECT_NEAR(deviation({10000}), 0.3, 0.01);
}

} // namespace
