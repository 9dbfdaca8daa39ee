// What adapter_config.json says of modules; test/judge/keys/peft_config.py compares it with PEFT.
#include "lib/Export/PeftSettings.h"
#include "gtest/gtest.h"

using namespace llvm;
using namespace ctxc;

namespace {

Expected<PeftSettings> read(const std::string &members) {
  return PeftSettings::read("{\"peft_type\": \"LORA\"" + members + "}", "f");
}

std::string whyRefused(const std::string &members) {
  auto settings = read(members);
  return settings ? "accepted" : toString(settings.takeError());
}

std::string excludedBy(const std::string &members, StringRef module) {
  auto settings = read(members);
  if (!settings)
    return toString(settings.takeError());
  auto key = settings->excludedBy(module);
  return key ? key->str() : toString(key.takeError());
}

constexpr StringLiteral up = "model.layers.1.mlp.up_proj";

TEST(PeftSettings, FindModulesAsPeftDoes) {
  EXPECT_EQ(excludedBy(R"(, "target_modules": ["up_proj"])", up), "");
  EXPECT_EQ(excludedBy(R"(, "target_modules": ["p_proj"])", up), "target_modules");
  EXPECT_EQ(excludedBy(R"(, "target_modules": ".*\\.(up|down)_proj")", up), "");
  EXPECT_EQ(excludedBy(R"(, "target_modules": "up_proj")", up), "target_modules");
  EXPECT_EQ(excludedBy(R"(, "target_modules": "All-Linear")", up), "");
  EXPECT_EQ(
      excludedBy(R"(, "target_modules": ["up_proj"], "exclude_modules": ["mlp.up_proj"])", up),
      "exclude_modules");
  EXPECT_EQ(excludedBy(R"(, "target_modules": ["up_proj"], "layers_to_transform": [0, 2])", up),
            "layers_to_transform");
  EXPECT_EQ(excludedBy(R"(, "target_modules": ["up_proj"], "layers_to_transform": 1,
                          "layers_pattern": "blocks")",
                       up),
            "layers_pattern");
}

TEST(PeftSettings, TheFirstPatternInTheFilesOrderCounts) {
  auto settings = read(R"(, "r": 2, "lora_alpha": 6,
      "alpha_pattern": {"layers\\.1\\..*": 10, "up_proj": 4}, "rank_pattern": {"^up_proj": 7})");
  ASSERT_TRUE(bool(settings)) << toString(settings.takeError());
  EXPECT_EQ(cantFail(settings->factorOf(up, 2)), 5);
  EXPECT_EQ(cantFail(settings->factorOf("model.layers.0.mlp.up_proj", 2)), 2);
  EXPECT_EQ(cantFail(settings->factorOf("model.layers.0.mlp.down_proj", 2)), 3);
  EXPECT_NE(toString(settings->factorOf(up, 3).takeError())
                .find("key 'r' gives 'model.layers.1.mlp.up_proj' the rank 2"),
            std::string::npos);
}

TEST(PeftSettings, WhatIsAbsentIsPeftsDefault) {
  auto settings = read("");
  ASSERT_TRUE(bool(settings)) << toString(settings.takeError());
  EXPECT_EQ(cantFail(settings->factorOf(up, 8)), 1);
}

TEST(PeftSettings, RefusesOtherChangesByTheirKeys) {
  for (StringRef member :
       {R"("use_dora": true)", R"("bias": "all")", R"("init_lora_weights": "pissa_niter_4")",
        R"("alora_invocation_tokens": [])", R"("layer_replication": [[0, 2]])", R"("r": 0)",
        R"("lora_alpha": null)", R"("rank_pattern": {"a": 0})", R"("later_key": 1)",
        R"("layers_pattern": "h")"}) {
    StringRef key = member.split(':').first.drop_front().drop_back();
    std::string message = whyRefused(", " + member.str());
    EXPECT_NE(message.find("key '" + key.str() + "'"), std::string::npos) << message;
  }
}

TEST(PeftSettings, RefusesWhatPythonReadsInAnotherWay) {
  for (StringRef pattern : {"[[:alpha:]]+", "\\\\Qa\\\\E", "(?>a)", "(*FAIL)", "a{,3}", "a{2}{3}",
                            "\\\\x41", "(?i)a", "\\\\p{L}", "(?R)"})
    EXPECT_NE(
        whyRefused((", \"alpha_pattern\": {\"" + pattern + "\": 1}").str()).find("alpha_pattern"),
        std::string::npos)
        << pattern.str();
  for (StringRef pattern :
       {"[]a]+", "(?i:A)", "a{2,3}?", "(?P<n>a)|b", "(?<!x)a", "a{b", "\\\\.\\\\d\\\\w"})
    EXPECT_EQ(whyRefused((", \"alpha_pattern\": {\"" + pattern + "\": 1}").str()), "accepted")
        << pattern.str();
}

} // namespace
