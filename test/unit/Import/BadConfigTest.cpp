// Configs that must not be imported: every key that would change the results, every value out of
// range, and whatever a hostile file may contain.
#include "Fixture.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::test;

namespace {

using BadConfig = ImportTest;

TEST_F(BadConfig, UnknownArchitecture) {
  std::string message = importedWith("llama", {{"model_type", "gpt5"}});
  EXPECT_HAS(message,
             "config.json: key 'model_type' = 'gpt5' is not supported; did you mean 'gpt2'?\n");
  size_t known =
      supportedModelTypes().size() + describedModelTypes().size() + wrapperModelTypes().size();
  EXPECT_HAS(message, "\nnote: " + std::to_string(known) + " are, which docs/supported.md lists");
  EXPECT_HAS(message, "\nnote: other ways in: python -m ctxc.export (docs/check-your-");
  SmallVector<StringRef> lines;
  StringRef(message).split(lines, '\n');
  EXPECT_EQ(lines.size(), 3u);
  for (StringRef line : ArrayRef(lines).drop_front())
    EXPECT_LE(line.size(), 100u);
  EXPECT_HAS(importedWith("llama", {{"model_type", "my-own-thing"}}), " is not supported\nnote: ");
  EXPECT_HAS(importedWith("llama", {{"model_type", nullptr}}), "key 'model_type' = null");
}

TEST_F(BadConfig, TheValueOfAnUnreadKeyDecides) {
  std::string llama = importedWith("llama", {});
  // Off, at its default, of training, and of bookkeeping.
  EXPECT_EQ(importedWith("llama", {{"use_mrope", false},
                                   {"residual_multiplier", 1.0},
                                   {"activation_dropout", 0.1},
                                   {"unsloth_fixed", true},
                                   {"num_local_experts", 0},
                                   {"layer_types", json::Array{"full_attention"}},
                                   {"of_which_nothing_is_known", json::Array()}}),
            llama);
  EXPECT_EQ(importedWith("llama", {{"residual_multiplier", nullptr}}), llama);
  EXPECT_HAS(importedWith("llama", {{"use_mrope", true}}),
             "config.json: key 'use_mrope' = true is not understood: it may mean that positions "
             "have several axes, as those of images; expected it to be off or absent (remove the "
             "key if it changes no number)");
  EXPECT_HAS(importedWith("llama", {{"residual_multiplier", 0.25}}),
             "key 'residual_multiplier' = 0.25 is not understood: it may mean a factor of some "
             "values; expected 1 or no such key");
  EXPECT_HAS(importedWith("llama", {{"layer_types", json::Array{"sliding_attention"}}}),
             "it may mean layers of several kinds; expected \"full_attention\" or no such key");
  EXPECT_HAS(importedWith("llama", {{"norm_topk_prob", false}}), "expected no such key (remove");
  EXPECT_HAS(importedWith("llama", {{"of_which_nothing_is_known", 3}}),
             "is not understood: it may mean a variant of the block");
}

TEST_F(BadConfig, UnreadKeysOfNestedObjectsAndOfOneFamily) {
  EXPECT_HAS(importedWith("llama", {{"quantization_config", json::Object{{"bits", 4}}}}),
             "key 'quantization_config' = {\"bits\":4} is not supported; a quant_method of fp8");
  json::Object full{{"beta", 2}};
  json::Object rope{{"full_attention", std::move(full)}};
  EXPECT_HAS(importedWith("gemma3", {{"rope_parameters", std::move(rope)}}),
             "key 'rope_parameters.full_attention.beta' = 2 is not understood");
  // StarCoder2-3B's.
  json::Value layerNorm = "layer_norm", fallback = "default", gelu = "gelu";
  EXPECT_EQ(importedWith("starcoder2", {{"norm_type", layerNorm},
                                        {"mlp_type", fallback},
                                        {"activation_function", gelu},
                                        {"layer_norm_epsilon", 1e-5},
                                        {"attention_softmax_in_fp32", true},
                                        {"scale_attention_softmax_in_fp32", true},
                                        {"scale_attn_weights", true}}),
            importedWith("starcoder2", {}));
  EXPECT_HAS(importedWith("starcoder2", {{"norm_type", "rms_norm"}}),
             "key 'norm_type' = 'rms_norm' is not what the description of 'starcoder2' holds for; "
             "expected \"layer_norm\"");
}

TEST_F(BadConfig, DynamicRopeIsTheDefaultOneInsideTheLimit) {
  json::Object rope{{"rope_type", "dynamic"}, {"factor", 4}, {"rope_theta", 5000}};
  std::string text = importedWith(
      "llama", {{"rope_parameters", std::move(rope)}, {"max_position_embeddings", 96}});
  json::Object plain{{"rope_type", "default"}, {"rope_theta", 5000}};
  std::string expected = importedWith("llama", {{"rope_parameters", std::move(plain)}});
  EXPECT_HAS(text, "positions 96");
  EXPECT_EQ(occurrences(text, "xf.rotary"), occurrences(expected, "xf.rotary"));
}

TEST_F(BadConfig, MixersWithoutAttention) {
  EXPECT_HAS(importedWith("falcon-h1", {{"mlp_multipliers", json::Array{1.0}}}),
             "key 'mlp_multipliers' = [1] is not understood; expected an array of 2 numbers");
  EXPECT_HAS(importedWith("falcon-h1", {{"ssm_multipliers", 2}}),
             "key 'ssm_multipliers' = 2 is not understood; expected an array of 5 numbers");
  EXPECT_HAS(importedWith("falcon-h1", {{"mamba_d_head", 7}}),
             "key 'mamba_n_heads' = 6 times mamba_d_head = 7 is not the mixer's width, 36");
  EXPECT_HAS(importedWith("falcon-h1", {{"time_step_limit", json::Array{0.0, 0.5}}}),
             "key 'time_step_limit' = [0,0.5] is not supported");
  EXPECT_EQ(importedWith("falcon-h1", {{"time_step_limit", nullptr}}),
            importedWith("falcon-h1", {}));
  EXPECT_HAS(importedWith("jamba", {{"attn_layer_offset", 3}}),
             "key 'attn_layer_offset' = 3 is not less than attn_layer_period = 3");
  EXPECT_HAS(importedWith("mamba", {{"time_step_rank", "many"}}),
             "key 'time_step_rank' = 'many' is out of range; expected an integer from 1");
  EXPECT_EQ(importedWith("mamba", {{"time_step_rank", "auto"}}),
            importedWith("mamba", {{"time_step_rank", 2}}));
  EXPECT_HAS(importedWith("qwen3-next", {{"layer_types", json::Array{"sliding_attention"}}}),
             "key 'layer_types' = [\"sliding_attention\"] has 1 entries; expected "
             "num_hidden_layers = 4");
  EXPECT_HAS(importedWith("qwen3-next", {{"linear_num_value_heads", 3}}),
             "is not a multiple of linear_num_key_heads = 2");
}

TEST_F(BadConfig, QuantisationThatChangesMoreThanWhatIsStored) {
  auto with = [&](StringRef more) {
    std::string text = (R"({"quant_method":"fp8",)" + more + "}").str();
    return importedWith("llama", {{"quantization_config", cantFail(json::parse(text))}});
  };
  std::string at = "key 'quantization_config.";
  EXPECT_EQ(with(R"("fmt":"e4m3","modules_to_not_convert":["lm_head"])"),
            importedWith("llama", {}));
  EXPECT_HAS(with(R"("fmt":"e5m2")"), at + "fmt' = 'e5m2' is not supported; e4m3 is");
  EXPECT_HAS(with(R"("activation_scheme":"static")"),
             at + "activation_scheme' = 'static' is not supported; dynamic is");
  EXPECT_HAS(with(R"("expert_dtype":"fp4")"), at + "expert_dtype' = 'fp4' is not supported");
  for (StringRef size : {"null", "[128]", "[128,0]", "7"})
    EXPECT_HAS(with((R"("weight_block_size":)" + size).str()), at + "weight_block_size' = ");
  EXPECT_HAS(with(R"("bits":8)"), at + "bits' = 8 is not understood");
}

TEST_F(BadConfig, AllProblemsAreReportedTogether) {
  std::string message = importedWith("llama", {{"residual_multiplier", 0.25},
                                               {"hidden_act", "xielu"},
                                               {"pretraining_tp", 2},
                                               {"num_hidden_layers", -1}});
  for (StringRef key : {"residual_multiplier", "hidden_act", "pretraining_tp", "num_hidden_layers"})
    EXPECT_HAS(message, ("key '" + key + "' = ").str());
}

struct Case {
  const char *golden, *key, *value, *message;
};

struct BadValue : ImportTest, testing::WithParamInterface<Case> {};

TEST_P(BadValue, IsRefusedByName) {
  const Case &c = GetParam();
  EXPECT_HAS(importedWith(c.golden, {{c.key, cantFail(json::parse(c.value))}}), c.message);
}

const Case cases[] = {
    {"llama", "dtype", "\"float8_e4m3fn\"",
     "key 'dtype' = 'float8_e4m3fn' is not supported; float"},
    {"llama", "num_hidden_layers", "10001", "an integer from 1 to 10000"},
    {"llama", "vocab_size", "0", "key 'vocab_size' = 0 is out of range"},
    {"llama", "hidden_size", "\"54\"", "key 'hidden_size' = '54' is out of range"},
    {"llama", "rms_norm_eps", "-1", "a number from 0 to 1"},
    {"llama", "num_key_value_heads", "4", "is not a multiple of num_key_value_heads = 4"},
    {"llama", "head_dim", "17", "odd head dimension of 17"},
    {"llama", "attention_bias", "1", "expected true or false"},
    {"llama", "pretraining_tp", "2", "key 'pretraining_tp' = 2 is not supported"},
    {"llama", "hidden_act", "\"xielu\"", "key 'hidden_act' = 'xielu' is not supported"},
    {"llama", "partial_rotary_factor", "0.5", "is not supported; expected 1"},
    {"llama", "rope_parameters", "{\"rope_type\": \"proportional\", \"factor\": 2}",
     "key 'rope_parameters.rope_type' = 'proportional' is not supported in this family; default, "
     "linear, llama3, yarn, dynamic and longrope are"},
    {"llama", "rope_parameters", "{\"rope_type\": \"dynamic\"}", "needs a 'factor' beside it"},
    {"llama", "rope_parameters", "{\"rope_type\": \"linear\"}", "needs a 'factor' beside it"},
    {"llama", "rope_parameters", "{\"rope_type\": \"llama3\", \"factor\": 2}",
     "needs a 'low_freq_factor' beside it"},
    {"llama", "rope_parameters", "{\"rope_theta\": -5}", "key 'rope_parameters.rope_theta' = -5"},
    {"llama", "rope_parameters", "7", "expected an object"},
    {"llama", "rope_scaling", "{\"rope_type\": \"default\"}", "stands beside 'rope_parameters'"},
    {"gemma3", "layer_types", "[\"full_attention\"]",
     "has 1 entries; expected num_hidden_layers = 6"},
    {"gemma3", "layer_types", "[\"chunked_attention\"]", "has an unknown entry"},
    {"gemma3", "layer_types", "[1]", "expected an array of strings"},
    {"gemma3", "sliding_window", "0", "key 'sliding_window' = 0 is out of range"},
    {"gemma3", "query_pre_attn_scalar", "0", "key 'query_pre_attn_scalar' = 0 is out of range"},
    {"gemma3", "use_bidirectional_attention", "true", "only causal attention is"},
    {"gemma3", "final_logit_softcapping", "-1", "key 'final_logit_softcapping' = -1"},
    {"gemma3", "rope_parameters", "{\"rope_theta\": 5}",
     "key 'rope_parameters.rope_theta' = 5 is not understood"},
    {"falcon-40b", "parallel_attn", "false", "is not supported with new_decoder_architecture"},
    {"falcon-alibi", "num_kv_heads", "3", "key 'num_kv_heads' = 3 does not fit"},
    {"smollm3", "no_rope_layers", "[1, 0]", "key 'no_rope_layers' = [1,0] has 2 entries"},
    {"smollm3", "sliding_window", "null", "key 'sliding_window' = null is needed"},
    {"gpt-neo", "attention_types", "[[[\"local\"], 4]]", "key 'attention_types'"},
    {"gpt-neo", "attention_types", "[[\"local\", 3]]", "is not understood; expected [[["},
    {"gpt-neox", "head_dim", "12", "key 'head_dim' = 12 is not read by this family"},
    {"granite", "logits_scaling", "0", "f32(1 / logits_scaling) is inf; expected a finite number"},
    {"qwen2", "use_sliding_window", "false", "key 'layer_types'"},
    {"stablelm", "head_dim", "12", "key 'head_dim' = 12 is not supported"},
    {"gemma", "hidden_activation", "\"relu\"", "key 'hidden_activation' = 'relu'"},
    {"falcon", "num_ln_in_parallel_attn", "2",
     "key 'num_ln_in_parallel_attn' = 2 is not supported"},
    {"gemma2", "attn_logit_softcapping", "0", "key 'attn_logit_softcapping' = 0 is out of range"},
    {"gemma2", "final_logit_softcapping", "\"30\"", "key 'final_logit_softcapping' = '30' is out"},
    {"gemma2", "sliding_window", "null", "key 'sliding_window' = null is needed by the layers"},
    {"gemma2", "layer_types", "[\"full_attention\"]", "expected num_hidden_layers = 4"},
    {"gemma2", "use_bidirectional_attention", "true", "only causal attention is"},
    {"gemma2", "rope_parameters", "{\"rope_theta\": 5, \"partial_rotary_factor\": 0.5}",
     "key 'rope_parameters.partial_rotary_factor' = 0.5 is not supported; expected 1"},
    {"gpt2", "n_head", "4", "key 'n_embd' = 39 is not a multiple of n_head = 4"},
    {"gpt2", "n_positions", "0", "key 'n_positions' = 0 is out of range"},
    {"gpt2", "n_inner", "-5", "key 'n_inner' = -5 is out of range"},
    {"gpt2", "add_cross_attention", "true", "only a decoder alone is"},
    {"gpt2", "activation_function", "\"gelu_10\"", "key 'activation_function' = 'gelu_10' is not"},
    {"gpt2", "rope_theta", "10000", "key 'rope_theta' = 10000 is not understood"},
    {"gptj", "rotary_dim", "7", "expected an even number of at most n_embd / n_head = 14"},
    {"gptj", "rotary_dim", "16", "expected an even number of at most n_embd / n_head = 14"},
    {"gptj", "rotary_dim", "null", "key 'rotary_dim' = null is not supported"},
    {"gptj", "rotary", "false", "positions are rotations"},
    {"gptj", "n_head", "4", "key 'n_embd' = 42 is not a multiple of n_head = 4"},
    {"cohere", "rope_parameters", "null",
     "has no key 'rope_theta' in 'rope_parameters', which a 'cohere' needs"},
    {"cohere", "logit_scale", "null",
     "key 'logit_scale' = null is not what the description of 'cohere'"},
    {"cohere", "layer_norm_eps", "2", "a number from 0 to 1"},
    {"cohere", "use_qk_norm", "\"yes\"", "expected true or false"},
    {"cohere", "sliding_window", "4096", "key 'sliding_window' = 4096 is not understood"},
    {"olmo2", "clip_qkv", "8", "key 'clip_qkv' = 8 is not understood"},
    {"olmo2", "layer_types", "[\"sliding_attention\"]", "is not understood"},
    {"olmo2", "num_key_value_heads", "4", "is not a multiple of num_key_value_heads = 4"},
    {"phi3", "rope_parameters",
     "{\"rope_type\": \"longrope\", \"rope_theta\": 9, \"short_factor\": [1], \"long_factor\": "
     "[2]}",
     "key 'rope_parameters.short_factor' = [1] has 1 numbers; expected 9, one for each pair"},
    {"phi3", "rope_parameters", "{\"rope_type\": \"yarn\", \"factor\": 2}",
     "'yarn' is not supported in this family; default and longrope are"},
    {"phi3", "rope_parameters", "{\"rope_type\": \"longrope\", \"short_factor\": [1, \"2\"]}",
     "expected an array of numbers"},
    {"phi3", "rope_parameters", "{\"partial_rotary_factor\": 0.5}",
     "key 'rope_parameters.partial_rotary_factor' = 0.5 rotates 9 of 18 entries of a head"},
    {"phi3", "rope_parameters", "{\"partial_rotary_factor\": 0.01}", "rotates 0 of 18 entries"},
    {"phi3", "sliding_window", "0", "key 'sliding_window' = 0 is out of range"},
    {"phi3", "attention_bias", "true", "this family has no biases"},
    {"phi3", "lm_head_bias", "true", "this family has no biases"},
    {"mixtral", "num_experts_per_tok", "6", "is more than num_local_experts = 5"},
    {"mixtral", "num_experts_per_tok", "0", "key 'num_experts_per_tok' = 0 is out of range"},
    {"mixtral", "num_local_experts", "4097", "an integer from 1 to 4096"},
    {"mixtral", "sliding_window", "0", "key 'sliding_window' = 0 is out of range"},
    {"mixtral", "attention_bias", "true", "key 'attention_bias' = true is not understood"},
    {"mixtral", "norm_topk_prob", "false", "key 'norm_topk_prob' = false is not understood"},
    {"mixtral", "rope_parameters", "{\"rope_type\": \"longrope\", \"factor\": 2}",
     "key 'rope_parameters.rope_type' = 'longrope' needs a 'short_factor' beside it"},
    {"mixtral", "rope_parameters",
     "{\"rope_type\": \"longrope\", \"short_factor\": [1], \"long_factor\": [2]}",
     "key 'rope_parameters.short_factor' = [1] has 1 numbers; expected 5, one for each pair"},
    {"gemma3", "rope_parameters", "{\"full_attention\": {\"rope_type\": \"longrope\"}}",
     "'longrope' is not supported in this family; default, linear, llama3, yarn are"},
    {"qwen2-moe", "num_experts_per_tok", "8", "is more than num_experts = 7"},
    {"qwen2-moe", "num_experts", "-1", "key 'num_experts' = -1 is out of range"},
    {"qwen2-moe", "mlp_only_layers", "[\"1\"]", "expected an array of integers from 0 to 10000"},
    {"qwen2-moe", "mlp_only_layers", "1", "expected an array of integers from 0 to 10000"},
    {"qwen2-moe", "decoder_sparse_step", "0", "key 'decoder_sparse_step' = 0 is out of range"},
    {"qwen2-moe", "norm_topk_prob", "1", "expected true or false"},
    {"qwen2-moe", "attention_bias", "true", "key 'attention_bias' = true is not understood"},
    {"qwen2-moe", "layer_types", "[\"sliding_attention\", \"full_attention\"]",
     "has other entries than full_attention, and use_sliding_window is false"},
    {"qwen2-moe-normed", "sliding_window", "0", "key 'sliding_window' = 0 is out of range"},
    {"deepseek-v3", "rope_scaling", "{\"type\": \"longrope\"}",
     "'longrope' is not supported in this family; default, linear, llama3, yarn are"},
    {"deepseek-v3", "n_group", "5", "does not divide the 12 experts into groups of two or more"},
    {"deepseek-v3", "n_group", "12", "does not divide the 12 experts into groups of two or more"},
    {"deepseek-v3", "topk_group", "5", "is more than n_group = 4"},
    {"deepseek-v3", "num_experts_per_tok", "7",
     "is more than the 6 experts of the groups that are"},
    {"deepseek-v3", "scoring_func", "\"softmax\"", "is not supported; sigmoid is"},
    {"deepseek-v3", "topk_method", "\"greedy\"", "is not supported; noaux_tc is"},
    {"deepseek-v3", "moe_layer_freq", "2", "is not supported; 1 is"},
    {"deepseek-v3", "qk_rope_head_dim", "7", "is odd; a rotary embedding needs an even one"},
    {"deepseek-v3", "head_dim", "8", "is not qk_rope_head_dim"},
    {"deepseek-v3", "num_key_value_heads", "1", "is not num_attention_heads"},
    {"deepseek-v3", "q_lora_rank", "0", "key 'q_lora_rank' = 0 is out of range"},
    {"deepseek-v3", "n_shared_experts", "0", "key 'n_shared_experts' = 0 is out of range"},
    {"deepseek-v3", "routed_scaling_factor", "0",
     "key 'routed_scaling_factor' = 0 is out of range"},
    {"olmoe", "head_dim", "10", "is not hidden_size / num_attention_heads"},
    {"olmoe", "clip_qkv", "-1", "key 'clip_qkv' = -1 is out of range"},
    {"olmoe", "sliding_window", "6", "key 'sliding_window' = 6 is not understood"},
    {"olmoe", "num_experts", "0", "key 'num_experts' = 0 is out of range"},
    {"qwen3-moe", "num_experts_per_tok", "6", "is more than num_experts = 5"},
    {"qwen3-moe", "moe_intermediate_size", "0", "key 'moe_intermediate_size' = 0 is out of range"},
    {"qwen3-moe", "sliding_window", "-1", "key 'sliding_window' = -1 is out of range"},
    {"qwen3-moe-fused", "mlp_only_layers", "[-1]", "expected an array of integers from 0 to"},
    {"falcon", "num_attention_heads", "6", "is not a multiple of num_attention_heads = 6"},
};
INSTANTIATE_TEST_SUITE_P(Cases, BadValue, testing::ValuesIn(cases));

TEST_F(BadConfig, MissingAndMisshapenTensorsAreReportedTogether) {
  json::Object config = configOf("llama");
  config["intermediate_size"] = 60;
  config["num_hidden_layers"] = 4;
  writeConfig(std::move(config));
  writeTensors(tensorsOf("llama"));
  std::string message = imported(directory());
  EXPECT_HAS(message,
             ": has no tensor of layer 3 (9 tensors, from 'model.layers.3.' on); the last "
             "layer that it has is 2. Fetch what is missing, or correct the number of layers "
             "in the config");
  EXPECT_HAS(message, ": 9 tensors have other shapes than config.json gives them: 3 of "
                      "'model.layers.N.mlp.down_proj.weight' [54, 62] for [54, 60], ");
  EXPECT_HAS(message, "; all have 62 where it gives 60 ('intermediate_size'). Correct "
                      "config.json, or take the weights that belong to it");
  EXPECT_EQ(occurrences(message, "\n"), 1);
}

TEST_F(BadConfig, TensorsOfTypesThatAreNotWeights) {
  StoredTensorMap tensors = tensorsOf("llama");
  StoredTensor &up = tensors.at("model.layers.1.mlp.up_proj.weight");
  up.dtype = DType::I8;
  up.bytes.resize(up.bytes.size() / 4);
  writeConfig(configOf("llama"));
  writeTensors(tensors);
  EXPECT_HAS(imported(directory()), "is stored as I8; expected F32, BF16, F16 or one");
  up.dtype = DType::F64;
  up.bytes.resize(up.bytes.size() * 8);
  writeTensors(tensors);
  EXPECT_HAS(imported(directory()), "is stored as F64; ask for storage type f32");
  ImportOptions f32;
  f32.storage = DType::F32;
  EXPECT_HAS(imported(directory(), f32), "xf.model");
}

TEST_F(BadConfig, NoValueOfAnyKeyCrashes) {
  const char *values[] = {"null",
                          "true",
                          "-1",
                          "0",
                          "2",
                          "0.5",
                          "1e300",
                          "9223372036854775807",
                          "18446744073709551615",
                          "\"x\"",
                          "[]",
                          "[1]",
                          "{}",
                          "{\"x\": {}}"};
  int64_t refused = 0;
  for (StringRef name :
       {"gemma3", "gemma3-older-config", "llama3-rope", "falcon", "gemma2", "gpt2", "gptj",
        "cohere-norms", "olmo2", "phi3", "mamba", "jamba", "falcon-h1", "qwen3-next"}) {
    json::Object config = configOf(name);
    for (const auto &[key, was] : config)
      for (const char *value : values) {
        std::string imported = importedWith(name, {{key, cantFail(json::parse(value))}});
        bool isError = StringRef(imported).starts_with("error: ");
        EXPECT_TRUE(isError || StringRef(imported).starts_with("module {"));
        refused += isError;
      }
  }
  EXPECT_GT(refused, 300);
}

} // namespace
