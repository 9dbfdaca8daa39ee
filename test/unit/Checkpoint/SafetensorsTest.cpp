#include "ctxc/Checkpoint/Safetensors.h"
#include "Fixture.h"
#include <limits>

using namespace ctxc;
using namespace ctxc::test;
using namespace llvm;

namespace {

Expected<SafetensorsHeader> parse(StringRef file) {
  return parseSafetensorsHeader({reinterpret_cast<const uint8_t *>(file.data()), file.size()}, "f");
}

struct Safetensors : TempDirectory {};

TEST_F(Safetensors, ReadsAGoodFile) {
  std::string data = bytesOf({1, 2, 3, 4, 5, 6});
  std::string p =
      write("m.safetensors", fileOf(R"({"__metadata__":{"format":"pt"},)"
                                    R"("b":{"dtype":"F32","shape":[],"data_offsets":[20,24]},)"
                                    R"("none":{"dtype":"I64","shape":[3,0],"data_offsets":[0,0]},)"
                                    R"("\u0061":{"shape":[5],"dtype":"F32","data_offsets":[0,20]})"
                                    R"(}   )",
                                    data));
  auto file = SafetensorsFile::open(p);
  ASSERT_TRUE(bool(file)) << messageOf(std::move(file));
  EXPECT_EQ((*file)->metadata().at("format"), "pt");
  ASSERT_EQ((*file)->tensors().size(), 3u);
  const TensorView *a = (*file)->find("a"), *b = (*file)->find("b"), *none = (*file)->find("none");
  ASSERT_TRUE(a && b && none);
  EXPECT_EQ((*file)->find("c"), nullptr);
  EXPECT_EQ(a->elements(), 5);
  EXPECT_EQ(a->bytes, 20u);
  EXPECT_EQ(a->file, p);
  EXPECT_EQ(memcmp(a->data, data.data(), 20), 0);
  EXPECT_EQ(b->shape.size(), 0u);
  EXPECT_EQ(b->elements(), 1);
  EXPECT_EQ(memcmp(b->data, data.data() + 20, 4), 0);
  EXPECT_EQ(none->elements(), 0);
}

TEST_F(Safetensors, ReadsEveryDType) {
  for (int i = 0; i <= static_cast<int>(DType::U64); ++i) {
    auto dtype = static_cast<DType>(i);
    std::string size = std::to_string(bitsOf(dtype)); // size of 8 elements
    auto header = parse(fileOf("{\"t\":{\"dtype\":\"" + nameOf(dtype).str() +
                                   "\",\"shape\":[2,4],\"data_offsets\":[0," + size + "]}}",
                               std::string(bitsOf(dtype), 'x')));
    ASSERT_TRUE(bool(header)) << messageOf(std::move(header));
    EXPECT_EQ(header->entries[0].dtype, dtype);
  }
}

/// One tensor's entry of a file with 8 data bytes.
std::string entry(StringRef dtype, StringRef shape, StringRef offsets) {
  return ("{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}")
      .str();
}

struct Malformed {
  const char *what;
  std::string file;
  const char *message; ///< part of the message
};

std::vector<Malformed> malformed() {
  std::string eight(8, 'x'), good = entry("\"F32\"", "[2]", "[0,8]");
  std::string longLength = fileOf("{}"), hugeLength = fileOf("{}"), wrapping = fileOf("{}");
  support::endian::write64le(longLength.data(), 3);
  support::endian::write64le(hugeLength.data(), 100'000'001);
  support::endian::write64le(wrapping.data(), ~0ull - 7);
  auto one = [&](StringRef dtype, StringRef shape, StringRef offsets) {
    return fileOf("{\"t\":" + entry(dtype, shape, offsets) + "}", eight);
  };
  std::string deep(1'000'000, '[');
  return {
      {"no bytes for the length", "1234567", "found 7 bytes"},
      {"length beyond the file", longLength, "header length 3 exceeds the 2 bytes after it"},
      {"length beyond the limit", hugeLength, "exceeds the format's limit"},
      {"length that wraps", wrapping, "exceeds the format's limit"},
      {"empty header", fileOf(""), "header length is 0"},
      {"leading space", fileOf(" {}"), "begins with ' ', expected '{'"},
      {"not an object", fileOf("[]"), "begins with '[', expected '{'"},
      {"zip appended in place of a header", fileOf("PK\3\4"), "expected '{'"},
      {"not UTF-8", fileOf("{\"\xff\":1}"), "at byte 2: not valid UTF-8"},
      {"overlong UTF-8", fileOf("{\"\xc0\xaf\":1}"), "not valid UTF-8"},
      {"unfinished", fileOf("{\"t\":"), "ends where"},
      {"unfinished string", fileOf("{\"t"), "ends inside a string"},
      {"unfinished escape", fileOf("{\"t\\"), "ends inside a string"},
      {"text after the object", fileOf("{}x"), "after the end of the JSON text"},
      {"two objects", fileOf("{}{}"), "after the end of the JSON text"},
      {"lone high surrogate", fileOf("{\"\\ud800\":1}"), "lone surrogate"},
      {"lone low surrogate", fileOf("{\"\\udc00\":1}"), "lone surrogate"},
      {"two high surrogates", fileOf("{\"\\ud800\\ud800\":1}"), "lone surrogate"},
      {"bad escape", fileOf("{\"\\x\":1}"), "unknown escape"},
      {"control character", fileOf("{\"\n\":1}"), "control character"},
      {"deep arrays", fileOf("{\"t\":{\"x\":" + deep + "}}"), "nested more than 64 deep"},
      {"trailing comma", fileOf("{\"t\":" + good + ",}", eight), "expected '\"'"},
      {"same tensor twice", fileOf("{\"t\":" + good + ",\"t\":" + good + "}", eight),
       "'t' is given twice"},
      {"same tensor twice, escaped", fileOf("{\"t\":" + good + ",\"\\u0074\":" + good + "}", eight),
       "'t' is given twice"},
      {"metadata twice", fileOf("{\"__metadata__\":{},\"__metadata__\":{}}"), "given twice"},
      {"metadata key twice", fileOf("{\"__metadata__\":{\"a\":\"\",\"\\u0061\":\"\"}}"),
       "'a' is given twice"},
      {"metadata number", fileOf("{\"__metadata__\":{\"a\":1}}"), "not a string"},
      {"metadata nested", fileOf("{\"__metadata__\":{\"a\":{}}}"), "not a string"},
      {"metadata list", fileOf("{\"__metadata__\":[]}"), "expected '{'"},
      {"entry is null", fileOf("{\"t\":null}"), "expected '{'"},
      {"entry key twice",
       fileOf("{\"t\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],"
              "\"data_offsets\":[0,8]}}",
              eight),
       "'dtype' is given twice"},
      {"no dtype", fileOf("{\"t\":{\"shape\":[2],\"data_offsets\":[0,8]}}", eight), "no 'dtype'"},
      {"no shape", fileOf("{\"t\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", eight),
       "no 'shape'"},
      {"no offsets", fileOf("{\"t\":{\"dtype\":\"F32\",\"shape\":[2]}}", eight),
       "no 'data_offsets'"},
      {"unknown dtype", one("\"F33\"", "[2]", "[0,8]"), "unknown dtype 'F33'"},
      {"dtype in lower case", one("\"f32\"", "[2]", "[0,8]"), "unknown dtype 'f32'"},
      {"dtype is a number", one("-1", "[2]", "[0,8]"), "expected '\"'"},
      {"negative size", one("\"F32\"", "[-2]", "[0,8]"), "found '-2', expected an integer"},
      {"minus zero", one("\"F32\"", "[-0]", "[0,8]"), "found '-0', expected an integer"},
      {"fractional size", one("\"F32\"", "[2.0]", "[0,8]"), "found '2.0', expected an integer"},
      {"size in exponent form", one("\"F32\"", "[2e0]", "[0,8]"), "expected an integer"},
      {"huge number", one("\"F32\"", "[1e400]", "[0,8]"), "found '1e400', expected an integer"},
      {"2^63", one("\"F32\"", "[9223372036854775808]", "[0,8]"), "expected an integer"},
      {"2^64 + 2", one("\"F32\"", "[18446744073709551618]", "[0,8]"), "expected an integer"},
      {"leading zero", one("\"F32\"", "[02]", "[0,8]"), "expected ','"},
      {"plus sign", one("\"F32\"", "[+2]", "[0,8]"), "expected a number"},
      {"string size", one("\"F32\"", "[\"2\"]", "[0,8]"), "expected a number"},
      {"shape is a number", one("\"F32\"", "2", "[0,8]"), "expected '['"},
      {"product wraps to 2", one("\"F32\"", "[4294967296,4294967297,2]", "[0,8]"), "overflows"},
      {"a zero before the wrap", one("\"F32\"", "[0,4294967296,4294967296]", "[0,0]"), "overflows"},
      {"bytes wrap to 8", one("\"F32\"", "[4611686018427387906]", "[0,8]"), "overflows"},
      {"bits wrap", one("\"F64\"", "[288230376151711745]", "[0,8]"), "overflows"},
      {"2^60 elements in a few bytes", one("\"U8\"", "[1152921504606846975]", "[0,8]"),
       "found 8 bytes"},
      {"half a byte", one("\"F4\"", "[3]", "[0,1]"), "do not end on a byte"},
      {"six-bit rest", one("\"F6_E2M3\"", "[2]", "[0,2]"), "do not end on a byte"},
      {"negative offset", one("\"F32\"", "[2]", "[-8,0]"), "found '-8', expected an integer"},
      {"length -1", one("\"F32\"", "[2]", "[0,-1]"), "found '-1', expected an integer"},
      {"fractional offset", one("\"F32\"", "[2]", "[0,1.5]"), "found '1.5', expected an integer"},
      {"one offset", one("\"F32\"", "[2]", "[8]"), "found 1 data_offsets, expected 2"},
      {"three offsets", one("\"F32\"", "[2]", "[0,8,8]"), "found 3 data_offsets, expected 2"},
      {"end before begin", one("\"F32\"", "[2]", "[8,0]"), "end before they begin"},
      {"too small", one("\"F32\"", "[3]", "[0,8]"),
       "found 8 bytes in its data_offsets, expected 12"},
      {"too large", one("\"F32\"", "[1]", "[0,8]"),
       "found 8 bytes in its data_offsets, expected 4"},
      {"hole before the first", one("\"F32\"", "[1]", "[4,8]"), "there is a hole"},
      {"hole between",
       fileOf("{\"a\":" + entry("\"U8\"", "[2]", "[0,2]") +
                  ",\"b\":" + entry("\"U8\"", "[5]", "[3,8]") + "}",
              eight),
       "there is a hole"},
      {"overlap",
       fileOf("{\"a\":" + entry("\"U8\"", "[5]", "[0,5]") +
                  ",\"b\":" + entry("\"U8\"", "[4]", "[4,8]") + "}",
              eight),
       "tensors overlap"},
      {"same bytes twice", fileOf("{\"a\":" + good + ",\"b\":" + good + "}", eight),
       "tensors overlap"},
      {"data cut short", fileOf("{\"t\":" + good + "}", "1234567"),
       "need 8 bytes, but only 7 follow the header"},
      {"offset near 2^63", one("\"U8\"", "[9223372036854775800]", "[0,9223372036854775800]"),
       "overflows"},
      {"trailing byte", fileOf("{\"t\":" + good + "}", eight + "x"),
       "found 1 bytes after the last tensor"},
      {"bytes without tensors", fileOf("{}", "PK\3\4"), "found 4 bytes after the last tensor"},
  };
}

TEST_F(Safetensors, RefusesEveryMalformedFile) {
  for (const Malformed &m : malformed()) {
    SCOPED_TRACE(m.what);
    auto header = parse(m.file);
    ASSERT_FALSE(bool(header));
    std::string message = messageOf(std::move(header));
    EXPECT_NE(message.find(m.message), std::string::npos) << message;
    EXPECT_EQ(message.rfind("f: ", 0), 0u) << message;
    EXPECT_LT(message.size(), 2000u);
  }
}

TEST_F(Safetensors, ReportsAllTensorsAtOnceButNotAMillion) {
  std::string header = "{\"a\":" + entry("\"F33\"", "[2]", "[0,8]") +
                       ",\"b\":" + entry("\"F32\"", "[3]", "[0,8]") + "}";
  std::string message = messageOf(parse(fileOf(header, "12345678")));
  EXPECT_NE(message.find("tensor 'a'"), std::string::npos) << message;
  EXPECT_NE(message.find("tensor 'b'"), std::string::npos) << message;

  header = "{";
  for (int i = 0; i < 1000; ++i)
    header += (i ? ",\"" : "\"") + std::to_string(i) + "\":" + entry("\"F33\"", "[2]", "[0,8]");
  EXPECT_LT(messageOf(parse(fileOf(header + "}", "12345678"))).size(), 3000u);
}

/// Every prefix of a file, and every byte replaced by some revealing values: the answer is never a
/// crash, and what is accepted lies inside the file.
TEST_F(Safetensors, SurvivesMutation) {
  std::string good = fileOf(R"({"__metadata__":{"a":"b"},"x":{"dtype":"F32","shape":[1,2],)"
                            R"("data_offsets":[0,8]},"y":{"dtype":"BF16","shape":[],)"
                            R"("data_offsets":[8,10]}} )",
                            "0123456789");
  ASSERT_TRUE(bool(parse(good)));
  unsigned refused = 0;
  auto check = [&](const std::string &file) {
    auto header = parse(file);
    if (!header) {
      ++refused;
      EXPECT_NE(messageOf(std::move(header)), "");
      return;
    }
    for (const SafetensorsEntry &e : header->entries)
      ASSERT_LE(header->dataStart + e.end, file.size());
  };
  for (size_t n = 0; n < good.size(); ++n)
    check(good.substr(0, n));
  EXPECT_EQ(refused, good.size());
  for (size_t i = 0; i < good.size(); ++i)
    for (char c : {'\0', '\xff', '"', '\\', '{', '}', '[', ']', ',', '-', '9', 'e', ' '}) {
      std::string changed = good;
      changed[i] = c;
      check(changed);
    }
  EXPECT_GT(refused, 2 * good.size());
}

TEST_F(Safetensors, RefusesWhatIsNoRegularFile) {
  EXPECT_NE(messageOf(SafetensorsFile::open(path("absent"))).find("cannot open"),
            std::string::npos);
  EXPECT_NE(messageOf(SafetensorsFile::open(path("."))).find("is a directory"), std::string::npos);
  EXPECT_NE(messageOf(SafetensorsFile::open("/dev/zero")).find("is a device"), std::string::npos);
  EXPECT_NE(messageOf(SafetensorsFile::open(write("e", ""))).find("the file is empty"),
            std::string::npos);
}

template <typename Word> std::string withElement(const char *dtype, Word bad, size_t at) {
  std::vector<Word> values(3 * 5000);
  if (at < values.size())
    values[at] = bad;
  size_t bytes = values.size() * sizeof(Word);
  return fileOf("{\"w\":{\"dtype\":\"" + std::string(dtype) +
                    "\",\"shape\":[3,5000],\"data_offsets\":[0," + std::to_string(bytes) + "]}}",
                StringRef(reinterpret_cast<const char *>(values.data()), bytes));
}

TEST_F(Safetensors, FindsElementsThatAreNotFinite) {
  auto check = [&](const std::string &content) {
    auto file = SafetensorsFile::open(write("w", content));
    EXPECT_TRUE(bool(file));
    return messageOf(checkFinite(*(*file)->find("w")));
  };
  EXPECT_EQ(check(withElement<uint32_t>("F32", 0x7f7fffff, 7)), "");
  EXPECT_EQ(check(withElement<uint32_t>("I32", 0x7fc00000, 7)), "");
  EXPECT_NE(check(withElement<uint32_t>("F32", 0x7fc00000, 5007)).find("element [1, 7] is NaN"),
            std::string::npos);
  EXPECT_NE(check(withElement<uint32_t>("F32", 0xff800000, 14999)).find("[2, 4999] is -infinity"),
            std::string::npos);
  EXPECT_NE(check(withElement<uint16_t>("F16", 0x7c00, 0)).find("element [0, 0] is infinity"),
            std::string::npos);
  EXPECT_EQ(check(withElement<uint16_t>("F16", 0x7bff, 0)), "");
  EXPECT_NE(check(withElement<uint16_t>("BF16", 0xffc1, 4999)).find("[0, 4999] is NaN"),
            std::string::npos);
  EXPECT_EQ(check(withElement<uint16_t>("BF16", 0x7c00, 4999)), "");
  EXPECT_NE(check(withElement<uint64_t>("F64", 0x7ff0000000000000, 4999)).find("is infinity"),
            std::string::npos);
  std::string message = check(withElement<uint32_t>("F32", 0x7fc00000, 1));
  EXPECT_EQ(message.find(path("w") + ": tensor 'w': "), 0u) << message;
}

} // namespace
