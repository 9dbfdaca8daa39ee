// Checkpoints whose scales are in tensors of their own: fp8 and mxfp4, valid and hostile.
#include "Fixture.h"
#include "ctxc/Checkpoint/Checkpoint.h"

using namespace ctxc;
using namespace ctxc::test;
using namespace llvm;

namespace {

struct Stored {
  std::string name, dtype, shape;
  std::string bytes;
};

struct ScaledTensors : TempDirectory {
  std::string quantization;
  std::vector<Stored> tensors;

  void fp8(StringRef more = "") {
    quantization = (R"("quant_method":"fp8","weight_block_size":[2,4])" + more).str();
    // 3 × 5: 1, 2, 1, 2, …
    std::string elements;
    for (int i = 0; i < 15; ++i)
      elements += char(i % 2 ? 0x40 : 0x38);
    tensors = {{"w.weight", "F8_E4M3", "[3,5]", elements},
               {"w.weight_scale_inv", "F32", "[2,2]", bytesOf({1, 10, 100, 1000})},
               {"n.weight", "F32", "[2]", bytesOf({1, 2})}};
  }
  void mxfp4() {
    quantization = R"("quant_method":"mxfp4")";
    // Two experts of 3 × 32; all numbers in the last row of the second are 2^2 · ½.
    std::string elements(96, '\x22'), scales(6, '\x7f');
    std::memset(elements.data() + 80, 0x11, 16);
    scales[5] = '\x81';
    tensors = {{"e_blocks", "U8", "[2,3,1,16]", elements}, {"e_scales", "U8", "[2,3,1]", scales}};
  }

  Expected<std::unique_ptr<Checkpoint>> open() {
    std::string header = "{", data;
    for (const Stored &tensor : tensors) {
      std::string begin = std::to_string(data.size());
      data += tensor.bytes;
      header += (header.size() > 1 ? ",\"" : "\"") + tensor.name + "\":{\"dtype\":\"" +
                tensor.dtype + "\",\"shape\":" + tensor.shape + ",\"data_offsets\":[" + begin +
                "," + std::to_string(data.size()) + "]}";
    }
    write("m/config.json", "{\"quantization_config\":{" + quantization + "}}");
    write("m/model.safetensors", fileOf(header + "}", data));
    return Checkpoint::open(path("m"));
  }
  std::string message() { return messageOf(open()); }
};

TEST_F(ScaledTensors, Fp8IsOneTensorWhereItIsStored) {
  fp8();
  auto checkpoint = open();
  ASSERT_TRUE(bool(checkpoint)) << toString(checkpoint.takeError());
  EXPECT_EQ((*checkpoint)->tensors().size(), 2u);
  EXPECT_EQ((*checkpoint)->find("w.weight_scale_inv"), nullptr);
  const TensorView *w = (*checkpoint)->find("w.weight");
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->dtype, DType::ScaledF8E4M3);
  EXPECT_TRUE(isQuantized(w->dtype) && hasScalesApart(w->dtype));
  EXPECT_EQ(w->matrices[0].elements, w->data); // mapped
  EXPECT_EQ(ArrayRef(w->shape), ArrayRef<int64_t>({3, 5}));
  std::vector<double> numbers(15);
  readDoubles(w->dtype, w->stored(), numbers);
  EXPECT_EQ(numbers,
            std::vector<double>({1, 2, 1, 2, 10, 2, 1, 2, 1, 20, 100, 200, 100, 200, 1000}));
  EXPECT_EQ(messageOf(checkFinite(*w)), "");
  EXPECT_EQ(messageOf(checkFinite(*(*checkpoint)->find("n.weight"))), "");
}

TEST_F(ScaledTensors, ABankOfFp8HasScalesForEachExpert) {
  fp8();
  tensors[0] = {"w.weight", "F8_E4M3", "[2,1,3]", "\x38\x38\x38\x38\x38\x38"};
  tensors[1].shape = "[2,1,1]";
  tensors[1].bytes = bytesOf({3, 5});
  auto checkpoint = open();
  ASSERT_TRUE(bool(checkpoint)) << toString(checkpoint.takeError());
  const TensorView *w = (*checkpoint)->find("w.weight");
  std::vector<float> numbers(6);
  readFloats(w->dtype, w->stored(), numbers);
  EXPECT_EQ(numbers, std::vector<float>({3, 3, 3, 5, 5, 5}));
  const void *second = sliceOf(w->dtype, w->stored(), 1, 3);
  readFloats(w->dtype, second, 1, MutableArrayRef(numbers).take_front(2));
  EXPECT_EQ(numbers[0], 5);
}

TEST_F(ScaledTensors, Mxfp4IsABankUnderTheNameOfTheParameter) {
  mxfp4();
  auto checkpoint = open();
  ASSERT_TRUE(bool(checkpoint)) << toString(checkpoint.takeError());
  EXPECT_EQ((*checkpoint)->tensors().size(), 1u);
  const TensorView *e = (*checkpoint)->find("e");
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->dtype, DType::MXFP4);
  EXPECT_EQ(ArrayRef(e->shape), ArrayRef<int64_t>({2, 3, 32}));
  std::vector<float> numbers(192);
  readFloats(e->dtype, e->stored(), numbers);
  for (int i = 0; i < 192; ++i)
    EXPECT_EQ(numbers[i], i < 160 ? 1 : 2) << i;
  EXPECT_EQ(e->matrices[1].elements, e->data + 48);
}

TEST_F(ScaledTensors, NothingIsJoinedUnlessTheConfigSaysSo) {
  for (StringRef said : {"", R"("quant_method":"other")", R"("quant_method":"mxfp4")"}) {
    fp8();
    tensors[1].name = "w.other";
    quantization = said.str();
    auto checkpoint = open();
    ASSERT_TRUE(bool(checkpoint)) << toString(checkpoint.takeError());
    EXPECT_EQ((*checkpoint)->find("w.weight")->dtype, DType::F8E4M3);
    EXPECT_EQ((*checkpoint)->tensors().size(), 3u);
  }
}

TEST_F(ScaledTensors, NumbersThatAreNotFinite) {
  fp8();
  tensors[0].bytes[6] = '\x7f';
  auto checkpoint = open();
  ASSERT_TRUE(bool(checkpoint)) << toString(checkpoint.takeError());
  EXPECT_HAS(messageOf(checkFinite(*(*checkpoint)->find("w.weight"))),
             "tensor 'w.weight': element [1, 1] is NaN, expected a finite number");
  fp8();
  tensors[1].bytes = bytesOf({1, 10, INFINITY, 1});
  checkpoint = open();
  ASSERT_TRUE(bool(checkpoint)) << toString(checkpoint.takeError());
  EXPECT_HAS(messageOf(checkFinite(*(*checkpoint)->find("w.weight"))),
             "tensor 'w.weight': element [2, 0] is infinity");
  mxfp4();
  tensors[1].bytes[3] = '\xff';
  checkpoint = open();
  ASSERT_TRUE(bool(checkpoint)) << toString(checkpoint.takeError());
  EXPECT_HAS(messageOf(checkFinite(*(*checkpoint)->find("e"))),
             "tensor 'e': element [1, 0, 0] is NaN");
}

TEST_F(ScaledTensors, EveryProblemIsReported) {
  fp8();
  tensors.push_back({"alone.weight", "F8_E4M3", "[1,1]", "\x38"});
  tensors.push_back({"none.weight_scale_inv", "F32", "[1,1]", bytesOf({1})});
  tensors.push_back({"flat.weight", "F8_E4M3", "[2]", "\x38\x38"});
  tensors.push_back({"empty.weight", "F8_E4M3", "[0,3]", ""});
  tensors.push_back({"typed.weight", "F8_E4M3", "[1,1]", "\x38"});
  tensors.push_back({"typed.weight_scale_inv", "I32", "[1,1]", bytesOf({1})});
  tensors.push_back({"square.weight", "F8_E4M3", "[3,5]", std::string(15, '\x38')});
  tensors.push_back({"square.weight_scale_inv", "F32", "[2,3]", bytesOf({1, 2, 3, 4, 5, 6})});
  std::string message = this->message();
  EXPECT_HAS(message, "tensor 'alone.weight' has no scales beside it; expected them as "
                      "'alone.weight_scale_inv'");
  EXPECT_HAS(message, "tensor 'none.weight_scale_inv' has scales, but 'none.weight' is not stored");
  EXPECT_HAS(message, "tensor 'flat.weight' has shape [2]; expected that of a matrix");
  EXPECT_HAS(message, "tensor 'empty.weight' has shape [0, 3]; expected that of a matrix");
  EXPECT_HAS(message, "tensor 'typed.weight_scale_inv' is stored as I32; expected F32, BF16 or "
                      "F8_E8M0");
  EXPECT_HAS(message, "tensor 'square.weight_scale_inv' has shape [2, 3]; expected [2, 2], one for "
                      "each 'weight_block_size' of 2 × 4 elements of [3, 5]");
}

TEST_F(ScaledTensors, EveryProblemOfMxfp4) {
  mxfp4();
  tensors.push_back({"alone_blocks", "U8", "[1,1,16]", std::string(16, 0)});
  tensors.push_back({"none_scales", "U8", "[1]", "1"});
  tensors.push_back({"typed_blocks", "I8", "[1,1,16]", std::string(16, 0)});
  tensors.push_back({"short_blocks", "U8", "[1,1,8]", std::string(8, 0)});
  tensors.push_back({"flat_blocks", "U8", "[16]", std::string(16, 0)});
  tensors.push_back({"e", "F32", "[1]", bytesOf({1})});
  tensors.push_back({"more_blocks", "U8", "[1,1,16]", std::string(16, 0)});
  tensors.push_back({"more_scales", "U8", "[1,2]", "12"});
  std::string message = this->message();
  EXPECT_HAS(message, "tensor 'alone_blocks' has no scales beside it; expected them as "
                      "'alone_scales'");
  EXPECT_HAS(message, "tensor 'none_scales' has scales, but 'none_blocks' is not stored");
  EXPECT_HAS(message, "tensor 'typed_blocks' is stored as I8; expected U8");
  EXPECT_HAS(message, "tensor 'short_blocks' has shape [1, 1, 8]; expected 16 as its last size");
  EXPECT_HAS(message, "tensor 'flat_blocks' has shape [16]; expected that of a matrix");
  EXPECT_HAS(message, "tensor 'e_blocks' is stored beside 'e'; expected one of the two");
  EXPECT_HAS(message, "tensor 'more_scales' has shape [1, 2]; expected [1, 1], one for each 16 "
                      "bytes of 'more_blocks'");
}

TEST_F(ScaledTensors, ABlockHasTwoPositiveSizes) {
  for (StringRef size : {"null", "7", "[]", "[128]", "[0,128]", "[128,-1]", "[1,2,3]", "[1.5,2]",
                         "[9223372036854775807,1]", "{}"}) {
    fp8();
    quantization = (R"("quant_method":"fp8","weight_block_size":)" + size).str();
    EXPECT_HAS(message(), "config.json: key 'quantization_config.weight_block_size' is not "
                          "understood; expected two integers");
  }
  fp8();
  quantization = R"("quant_method":"fp8")";
  tensors[1].shape = "[1,1]";
  tensors[1].bytes = bytesOf({1});
  EXPECT_EQ(message(), "");
}

} // namespace
