#include "ctxc/Checkpoint/SentencePooling.h"
#include "Fixture.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::test;

namespace {

struct SentencePooling : TempDirectory {
  void SetUp() override {
    TempDirectory::SetUp();
    write("config.json", "{}");
    write("model.safetensors", fileOf("{}"));
  }
  /// Writes modules.json with these classes, and the pooling's config.
  void modules(std::vector<std::string> classes,
               StringRef config = R"({"pooling_mode_mean_tokens":true})") {
    std::string text;
    for (auto [i, name] : enumerate(classes))
      text += std::string(i ? "," : "") + R"({"idx":)" + std::to_string(i) + R"(,"path":")" +
              (i ? std::to_string(i) + "_" + StringRef(name).rsplit('.').second.str() : "") +
              R"(","type":")" + name + "\"}";
    write("modules.json", "[" + text + "]");
    write("1_Pooling/config.json", config);
  }
  /// In words, or why it is not read.
  std::string read() {
    std::unique_ptr<Checkpoint> checkpoint = cantFail(Checkpoint::open(path("")));
    Expected<std::optional<Pooling>> pooling = readPooling(*checkpoint);
    if (!pooling)
      return toString(pooling.takeError());
    return *pooling ? describe(**pooling) : "none";
  }

  const std::string first = "sentence_transformers.models.Transformer",
                    second = "sentence_transformers.models.Pooling",
                    third = "sentence_transformers.models.Normalize";
};

TEST_F(SentencePooling, AsTheModulesSay) {
  EXPECT_EQ(read(), "none");
  modules({first, second});
  EXPECT_EQ(read(), "the mean");
  modules({first, second, third});
  EXPECT_EQ(read(), "the mean, scaled to length 1");
  for (auto [config, words] :
       {std::pair<StringRef, StringRef>{R"({"pooling_mode_cls_token":true})", "the first token's"},
        {R"({"pooling_mode_lasttoken":true,"word_embedding_dimension":4,"include_prompt":true,)"
         R"("pooling_mode_mean_tokens":false})",
         "the last token's"},
        {R"({"pooling_mode_mean_tokens":true,"pooling_mode_max_tokens":true})",
         "the largest and the mean"},
        {R"({"pooling_mode":"weightedmean","embedding_dimension":4})",
         "the mean weighted by position"}}) {
    modules({"sentence_transformers.base.modules.transformer.Transformer", second}, config);
    EXPECT_EQ(read(), words.str());
  }
}

TEST_F(SentencePooling, WhatIsNotUnderstoodIsRefused) {
  modules({first, second, "sentence_transformers.models.Dense", third});
  EXPECT_HAS(read(), "modules.json: module 'Dense' in '2_Dense' is not read; expected a "
                     "Transformer, a Pooling and a Normalize");
  modules({first});
  EXPECT_HAS(read(), "modules.json: has no module Pooling");
  modules({first, second}, R"({"pooling_mode_mean_tokens":false})");
  EXPECT_HAS(read(), "1_Pooling/config.json: turns no way of pooling on");
  modules({first, second}, R"({"pooling_mode_mean_tokens":true,"pooling_mode_new_tokens":true})");
  EXPECT_HAS(read(), "1_Pooling/config.json: key 'pooling_mode_new_tokens' is not understood");
  modules({first, second}, R"({"pooling_mode":"other"})");
  EXPECT_HAS(read(), "key 'pooling_mode' is not understood");
  write("modules.json", R"([{"idx":0,"path":"../..","type":"a.Transformer"},)"
                        R"({"idx":1,"path":"../1_Pooling","type":"a.Pooling"}])");
  EXPECT_HAS(read(), "module 'Pooling' in '../1_Pooling' is not read");
  write("modules.json", "{");
  EXPECT_HAS(read(), "modules.json: at byte");
}

} // namespace
