#include "ctxc/Export/ApplyPatch.h"
#include "Fixture.h"
#include <cmath>
#include <unistd.h>

using namespace ctxc;
using namespace ctxc::test;
using namespace llvm;

namespace {

struct ApplyPatch : PatchDirectory {
  std::unique_ptr<Checkpoint> opened(StringRef name) {
    auto checkpoint = Checkpoint::open(path(name));
    EXPECT_TRUE(bool(checkpoint)) << messageOf(std::move(checkpoint));
    return std::move(*checkpoint);
  }
  std::string apply(const Patch &p, StringRef out, std::optional<DType> storage = std::nullopt) {
    return messageOf(applyPatch(*checkpoint(), p, metadata(), path(out), storage));
  }
};

TEST_F(ApplyPatch, AddsThePatchInTheStoredTypes) {
  write("m/tokenizer.json", "{}");
  write("m/model.safetensors.index.json", "{}");
  auto report = applyPatch(*checkpoint(), patch(), metadata(), path("out"));
  ASSERT_TRUE(bool(report)) << messageOf(std::move(report));
  EXPECT_EQ(report->changed, 2u);
  EXPECT_EQ(names("out"), (std::vector<std::string>{"README.md", "config.json", "model.safetensors",
                                                    "tokenizer.json", "tokenizer.model"}));
  EXPECT_EQ(names(), (std::vector<std::string>{"m", "out"}));
  EXPECT_EQ(contentOf("out/config.json"), contentOf("m/config.json"));
  EXPECT_EQ(contentOf("out/tokenizer.model"), "pieces");
  auto out = opened("out");
  EXPECT_EQ(doublesOf(*out->find("layers.0.w")), (std::vector<double>{1.5, 2.25, 7, 3, 4.5, -2}));
  EXPECT_EQ(out->find("layers.0.norm")->dtype, DType::BF16);
  // The second entry's change is below half a unit in the last place.
  EXPECT_EQ(doublesOf(*out->find("layers.0.norm")), (std::vector<double>{1 + 0x1p-7, 1}));
  EXPECT_EQ(doublesOf(*out->find("untouched")), (std::vector<double>{0.5, 65504}));
  EXPECT_EQ(out->find("untouched")->dtype, DType::F16);
  EXPECT_EQ(out->files()[0]->metadata().at("format"), "pt");
  double change = (1 + 4) * (0.25 + 0.0625 + 16) + 0x1p-14 + 0x1p-18;
  EXPECT_NEAR(report->relativeRounding, std::sqrt(0x1p-18 / change), 1e-12);
}

TEST_F(ApplyPatch, SaysWhichTokenItIsFor) {
  write("m/README.md", "the model's own");
  ASSERT_EQ(apply(patch(), "out"), "");
  auto strings = opened("out")->files()[0]->metadata();
  EXPECT_EQ(strings.at("ctxc_patched_token"), "5");
  EXPECT_EQ(strings.at("ctxc_patched_position"), "2");
  EXPECT_EQ(strings.at("ctxc_kept_positions"), "0");
  EXPECT_EQ(strings.at("ctxc_original_model"), metadata().modelHash);
  // Of "2,17".
  EXPECT_EQ(strings.at("ctxc_context_sha256"),
            "6f8560a36f50648b13cbfd15e62bc36217fde47884c74c922ce992c7a9fdad33");
  std::string readme = contentOf("out/README.md");
  for (const char *part :
       {"| token | 5 |", "| position | 2,",
        "6f8560a36f50648b13cbfd15e62bc36217fde47884c74c922ce992c7a9fdad33", "MODEL_README.md",
        "| context that is still needed | the tokens at positions 0 |"})
    EXPECT_NE(readme.find(part), std::string::npos) << part;
  EXPECT_EQ(contentOf("out/MODEL_README.md"), "the model's own");
}

/// transformers refuses 0 where it expects a float.
TEST_F(ApplyPatch, ChangesNothingElseOfTheConfig) {
  write("m/config.json", R"({"noise": 0.0, "dtype" :"float32", "a \"dtype\": ": "dtype",
  "vision_config": {"dtype": "float32", "x": [{"dtype": "float32"}]}, "text_config": {"big": 1e3,
  "torch_dtype": "float16", "deep": {"dtype": "float16"}}})");
  ASSERT_EQ(apply(patch(), "out", DType::BF16), "");
  EXPECT_EQ(contentOf("out/config.json"),
            R"({"noise": 0.0, "dtype" :"bfloat16", "a \"dtype\": ": "dtype",
  "vision_config": {"dtype": "float32", "x": [{"dtype": "float32"}]}, "text_config": {"big": 1e3,
  "torch_dtype": "bfloat16", "deep": {"dtype": "float16"}}})");
}

TEST_F(ApplyPatch, StoresAllInTheTypeThatIsAskedFor) {
  write("m/config.json", "{\"torch_dtype\":\"float32\",\"eps\":1e-06,\"big\":9007199254740993,"
                         "\"text_config\":{\"dtype\":\"float16\"}}");
  ASSERT_EQ(apply(patch(), "out", DType::F32), "");
  auto out = opened("out");
  for (const TensorView &view : out->tensors())
    EXPECT_EQ(view.dtype, DType::F32);
  EXPECT_EQ(doublesOf(*out->find("layers.0.norm")), (std::vector<double>{1 + 0x1p-7, 1 + 0x1p-9}));

  ASSERT_EQ(apply(patch(), "bf16", DType::BF16), "");
  out = opened("bf16");
  EXPECT_EQ(out->find("layers.0.w")->dtype, DType::BF16);
  EXPECT_EQ(doublesOf(*out->find("untouched"))[1], 65536);
  EXPECT_EQ(out->config().getString("torch_dtype"), "bfloat16");
  EXPECT_EQ(out->config().get("dtype"), nullptr);
  EXPECT_EQ(out->config().getObject("text_config")->getString("dtype"), "bfloat16");
  EXPECT_EQ(out->config().getNumber("eps"), 1e-6);
  EXPECT_EQ(out->config().getInteger("big"), 9007199254740993);
}

TEST_F(ApplyPatch, AddsToSlicesOfATensor) {
  ASSERT_EQ(
      messageOf(writeSafetensors(
          path("m/model.safetensors"),
          {tensorOf("bank", DType::F32, {3, 2, 2}, {1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3})}, {})),
      "");
  Patch p;
  for (const char *name : {"bank[0]", "bank[2]"}) {
    ParameterPatch entry;
    entry.parameter = name;
    entry.shape = {2, 2};
    entry.u = {1, 10};
    entry.v = {0.5, 0.25};
    p.parameters.push_back(entry);
  }
  ASSERT_EQ(apply(p, "out"), "");
  EXPECT_EQ(doublesOf(*opened("out")->find("bank")),
            (std::vector<double>{1.5, 1.25, 6, 3.5, 2, 2, 2, 2, 3.5, 3.25, 8, 5.5}));
  p.parameters[1].parameter = "bank[3]";
  EXPECT_NE(apply(p, "beyond").find("the stored tensor, of shape [3, 2, 2], has no such slice"),
            std::string::npos)
      << apply(p, "beyond");
  p.parameters[1].parameter = "bank[1]";
  p.parameters[1].shape = {1, 2};
  p.parameters[1].u = {1};
  EXPECT_NE(apply(p, "shape").find("the patch has shape [1, 2], expected the stored [2, 2]"),
            std::string::npos)
      << apply(p, "shape");
}

TEST_F(ApplyPatch, CrossesChunks) {
  // More elements than are converted at a time, in rows that do not divide that number.
  int64_t rows = 301, columns = 1009;
  std::vector<double> stored(rows * columns);
  for (size_t i = 0; i < stored.size(); ++i)
    stored[i] = static_cast<double>(i % 1000);
  ASSERT_EQ(messageOf(writeSafetensors(path("m/model.safetensors"),
                                       {tensorOf("w", DType::F32, {rows, columns}, stored),
                                        tensorOf("x", DType::F32, {rows, columns}, stored)},
                                       {})),
            "");
  ParameterPatch w;
  w.parameter = "w";
  w.shape = {rows, columns};
  for (int64_t i = 0; i < rows; ++i)
    w.u.push_back(static_cast<double>(i));
  for (int64_t j = 0; j < columns; ++j)
    w.v.push_back(static_cast<double>(j));
  Patch p;
  p.parameters = {w};
  ASSERT_EQ(apply(p, "out"), "");
  auto out = opened("out");
  std::vector<double> patched = doublesOf(*out->find("w"));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      ASSERT_EQ(patched[i * columns + j], stored[i * columns + j] + double(i * j));
  EXPECT_EQ(doublesOf(*out->find("x")), stored);
}

TEST_F(ApplyPatch, LeavesNothingBehindOnFailure) {
  auto expect = [&](std::string message, StringRef part) {
    EXPECT_NE(message.find(part.str()), std::string::npos) << part.str() << " in " << message;
    EXPECT_EQ(names(), std::vector<std::string>{"m"});
  };
  expect(apply(patch(), "m"), "m: already exists");
  expect(apply(patch(), "m/"), "m: already exists");
  expect(apply(patch(), "m/config.json"), "already exists");
  expect(apply(patch(), "absent/out"), "cannot write");
  expect(apply(patch(), "m/config.json/out"), "cannot write");
  expect(messageOf(applyPatch(*checkpoint(), patch(), metadata(), "")), "cannot be written");
  expect(apply(patch(), "out", DType::I32), "cannot store weights as I32");
  // 65504 + 65504 fits F32 but not F16; the overflow is in the last tensor that is written.
  Patch huge = patch();
  huge.parameters[0].parameter = "untouched";
  huge.parameters[0].delta = {0, 65504};
  expect(apply(huge, "out"), "tensor 'untouched': element 1, changed, is 131008");
  huge.parameters[0].delta = {0};
  expect(apply(huge, "out"), "found 1 entries in delta");
  huge.parameters.resize(1);
  huge.parameters[0].parameter = "absent";
  huge.parameters[0].delta = {0, 0};
  expect(apply(huge, "out"), "'absent' of the patch is not in the checkpoint");
}

TEST_F(ApplyPatch, NoticesAFileCutShort) {
  auto source = checkpoint();
  PatchMetadata about = metadata();
  ASSERT_EQ(::truncate(path("m/model.safetensors").c_str(), source->files()[0]->dataStart() + 3),
            0);
  std::string message = messageOf(applyPatch(*source, patch(), about, path("out")));
  EXPECT_NE(message.find("file was cut short"), std::string::npos) << message;
  EXPECT_EQ(names(), std::vector<std::string>{"m"});
}

TEST_F(ApplyPatch, CopiesLinksOfAHubCacheButNoOthers) {
  write("hub/blobs/1", "of the cache");
  write("secret", "of somebody else");
  write("hub/snapshots/r/config.json", "{}");
  write("hub/snapshots/r/model.safetensors", contentOf("m/model.safetensors"));
  ASSERT_EQ(::symlink("../../blobs/1", path("hub/snapshots/r/vocab.txt").c_str()), 0);
  auto source = opened("hub/snapshots/r");
  ASSERT_EQ(messageOf(applyPatch(*source, patch(), metadata(), path("out"))), "");
  EXPECT_EQ(contentOf("out/vocab.txt"), "of the cache");
  ASSERT_EQ(::symlink("../../../secret", path("hub/snapshots/r/notes.txt").c_str()), 0);
  std::string message = messageOf(applyPatch(*source, patch(), metadata(), path("out2")));
  EXPECT_NE(message.find("outside the checkpoint's directory"), std::string::npos) << message;
  EXPECT_EQ(names(), (std::vector<std::string>{"hub", "m", "out", "secret"}));
}

} // namespace
