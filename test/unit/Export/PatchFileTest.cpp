#include "ctxc/Export/PatchFile.h"
#include "Fixture.h"
#include <cmath>
#include <limits>

using namespace ctxc;
using namespace ctxc::test;
using namespace llvm;

namespace {

struct PatchFile : PatchDirectory {
  /// The message of reading a file with these tensors and metadata.
  std::string read(std::vector<TensorSource> tensors, std::map<std::string, std::string> strings) {
    EXPECT_EQ(messageOf(writeSafetensors(path("p"), std::move(tensors), strings)), "");
    return messageOf(readPatchFile(path("p")));
  }
  std::map<std::string, std::string> good() {
    return {{"format_version", "1"}, {"model_hash", std::string(64, 'a')},
            {"tokens", "1,2,3"},     {"position", "2"},
            {"kept", "0,1"},         {"update", "least"},
            {"dtype", "f32"}};
  }
};

TEST_F(PatchFile, RoundTrips) {
  ASSERT_EQ(messageOf(writePatchFile(path("p"), patch(), metadata())), "");
  auto read = readPatchFile(path("p"));
  ASSERT_TRUE(bool(read)) << messageOf(std::move(read));
  const auto &[back, meta] = *read;
  Patch wanted = patch();
  ASSERT_EQ(back.parameters.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(back.parameters[i].parameter, wanted.parameters[i].parameter);
    EXPECT_EQ(back.parameters[i].kind, wanted.parameters[i].kind);
    EXPECT_EQ(back.parameters[i].shape, wanted.parameters[i].shape);
    EXPECT_EQ(back.parameters[i].u, wanted.parameters[i].u);
    EXPECT_EQ(back.parameters[i].v, wanted.parameters[i].v);
    EXPECT_EQ(back.parameters[i].delta, wanted.parameters[i].delta);
  }
  PatchMetadata m = metadata();
  EXPECT_EQ(meta.modelHash, m.modelHash);
  EXPECT_EQ(meta.tokens, m.tokens);
  EXPECT_EQ(meta.position, m.position);
  EXPECT_EQ(meta.kept, m.kept);
  EXPECT_EQ(meta.update, m.update);
  EXPECT_EQ(meta.dtype, m.dtype);

  auto file = SafetensorsFile::open(path("p"));
  ASSERT_TRUE(bool(file));
  EXPECT_EQ((*file)->find("layers.0.w.u")->shape, (SmallVector<int64_t, 4>{2, 1}));
  EXPECT_EQ((*file)->find("layers.0.w.v")->shape, (SmallVector<int64_t, 4>{3, 1}));
  EXPECT_EQ((*file)->find("layers.0.norm.delta")->shape, (SmallVector<int64_t, 4>{2}));
  EXPECT_EQ((*file)->metadata().at("tokens"), "2,17,5");
}

TEST_F(PatchFile, ReadsLayersInOrder) {
  Patch many;
  for (const char *name : {"layers.10.a", "layers.9.b", "layers.9.a", "layers.100.a"}) {
    ParameterPatch p;
    p.parameter = name;
    p.kind = ParameterPatch::Kind::Delta;
    p.shape = {1};
    p.delta = {1};
    many.parameters.push_back(p);
  }
  ASSERT_EQ(messageOf(writePatchFile(path("p"), many, metadata())), "");
  auto read = readPatchFile(path("p"));
  ASSERT_TRUE(bool(read));
  std::vector<std::string> order;
  for (const ParameterPatch &p : read->first.parameters)
    order.push_back(p.parameter);
  EXPECT_EQ(order,
            (std::vector<std::string>{"layers.9.a", "layers.9.b", "layers.10.a", "layers.100.a"}));
}

TEST_F(PatchFile, KnowsTheRowsInPlaceOfTokens) {
  PatchMetadata m = metadata();
  m.tokens = {2, -1, -1, 5};
  m.position = 3;
  m.embeddingsDigest = std::string(60, '0') + "cafe";
  ASSERT_EQ(messageOf(writePatchFile(path("p"), patch(), m)), "");
  auto read = readPatchFile(path("p"));
  ASSERT_TRUE(bool(read));
  EXPECT_EQ(read->second.tokens, m.tokens);
  EXPECT_EQ(read->second.embeddingsDigest, m.embeddingsDigest);
}

TEST_F(PatchFile, RefusesToWriteWhatCouldNotBeRead) {
  auto expect = [&](auto change, StringRef part) {
    Patch p = patch();
    PatchMetadata m = metadata();
    change(p, m);
    std::string message = messageOf(writePatchFile(path("p"), p, m));
    EXPECT_NE(message.find(part.str()), std::string::npos) << part.str() << " in " << message;
    EXPECT_EQ(names(), std::vector<std::string>{"m"});
  };
  using P = Patch;
  using M = PatchMetadata;
  expect([](P &p, M &) { p.parameters[1].u.push_back(0); }, "found 3 entries in u, expected 2");
  expect([](P &p, M &) { p.parameters[1].v.pop_back(); }, "found 2 entries in v, expected 3");
  expect([](P &p, M &) { p.parameters[1].u[1] = NAN; }, "entry 1 of u is not a finite");
  expect([](P &p, M &) { p.parameters[0].delta[0] = 1e39; }, "entry 0 of delta is not a finite");
  expect([](P &p, M &) { p.parameters[1].shape = {2, 3, 1}; }, "found shape [2, 3, 1]");
  expect([](P &p, M &) { p.parameters[0].shape = {-2}; }, "found shape [-2]");
  expect([](P &p, M &) { p.parameters.push_back(p.parameters[0]); }, "is patched twice");
  expect([](P &, M &m) { m.modelHash = "short"; }, "found model_hash 'short'");
  expect([](P &, M &m) { m.position = 3; }, "found position 3, expected one of the 3 tokens");
  expect([](P &, M &m) { m.position = -1; }, "found position '-1'");
  expect([](P &, M &m) { m.tokens.clear(); }, "found tokens ''");
  expect([](P &, M &m) { m.tokens[1] = -1; }, "metadata has no 'rows_digest'");
  expect([](P &, M &m) { m.tokens[1] = -2; }, "found tokens '2,-2,5'");
  expect([](P &, M &m) { m.embeddingsDigest = std::string(64, 'a'); },
         "and no embedding stands in place of a token");
  expect(
      [](P &, M &m) {
        m.tokens[1] = -1;
        m.embeddingsDigest = "A";
      },
      "found rows_digest 'A', expected 64 lower-case");
  expect([](P &, M &m) { m.kept = {1, 1}; }, "found kept position 1");
  expect([](P &, M &m) { m.update = "best"; }, "found update 'best'");
  expect([](P &, M &m) { m.dtype = "f64"; }, "found dtype 'f64'");
  Error e = writePatchFile(path("absent/p"), patch(), metadata());
  EXPECT_NE(messageOf(std::move(e)).find("cannot write"), std::string::npos);
}

TEST_F(PatchFile, RefusesBadTensors) {
  TensorSource u = tensorOf("a.u", DType::F32, {2, 1}, {1, 2});
  TensorSource v = tensorOf("a.v", DType::F32, {3, 1}, {1, 2, 3});
  TensorSource delta = tensorOf("a.delta", DType::F32, {2}, {1, 2});
  auto expect = [&](std::vector<TensorSource> tensors, StringRef part) {
    std::string message = read(std::move(tensors), good());
    EXPECT_NE(message.find(part.str()), std::string::npos) << part.str() << " in " << message;
    EXPECT_EQ(message.find(path("p") + ": "), 0u) << message;
  };
  EXPECT_EQ(read({u, v}, good()), "");
  EXPECT_EQ(read({delta}, good()), "");
  expect({u}, "has 'a.u' but not 'a.v'");
  expect({v}, "has 'a.v' but not 'a.u'");
  expect({u, v, delta}, "both a delta and a rank1 patch");
  expect({u, delta}, "both a delta and a rank1 patch");
  expect({u, tensorOf("a.v", DType::F32, {3, 2}, {1, 2, 3, 4, 5, 6})},
         "'a.v': found shape [3, 2], expected (k, 1)");
  expect({tensorOf("a.u", DType::F32, {2}, {1, 2}), v}, "'a.u': found shape [2], expected (k, 1)");
  expect({tensorOf("a.u", DType::BF16, {2, 1}, {1, 2}), v}, "'a.u': found BF16, expected F32");
  expect({u, v, tensorOf("a.weight", DType::F32, {1}, {1})},
         "'a.weight': expected a parameter's name with .u, .v or .delta");
  expect({tensorOf("u", DType::F32, {1, 1}, {1})}, "'u': expected a parameter's name");
  expect({tensorOf(".u", DType::F32, {1, 1}, {1})}, "'.u': expected a parameter's name");
  expect({u, tensorOf("a.v", DType::F32, {3, 1}, {1, NAN, 3})}, "element [1, 0] is NaN");
  expect({tensorOf("a.delta", DType::F32, {2}, {1, -INFINITY})}, "element [1] is -infinity");
}

TEST_F(PatchFile, RefusesBadMetadata) {
  TensorSource delta = tensorOf("a.delta", DType::F32, {2}, {1, 2});
  auto expect = [&](const char *key, std::string value, StringRef part) {
    auto strings = good();
    strings[key] = value;
    std::string message = read({delta}, strings);
    EXPECT_NE(message.find(part.str()), std::string::npos) << part.str() << " in " << message;
  };
  auto noteless = good();
  noteless["a key of a later version"] = "is left alone";
  EXPECT_EQ(read({delta}, noteless), "");
  expect("format_version", "3", "found format_version '3', expected '1'");
  expect("format_version", "2", "holds the patches of several positions");
  expect("model_hash", std::string(63, 'a'), "expected 64 lower-case hexadecimal digits");
  expect("model_hash", std::string(64, 'G'), "expected 64 lower-case hexadecimal digits");
  for (std::string list : {"", "1,,2", "1, 2", "-1", "1,2.0", "9223372036854775808", "x", ","})
    expect("tokens", list, "found tokens '" + list + "', expected token ids");
  for (std::string number : {"", "-1", "1.5", "1e0", "0x1", "18446744073709551616", " 1"})
    expect("position", number, "found position '" + number + "', expected a non-negative");
  expect("position", "3", "expected one of the 3 tokens");
  expect("kept", "1,0", "found kept position 0");
  expect("kept", "2", "found kept position 2");
  expect("kept", "0,x", "found kept '0,x'");
  expect("update", "Least", "found update 'Least'");
  expect("dtype", "float32", "found dtype 'float32'");
  for (const auto &[key, value] : good()) {
    auto strings = good();
    strings.erase(key);
    EXPECT_NE(read({delta}, strings).find("metadata has no '" + key + "'"), std::string::npos);
  }
}

TEST_F(PatchFile, ReportsAllProblemsAtOnce) {
  auto strings = good();
  strings["position"] = "x";
  strings["dtype"] = "x";
  std::string message =
      read({tensorOf("a.u", DType::F32, {2, 1}, {1, 2}), tensorOf("b", DType::F32, {1}, {1}),
            tensorOf("c.delta", DType::F32, {1}, {NAN})},
           strings);
  for (std::string part : {"position", "dtype", "'a.v'", "tensor 'b'", "is NaN"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
}

TEST_F(PatchFile, IsCheckedAgainstTheCheckpoint) {
  auto m = checkpoint();
  EXPECT_EQ(messageOf(checkAgainst(*m, patch(), metadata())), "");
  Patch bad = patch();
  bad.parameters[0].shape = {1, 2};
  bad.parameters[1].parameter = "layers.1.w";
  PatchMetadata other = metadata();
  other.modelHash = std::string(64, '0');
  std::string message = messageOf(checkAgainst(*m, bad, other));
  for (std::string part :
       {"expected " + other.modelHash, "found weights with hash " + metadata().modelHash,
        std::string("'layers.1.w' of the patch is not in the checkpoint"),
        std::string("has shape [1, 2], expected the stored [2]")})
    EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
}

} // namespace
