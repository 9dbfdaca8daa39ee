// The rules by which a description gives more than single numbers: what each of them writes, and
// the values that it refuses. Each is tested with a type that has it.
#include "Fixture.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::test;

namespace {

struct DescribedRules : ImportTest {
  std::string with(Changes changes) { return importedWith(config, changes); }

  json::Object config;
};

/// A list may have to hold the base of the rotation once for each layer.
TEST_F(DescribedRules, OneBaseForAllLayers) {
  config =
      json::Object{{"model_type", "granite_swa"}, {"hidden_size", 16}, {"intermediate_size", 12},
                   {"num_hidden_layers", 2},      {"vocab_size", 20},  {"num_attention_heads", 4}};
  std::string plain = with({});
  EXPECT_HAS(plain, "xf.layer @granite_swa_2(");
  EXPECT_EQ(with({{"layer_rope_theta", json::Array{10000, 10000.0}}}), plain);
  EXPECT_EQ(with({{"layer_rope_theta", nullptr}}), plain);
  EXPECT_EQ(with({{"rope_theta", 400}, {"layer_rope_theta", json::Array{400, 400}}}),
            with({{"rope_theta", 400}}));
  EXPECT_NE(with({{"rope_theta", 400}}), plain);
  const json::Value odd[] = {3,
                             "10000",
                             true,
                             json::Object{{"0", 10000}},
                             json::Array{},
                             json::Array{10000},
                             json::Array{10000, 10000, 10000},
                             json::Array{10000, 0},
                             json::Array{400, 400},
                             json::Array{-10000, -10000},
                             json::Array{1e300, 1e300},
                             json::Array{10000, "10000"},
                             json::Array{10000, nullptr},
                             json::Array{json::Array{10000}, 10000}};
  for (const json::Value &value : odd) {
    std::string said = with({{"layer_rope_theta", value}});
    EXPECT_HAS(said, "error: ");
    EXPECT_HAS(said, "key 'layer_rope_theta' = ");
    EXPECT_HAS(said, "expected 10000 for each layer, as 'rope_parameters' says, or a program by");
  }
}

/// The slopes of attention's biases follow from the number of heads.
TEST_F(DescribedRules, SlopesOfHeads) {
  config = json::Object{
      {"model_type", "mpt"}, {"d_model", 24}, {"n_heads", 6}, {"n_layers", 1}, {"vocab_size", 20}};
  EXPECT_HAS(with({}), "slopes = dense<[5.000000e-01, 1.250000e-01, 3.125000e-02, 7.812500e-03, "
                       "1.000000e+00, 2.500000e-01]> : tensor<6xf32>");
  EXPECT_HAS(with({{"d_model", 16}, {"n_heads", 4}}),
             "slopes = dense<[5.000000e-01, 1.250000e-01, 3.125000e-02, 7.812500e-03]>");
  EXPECT_HAS(with({{"d_model", 4}, {"n_heads", 1}}),
             "slopes = dense<7.812500e-03> : tensor<1xf32>");
  EXPECT_HAS(with({{"d_model", 1 << 18}, {"n_heads", 1 << 17}}),
             "n_heads is 131072; expected from 1 to 65536 heads, each of which has a slope");
  for (const json::Value &value : {json::Value(0), json::Value(-6), json::Value(1e300),
                                   json::Value("6"), json::Value(json::Array{6, 6})})
    EXPECT_HAS(with({{"n_heads", value}}), "error: ");
  EXPECT_HAS(with({{"n_heads", 7}}), "d_model / n_heads is 3.42857; expected a whole number");
}

/// Of an object that must be as it is, entries may be left out.
TEST_F(DescribedRules, EntriesOfAnObject) {
  config = json::Object{
      {"model_type", "mpt"}, {"d_model", 24}, {"n_heads", 6}, {"n_layers", 1}, {"vocab_size", 20}};
  std::string plain = with({});
  EXPECT_HAS(plain, "xf.model");
  EXPECT_EQ(with({{"attn_config", json::Object{}}}), plain);
  EXPECT_EQ(with({{"attn_config", json::Object{{"alibi", true}, {"clip_qkv", nullptr}}}}), plain);
  const json::Value odd[] = {nullptr,
                             3,
                             "alibi",
                             json::Array{},
                             json::Object{{"alibi", false}},
                             json::Object{{"alibi", true}, {"clip_qkv", 8}},
                             json::Object{{"alibi", true}, {"a_key_of_tomorrow", nullptr}},
                             json::Object{{"alibi_bias_max", -1}},
                             json::Object{{"softmax_scale", "0.1"}}};
  for (const json::Value &value : odd)
    EXPECT_HAS(with({{"attn_config", value}}), "key 'attn_config' = ");
}

/// An op may join a value as often as a head has entries.
TEST_F(DescribedRules, RunsOfOperands) {
  config =
      json::Object{{"model_type", "kimi_linear"}, {"hidden_size", 16}, {"intermediate_size", 12},
                   {"num_hidden_layers", 1},      {"vocab_size", 20},  {"linear_num_heads", 4},
                   {"linear_head_dim", 3}};
  StringRef one = "tensor<4x1xf32>";
  std::string three = with({}), five = with({{"linear_head_dim", 5}});
  EXPECT_HAS(three, ("along 1 : " + one + ", " + one + ", " + one + "\n").str());
  EXPECT_EQ(occurrences(five, one), occurrences(three, one) + 2);
  EXPECT_HAS(with({{"linear_head_dim", 1 << 17}}),
             "linear_head_dim is 131072; expected from 1 to 65536 values to join");
  const json::Value odd[] = {0, 1, -3, 1e300, "3", json::Array{3}};
  for (const json::Value &value : odd)
    EXPECT_HAS(with({{"linear_head_dim", value}}), "key 'linear_head_dim' = ");
}

/// Several ropes rotate the same part of a head, or are refused.
TEST_F(DescribedRules, OnePartOfAHead) {
  config = json::Object{{"model_type", "mimo_v2_flash"},
                        {"hidden_size", 16},
                        {"intermediate_size", 12},
                        {"num_hidden_layers", 2},
                        {"vocab_size", 20}};
  auto parts = [&](json::Value full, json::Value sliding) {
    auto rope = [](json::Value part) {
      return json::Object{{"rope_theta", 1e4}, {"partial_rotary_factor", std::move(part)}};
    };
    return with(
        {{"rope_parameters", json::Object{{"full_attention", rope(std::move(full))},
                                          {"sliding_attention", rope(std::move(sliding))}}}});
  };
  EXPECT_HAS(parts(0.5, 0.5), "xf.rotary");
  EXPECT_HAS(parts(0.5, 0.25), "rotates different parts of heads, which the description of");
  for (const json::Value &part : {json::Value(-0.5), json::Value(1e300), json::Value("0.5")})
    EXPECT_HAS(parts(part, 0.5), "partial_rotary_factor' = ");
}

/// A list may say how many layers there are, or an older key with a letter for each.
TEST_F(DescribedRules, AsManyLayersAsAListHas) {
  config = json::Object{{"model_type", "nemotron_h"}, {"hidden_size", 16}, {"vocab_size", 20}};
  const json::Array kinds{"mlp", "linear_attention", "mlp"};
  auto list = [](json::Array kinds) {
    return Changes::value_type("layers_block_type", std::move(kinds));
  };
  std::string three = with({list(kinds)});
  EXPECT_EQ(occurrences(three, " = xf.layer @"), 3u);
  EXPECT_EQ(with({{"hybrid_override_pattern", "-M-"}}), three);
  // The list counts, and a number beside it does not.
  EXPECT_EQ(with({list(kinds), {"hybrid_override_pattern", "M"}, {"num_hidden_layers", 7}}), three);
  EXPECT_EQ(occurrences(with({list(json::Array{"mlp"})}), " = xf.layer @"), 1u);
  EXPECT_HAS(with({}), "has no key 'layers_block_type', which a 'nemotron_h' needs");
  const json::Value odd[] = {json::Array{}, json::Object{{"0", "mlp"}}, "mlp", 3,
                             json::Array(std::vector<std::string>(10001, "mlp"))};
  for (const json::Value &value : odd)
    EXPECT_HAS(with({{"layers_block_type", value}}),
               "expected an array of 1 to 10000 entries, one for each layer");
  for (const json::Value &value :
       {json::Value(""), json::Value(7), json::Value(json::Array(kinds))})
    EXPECT_HAS(with({{"hybrid_override_pattern", value}}),
               "expected a word of 1 to 10000 letters, one for each layer");
  EXPECT_HAS(with({{"hybrid_override_pattern", "-?"}}), "has no layer 1 for");
  EXPECT_HAS(with({list(json::Array{"mlp", "M"})}), "has no layer 1 for");
  EXPECT_HAS(with({list(json::Array{"mlp", nullptr})}), "has no layer 1 for");
}

/// What the absence of a key says may be another value that means the same.
TEST_F(DescribedRules, AbsenceThatMeansTheSame) {
  config = json::Object{{"model_type", "nemotron_h"},
                        {"hidden_size", 16},
                        {"vocab_size", 20},
                        {"hybrid_override_pattern", "M"}};
  std::string plain = with({});
  EXPECT_HAS(plain, " = xf.layer @");
  EXPECT_EQ(with({{"use_mamba_kernels", true}}), plain);
  EXPECT_EQ(with({{"use_mamba_kernels", false}}), plain);
  for (const json::Value &value : {json::Value(nullptr), json::Value(1), json::Value("true")})
    EXPECT_HAS(with({{"use_mamba_kernels", value}}), "key 'use_mamba_kernels' = ");
}

static json::Object modernBertDecoder() {
  return json::Object{{"model_type", "modernbert-decoder"},
                      {"hidden_size", 16},
                      {"intermediate_size", 12},
                      {"num_hidden_layers", 2},
                      {"vocab_size", 20},
                      {"num_attention_heads", 2}};
}

/// A size may be what the class computes of a key that is no number of the program.
TEST_F(DescribedRules, SizeOfAnotherKey) {
  config = modernBertDecoder();
  EXPECT_HAS(with({}), "window = 64 : i64");
  EXPECT_HAS(with({{"local_attention", 10}}), "window = 5 : i64");
  EXPECT_EQ(with({{"sliding_window", 5}}), with({{"local_attention", 10}}));
  EXPECT_EQ(with({{"sliding_window", 5}, {"local_attention", 40}}), with({{"sliding_window", 5}}));
  EXPECT_HAS(with({{"local_attention", 9}}), "local_attention / 2 is 4.5; expected a whole number");
  EXPECT_HAS(with({{"local_attention", 2}}), "holds for 2 and more");
  for (const json::Value &value : {json::Value(0), json::Value(-6), json::Value(1e300),
                                   json::Value("6"), json::Value(nullptr)})
    EXPECT_HAS(with({{"local_attention", value}}), "key 'local_attention' = ");
}

/// Each activation is that of its own key.
TEST_F(DescribedRules, ActivationsOfSeveralKeys) {
  config = modernBertDecoder();
  auto words = [&](StringRef key) {
    std::string text = with({{key, "relu"}});
    return std::pair(occurrences(text, "xf.activation relu "),
                     occurrences(text, "xf.activation gelu "));
  };
  EXPECT_EQ(words("classifier_activation"), std::pair(int64_t(1), int64_t(2)));
  EXPECT_EQ(words("hidden_activation"), std::pair(int64_t(2), int64_t(1)));
}

/// A key may say the size that is left out, although the class then gives it another value.
TEST_F(DescribedRules, SizeOfAKeyThatTheClassReplaces) {
  config = json::Object{{"model_type", "bailing_hybrid"}, {"hidden_size", 16},
                        {"num_hidden_layers", 1},         {"vocab_size", 20},
                        {"num_attention_heads", 2},       {"num_key_value_heads", 2},
                        {"num_expert_group", 1},          {"topk_group", 1},
                        {"qk_rope_head_dim", 4}};
  std::string plain = with({});
  EXPECT_HAS(plain, "\"self_attn.q_proj.weight\" : tensor<256x16xf32>");
  EXPECT_EQ(with({{"head_dim", 128}}), plain);
  EXPECT_HAS(with({{"head_dim", 6}}), "\"self_attn.q_proj.weight\" : tensor<12x16xf32>");
  EXPECT_EQ(with({{"linear_head_dim", 6}}), with({{"head_dim", 6}}));
  // As transformers stores it.
  EXPECT_EQ(with({{"linear_head_dim", 6}, {"head_dim", 4}}), with({{"head_dim", 6}}));
  for (const json::Value &value : {json::Value(0), json::Value(-6), json::Value(1e300),
                                   json::Value("6"), json::Value(nullptr)})
    EXPECT_HAS(with({{"head_dim", value}}), "key 'head_dim' = ");
}

/// No key says the base of a rope that is always the same.
TEST_F(DescribedRules, BaseThatNoKeySays) {
  config = json::Object{{"model_type", "codegen"}, {"n_embd", 32}, {"n_layer", 1},
                        {"vocab_size", 20},        {"n_head", 4},  {"rotary_dim", 4}};
  EXPECT_HAS(with({}), "rope = dense<[1.000000e+00, 0.00999999977, 0.000000e+00, 0.000000e+00]>");
  EXPECT_HAS(with({{"rotary_dim", 2}}),
             "rope = dense<[1.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00]>");
  for (StringRef key : {"rope_theta", "rope_parameters"})
    EXPECT_HAS(with({{key, 400}}), ("key '" + key + "' = ").str());
  EXPECT_HAS(with({{"rotary_dim", 3}}), "is 3, of 8 entries of a head to rotate; expected an even");
  EXPECT_HAS(with({{"rotary_dim", 10}}), "is 10, of 8 entries of a head to rotate; expected an");
  EXPECT_HAS(with({{"n_head", 2}}), "n_head / 4 is 0.5; expected a whole number");
}

/// A rope may rotate a part of a head whose pairs are counted over the whole head.
TEST_F(DescribedRules, PairsCountedOverTheWholeHead) {
  config = json::Object{{"model_type", "lfm3"},
                        {"hidden_size", 16},
                        {"intermediate_size", 12},
                        {"num_hidden_layers", 1},
                        {"vocab_size", 20},
                        {"num_attention_heads", 2},
                        {"num_key_value_heads", 2},
                        {"head_dim", 8},
                        {"layer_types", json::Array{"full_attention"}}};
  auto rope = [&](json::Value type, json::Value part, json::Object full = {}) {
    full["rope_theta"] = 1e4;
    full["rope_type"] = std::move(type);
    full["partial_rotary_factor"] = std::move(part);
    json::Object sliding{{"rope_theta", 1e4}};
    return with({{"rope_parameters", json::Object{{"full_attention", std::move(full)},
                                                  {"sliding_attention", std::move(sliding)}}}});
  };
  EXPECT_HAS(rope("proportional", 0.5),
             "rope = dense<[1.000000e+00, 1.000000e-01, 0.000000e+00, 0.000000e+00]>");
  EXPECT_HAS(rope("proportional", 0.25),
             "rope = dense<[1.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00]>");
  for (const json::Value &type :
       {json::Value("default"), json::Value("linear"), json::Value("yarn"), json::Value(nullptr)})
    EXPECT_HAS(rope(type, 0.5), "is not supported for this rope; proportional is");
  EXPECT_HAS(rope("proportional", 0.4), "is 3, of 8 entries of a head to rotate; expected an even");
  EXPECT_HAS(rope("proportional", 0), "is 0, of 8 entries of a head to rotate; expected an even");
  for (const json::Value &part : {json::Value(-0.5), json::Value(1e300), json::Value("0.5")})
    EXPECT_HAS(rope("proportional", part), "partial_rotary_factor' = ");
  EXPECT_HAS(rope("proportional", 0.5, json::Object{{"factor", 2}}),
             "'rope_parameters.full_attention.factor'");
  EXPECT_HAS(with({}), "has no key 'rope_parameters', which a 'lfm3' needs");
}

/// A rope for a longer context may multiply the scores of attention, whatever it rotates by.
TEST_F(DescribedRules, ScoresThatARopeMultiplies) {
  config =
      json::Object{{"model_type", "youtu"},    {"hidden_size", 16},      {"intermediate_size", 12},
                   {"num_hidden_layers", 1},   {"vocab_size", 20},       {"num_attention_heads", 2},
                   {"num_key_value_heads", 2}, {"q_lora_rank", 6},       {"kv_lora_rank", 6},
                   {"qk_rope_head_dim", 4},    {"qk_nope_head_dim", 12}, {"v_head_dim", 8}};
  auto rope = [&](json::Object rope) {
    rope["rope_type"] = "yarn";
    rope["rope_theta"] = 1e4;
    rope["factor"] = 10;
    rope["original_max_position_embeddings"] = 64;
    return with({{"rope_parameters", std::move(rope)}});
  };
  EXPECT_HAS(rope({}), "scale 2.500000e-01");
  EXPECT_HAS(rope(json::Object{{"mscale_all_dim", 0}}), "scale 2.500000e-01");
  std::string both = rope(json::Object{{"mscale", 1}, {"mscale_all_dim", 1}});
  EXPECT_HAS(both, "scale 3.783840e-01");
  EXPECT_EQ(StringRef(both).count("amplitude"), 0u);
  EXPECT_HAS(rope(json::Object{{"mscale_all_dim", 1}}), "amplitude 1.23025846");
  for (const json::Value &odd : {json::Value(-1), json::Value("1"), json::Value(1e300)})
    EXPECT_HAS(rope(json::Object{{"mscale_all_dim", odd}}), "mscale_all_dim' = ");
  json::Object linear{
      {"rope_type", "linear"}, {"rope_theta", 1e4}, {"factor", 2}, {"mscale_all_dim", 1}};
  EXPECT_HAS(with({{"rope_parameters", std::move(linear)}}), "scale 0.285858");
}

} // namespace
