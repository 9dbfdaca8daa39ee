// Models that a description reads: what it says of a config, what it refuses, and its stored
// tensors. Every description is checked by test/describe.
#include "Fixture.h"
#include "lib/Import/Described/Expression.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::test;

namespace {

class Described : public ImportTest {
protected:
  Described() {
    config =
        json::Object{{"model_type", "arcee"},  {"hidden_size", 16}, {"intermediate_size", 12},
                     {"num_hidden_layers", 2}, {"vocab_size", 20},  {"num_attention_heads", 4}};
  }

  std::string with(Changes changes) { return importedWith(config, changes); }

  /// A tensor of zeros for each parameter of the model, by its name in the checkpoint.
  StoredTensorMap zeros() {
    writeConfig(json::Object(config));
    ImportOptions options;
    options.needWeights = false;
    ImportedModel model = cantFail(importModel(directory(), context, options));
    StoredTensorMap tensors;
    auto add = [&](const std::string &name, xf::ParamOp param) {
      ArrayRef<int64_t> shape = cast<mlir::RankedTensorType>(param.getType()).getShape();
      int64_t count = 4;
      for (int64_t size : shape)
        count *= size;
      tensors[name] = {DType::F32, shape.vec(), std::string(count, '\0')};
    };
    model.module->walk([&](xf::ParamOp param) {
      if (isa<xf::ModelOp>(param->getParentOp()))
        add(param.getName().str(), param);
      else
        for (int layer : {0, 1})
          add("model.layers." + std::to_string(layer) + "." + param.getName().str(), param);
    });
    return tensors;
  }

  static StoredTensor asBf16(StoredTensor tensor) {
    tensor.dtype = DType::BF16;
    tensor.bytes.resize(tensor.bytes.size() / 2);
    return tensor;
  }

  json::Object config;
};

TEST(DescribedExpression, Arithmetic) {
  auto valueOf = [](StringRef key) { return key == "a" ? 6.0 : key == "b" ? 4.0 : NAN; };
  auto value = [&](StringRef text) { return described::evaluate(text, valueOf); };
  EXPECT_EQ(value("a"), 6);
  EXPECT_EQ(value("a * b + 2 * (a - 1)"), 34);
  EXPECT_EQ(value("a / b / 3"), 0.5);
  EXPECT_EQ(value("1 / sqrt(b)"), 0.5);
  EXPECT_EQ(value("-a + 1.5e1"), 9);
  EXPECT_EQ(value("f32(1 / 3)"), double(float(1.0 / 3)));
  EXPECT_EQ(value("bf16(1 / 3)"), 171.0 / 512);
  EXPECT_EQ(value("a < b"), 0);
  EXPECT_EQ(value("(a + 1) % 7 == 0"), 1);
  EXPECT_EQ(value("(a + 2) % 7 == 0"), 0);
  for (StringRef bad : {"c", "", "a b", "(a", "sin(a)", "a +", "2..5"})
    EXPECT_TRUE(std::isnan(value(bad))) << bad.str();
}

TEST_F(Described, WhatIsLeftOutIsTheDefault) {
  std::string all = with({{"head_dim", 4},
                          {"num_key_value_heads", 4},
                          {"hidden_act", "relu2"},
                          {"rms_norm_eps", 1e-5},
                          {"tie_word_embeddings", false},
                          {"rope_parameters", json::Object{{"rope_theta", 10000.0}}}});
  EXPECT_HAS(all, "xf.activation relu2");
  EXPECT_EQ(with({}), all);
  EXPECT_EQ(with({{"rope_theta", 10000.0}, {"attention_dropout", 0.5}}), all);
  EXPECT_NE(with({{"rope_theta", 20000.0}}), all);
  EXPECT_HAS(with({{"max_position_embeddings", 64},
                   {"rope_scaling", json::Object{{"type", "yarn"}, {"factor", 4.0}}}}),
             "xf.rotary half %reshape by %setting amplitude 1.13862944 :");
  EXPECT_HAS(with({{"head_dim", 6}}), "\"self_attn.q_proj.weight\" : tensor<24x16xf32>");
  EXPECT_HAS(with({{"hidden_act", "silu"}}), "xf.activation silu");
  EXPECT_HAS(with({{"attention_bias", true}}), "\"self_attn.q_proj.bias\" : tensor<16xf32>");
  std::string tied = with({{"tie_word_embeddings", true}});
  EXPECT_EQ(occurrences(tied, "lm_head.weight"), 0);
  EXPECT_HAS(with({{"torch_dtype", "bfloat16"}}), "tensor<20x16xbf16>");
}

TEST_F(Described, OtherConfigsAreRefused) {
  EXPECT_HAS(with({{"a_key_of_tomorrow", 3}}), "config.json: key 'a_key_of_tomorrow' = 3 is not");
  EXPECT_HAS(with({{"num_attention_heads", 3}, {"num_key_value_heads", 3}}),
             "config.json: hidden_size / num_attention_heads is 5.33333; expected a whole number");
  EXPECT_HAS(with({{"head_dim", 5}}),
             "config.json: head_dim / 2 is 2.5; expected a whole number of at least 0");
  EXPECT_HAS(with({{"hidden_size", 0}}), "key 'hidden_size' = 0 is out of range; expected an ");
  EXPECT_HAS(with({{"hidden_size", "wide"}}), "key 'hidden_size' = 'wide' is out of range");
  EXPECT_HAS(with({{"hidden_act", "mish"}}), "key 'hidden_act' = 'mish' is not supported; gelu");
  EXPECT_HAS(with({{"num_key_value_heads", 3}}),
             "key 'num_attention_heads' = 4 is not a multiple of num_key_value_heads = 3");
  EXPECT_HAS(with({{"attention_bias", "yes"}}), "key 'attention_bias' = 'yes' is not understood");
  config["model_type"] = "mellum"; // with one head, it was not compared
  EXPECT_HAS(with({{"num_attention_heads", 1}}), "key 'num_attention_heads' = 1 is out of range");
  config["model_type"] = "arcee";
  EXPECT_HAS(with({{"rope_parameters",
                    json::Object{{"rope_theta", 1e4}, {"partial_rotary_factor", 0.5}}}}),
             "key 'rope_parameters' = ");
  EXPECT_HAS(with({{"rope_scaling", json::Object{{"type", "spiral"}, {"factor", 4.0}}}}),
             "key 'rope_scaling.type' = 'spiral' is not supported in this family");
}

TEST_F(Described, FormsOfOneType) {
  std::string both = with({{"attention_bias", true}, {"mlp_bias", true}});
  EXPECT_HAS(both, "\"self_attn.q_proj.bias\" : tensor<16xf32>");
  EXPECT_HAS(both, "\"mlp.down_proj.bias\" : tensor<16xf32>");
  EXPECT_EQ(with({{"attention_bias", nullptr}}), with({})); // off
  EXPECT_HAS(with({{"num_key_value_heads", 1}}), "\"self_attn.k_proj.weight\" : tensor<4x16xf32>");
  // Rotations that hold up to a position.
  EXPECT_HAS(with({{"max_position_embeddings", 64},
                   {"rope_scaling", json::Object{{"type", "dynamic"}, {"factor", 4.0}}}}),
             "xf.model @model positions 64 {");
  json::Object longer{{"rope_type", "longrope"},
                      {"rope_theta", 1e4},
                      {"factor", 4.0},
                      {"original_max_position_embeddings", 32},
                      {"short_factor", json::Array{2.0, 4.0}},
                      {"long_factor", json::Array{4.0, 4.0}}};
  std::string given = with({{"rope_parameters", json::Object(longer)}});
  EXPECT_HAS(given, "xf.model @model positions 32 {");
  EXPECT_HAS(given, "rope = dense<[5.000000e-01, 2.500000e-03]>");
  longer["short_factor"] = json::Array{2.0};
  EXPECT_HAS(with({{"rope_parameters", std::move(longer)}}),
             "config.json: short_factor has 1 numbers; expected 2, one for each pair of a head");
  // A part of a head that is no whole number of entries is rounded down.
  config["model_type"] = "nemotron";
  EXPECT_HAS(with({{"head_dim", 10},
                   {"rope_parameters",
                    json::Object{{"rope_theta", 1e4}, {"partial_rotary_factor", 0.45}}}}),
             "xf.rotary half %reshape by %setting : tensor<4x10xf32>, tensor<2xf32>");
  config["model_type"] = "starcoder2";
  EXPECT_EQ(occurrences(with({}), "window"), 0);
  EXPECT_HAS(with({{"sliding_window", 8}}), "window");
}

TEST_F(Described, OtherNamesOfTheSameTensors) {
  StoredTensorMap tensors = zeros(), bare;
  for (auto &[name, tensor] : tensors)
    bare[StringRef(name).starts_with("model.") ? name.substr(6) : name] = tensor;
  writeConfig(json::Object(config));
  writeTensors(bare);
  EXPECT_HAS(imported(directory()), "at \"layers.1.\"");
  // The head is the embedding.
  config["tie_word_embeddings"] = true;
  writeConfig(json::Object(config));
  writeTensors(tensors);
  EXPECT_EQ(occurrences(imported(directory()), "xf.param \"lm_head.weight\""), 0);
  StoredTensorMap one = tensors;
  one.erase("model.embed_tokens.weight");
  writeTensors(one);
  std::string only = imported(directory());
  EXPECT_EQ(occurrences(only, "xf.param \"lm_head.weight\""), 1);
  EXPECT_EQ(occurrences(only, "embed_tokens.weight"), 0);
  tensors["lm_head.weight"].bytes[0] = 1; // two tables with other numbers
  writeTensors(tensors);
  mlir::MLIRContext own;
  Expected<ImportedModel> model = importModel(directory(), own);
  ASSERT_TRUE(bool(model)) << toString(model.takeError());
  ASSERT_EQ(model->warnings.size(), 1u);
  EXPECT_HAS(model->warnings.front(), "the stored head is not the embedding");
}

TEST_F(Described, NumbersThatTheClassComputesAndNoCheckpointHas) {
  config = json::Object{{"model_type", "xglm"}, {"d_model", 16},        {"ffn_dim", 12},
                        {"num_layers", 2},      {"attention_heads", 4}, {"vocab_size", 20}};
  StoredTensorMap tensors = zeros();
  ImportOptions toCheck;
  toCheck.needWeights = false;
  std::string alone = imported(directory(), toCheck);
  EXPECT_HAS(alone, "xf.param \"model.embed_positions.weights\" frozen");
  tensors.erase("model.embed_positions.weights");
  writeTensors(tensors);
  EXPECT_EQ(imported(directory(), toCheck), alone);
  EXPECT_HAS(imported(directory()),
             "has no numbers of 'model.embed_positions.weights', which the model's class computes");
  tensors.erase("model.layers.1.self_attn.v_proj.weight");
  writeTensors(tensors);
  EXPECT_HAS(imported(directory(), toCheck),
             "has no tensor 'model.layers.1.self_attn.v_proj.weight'");
}

TEST_F(Described, OddValuesAreRefusedByTheirKeys) {
  const json::Value number[] = {-1, INT64_MIN, INT64_MAX, UINT64_MAX, 1e300, 2.5};
  const json::Value other[] = {"16", "", true, nullptr, json::Array{16, 4}, json::Object{{"a", 1}}};
  std::vector<json::Value> odd(std::begin(number), std::end(number));
  odd.insert(odd.end(), std::begin(other), std::end(other));
  for (StringRef key : {"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
                        "head_dim", "num_key_value_heads", "intermediate_size"})
    for (const json::Value &value : odd) {
      // A null stands for the absent key where the class takes it so.
      if (value != nullptr || (key != "head_dim" && key != "num_key_value_heads"))
        EXPECT_HAS(with({{key, value}}), ("config.json: key '" + key + "' = ").str());
    }
  for (const json::Value &value : odd) {
    for (StringRef key : {"hidden_act", "attention_bias", "rope_parameters", "rope_scaling"})
      if (value != nullptr && (key != "attention_bias" || value != true))
        EXPECT_HAS(with({{key, value}}), ("'" + key).str());
    for (StringRef key : {"rms_norm_eps", "rope_theta"})
      if (value != nullptr && value.getAsNumber().value_or(-1) < 0)
        EXPECT_HAS(with({{key, value}}), ("config.json: key '" + key + "' = ").str());
  }
}

TEST_F(Described, OddRopesAreRefused) {
  auto rope = [&](json::Object given) { return with({{"rope_parameters", std::move(given)}}); };
  for (const json::Value &value : {json::Value(-1), json::Value(0), json::Value(1e300),
                                   json::Value("x"), json::Value(json::Object{{"a", 1}})}) {
    EXPECT_HAS(rope(json::Object{{"rope_theta", value}}), "key 'rope_parameters.rope_theta' = ");
    EXPECT_HAS(rope(json::Object{{"rope_theta", 1e4}, {"rope_type", "linear"}, {"factor", value}}),
               "key 'rope_parameters.factor' = ");
  }
  EXPECT_HAS(rope(json::Object{{"rope_theta", 1e4}, {"rope_type", 3}}),
             "key 'rope_parameters.rope_type' = 3");
  EXPECT_HAS(rope(json::Object{{"rope_theta", 1e4}, {"rope_type", "of_tomorrow"}}),
             "is not supported in this");
  EXPECT_HAS(rope(json::Object{{"rope_theta", 1e4}, {"partial_rotary_factor", -0.5}}),
             "key 'rope_parameters.partial_rotary_factor' = -0.5 is out of range");
  EXPECT_HAS(rope(json::Object{{"full_attention", json::Object{{"rope_theta", 1e4}}}}),
             "key 'rope_parameters.full_attention' = {\"rope_theta\":10000} is not understood");
  json::Object deep{{"rope_theta", 1e4}};
  for (int depth = 0; depth < 100; ++depth)
    deep = json::Object{{"rope", std::move(deep)}};
  EXPECT_HAS(rope(std::move(deep)), "nested more than 64 deep");
}

TEST_F(Described, SizesThatAreTogetherPastEveryCountAreRefused) {
  int64_t most = 1 << 24;
  EXPECT_HAS(
      with({{"num_attention_heads", most}, {"head_dim", 65536}, {"hidden_size", 65536}}),
      "config.json: a tensor of 1099511627776x65536 entries; expected from 1 to 9.0072e+15 of ");
  EXPECT_HAS(with({{"hidden_size", most}, {"num_attention_heads", 4}}),
             "config.json: head_dim is 4.1943e+06, of 4.1943e+06 entries of a head to rotate; "
             "expected an even number from 2 to 65536");
  EXPECT_HAS(with({{"hidden_size", 16}, {"num_attention_heads", 32}}),
             "config.json: hidden_size / num_attention_heads is 0.5; expected a whole number");
}

TEST_F(Described, OddListsAreRefused) {
  config["model_type"] = "cohere2";
  std::string good = with({{"layer_types", json::Array{"full_attention", "sliding_attention"}}});
  EXPECT_HAS(good, "xf.layer @cohere2_2(");
  for (const json::Value &value :
       {json::Value(3), json::Value("full_attention"), json::Value(json::Object{{"0", "a"}}),
        json::Value(json::Array{}), json::Value(json::Array{"full_attention"}),
        json::Value(json::Array{1, 2, 3})})
    EXPECT_HAS(with({{"layer_types", value}}), "is not understood; expected an array of 2 entries");
  EXPECT_HAS(with({{"layer_types", json::Array{"full_attention", nullptr}}}),
             "the description of 'cohere2' has no layer 1 for 'attention_bias' = false, "
             "'layer_types' = 'null'");
  EXPECT_HAS(with({{"layer_types", json::Array{json::Array{"full_attention"}, 7}}}),
             "'layer_types' = '[\"full_attention\"]'");
}

/// Of some types no list says which layers have experts: a number of first layers has none.
TEST_F(Described, KindsOfLayersFollowTheirRule) {
  config["model_type"] = "glm4_moe";
  config["num_hidden_layers"] = 3;
  config["num_key_value_heads"] = 4;
  for (StringRef key : {"n_shared_experts", "moe_intermediate_size", "n_routed_experts"})
    config[key] = 4;
  config["num_experts_per_tok"] = 2;
  EXPECT_HAS(with({}), "%layer_1 = xf.layer @glm4_moe_2(");
  std::string later = with({{"first_k_dense_replace", 2}});
  EXPECT_HAS(later, "%layer_1 = xf.layer @glm4_moe(");
  EXPECT_HAS(later, "%layer_2 = xf.layer @glm4_moe_2(");
  EXPECT_HAS(with({{"first_k_dense_replace", -1}}), "key 'first_k_dense_replace' = -1 is out of");
  EXPECT_HAS(with({{"layer kind", json::Array{"0", "0", "0"}}}), "key 'layer kind' = ");
}

/// A key may name the layers of a kind by their indices, where the list with an entry for each is
/// left out; and other keys and words may stand for those of the description.
TEST_F(Described, OlderNamesOfKeysAndKinds) {
  config["model_type"] = "lfm2";
  config["num_key_value_heads"] = 2;
  std::string listed = with({{"layer_types", json::Array{"conv", "full_attention"}}});
  EXPECT_HAS(listed, "xf.layer @lfm2_2(");
  EXPECT_EQ(with({{"layer_types", json::Array{"conv", "attention"}}}), listed);
  EXPECT_EQ(with({{"full_attn_idxs", json::Array{1}}}), listed);
  EXPECT_EQ(with({{"full_attn_idxs", json::Array{9, 1, 1}}}), listed);
  EXPECT_EQ(with({{"full_attn_idxs", json::Array{0}},
                  {"layer_types", json::Array{"conv", "full_attention"}}}),
            listed);
  EXPECT_EQ(occurrences(with({{"full_attn_idxs", json::Array{}}}), "xf.layer @lfm2("), 2);
  EXPECT_HAS(with({}), "has no key 'full_attn_idxs', which a 'lfm2' needs");
  for (const json::Value &odd : {json::Value(1), json::Value(json::Array{-1}),
                                 json::Value(json::Array{"1"}), json::Value(json::Object{})})
    EXPECT_HAS(with({{"full_attn_idxs", odd}}), "key 'full_attn_idxs' = ");
  config["full_attn_idxs"] = json::Array{1};
  EXPECT_EQ(with({{"intermediate_size", 9}, {"block_ff_dim", 12}}), listed);
  EXPECT_HAS(with({{"block_ff_dim", -1}}), "key 'block_ff_dim' = -1 is out of range");
  EXPECT_HAS(with({{"block_ff_dim", nullptr}}), "key 'block_ff_dim' = null is not what");
  EXPECT_HAS(with({{"tie_embedding", false}}), "lm_head.weight");
}

TEST_F(Described, WhatAnAbsentKeySaysIsInRange) {
  config["model_type"] = "hunyuan_v1_moe";
  config["head_dim"] = 4;
  config["num_key_value_heads"] = 2;
  EXPECT_HAS(with({{"num_experts", 4}}),
             "has no key 'moe_topk', which says 1; the description of 'hunyuan_v1_moe' holds for 2 "
             "and more, or a program by python -m ctxc.export");
}

/// Some types have the program's keys in a part of their config.
TEST_F(Described, KeysMayStandInAPart) {
  json::Object part = std::move(config);
  part.erase("model_type");
  config = json::Object{{"model_type", "emu3"}};
  EXPECT_HAS(with({}), "key 'model_type' = 'emu3' needs an object 'text_config' beside it");
  EXPECT_HAS(with({{"text_config", 3}}), "key 'text_config' = 3 is not understood");
  auto within = [&](Changes inner, Changes outer = {}) {
    json::Object changed = part;
    for (const auto &[key, value] : inner)
      changed[key] = value;
    config["text_config"] = std::move(changed);
    return with(outer);
  };
  part["num_key_value_heads"] = 2;
  EXPECT_HAS(within({}, {{"vq_config", json::Object{}}}), "xf.layer @emu3(");
  EXPECT_HAS(within({{"hidden_size", 0}}), "key 'text_config.hidden_size' = 0 is out of range");
  EXPECT_HAS(within({{"later", 7}}), "key 'text_config.later' = 7");
  EXPECT_HAS(within({}, {{"later", 7}}), "key 'later' = 7");
  EXPECT_HAS(within({{"model_type", "llama"}}), "key 'text_config.model_type' = 'llama' is not");
  // What the config and its part both say is the same.
  EXPECT_HAS(within({}, {{"tie_word_embeddings", true}}),
             "key 'tie_word_embeddings' = true differs from false, which 'text_config' says");
  EXPECT_HAS(within({{"tie_word_embeddings", true}}, {{"tie_word_embeddings", true}}), "module {");
}

TEST_F(Described, ParametersHaveTheStoredTypes) {
  StoredTensorMap tensors = zeros();
  writeTensors(tensors);
  std::string same = imported(directory());
  EXPECT_EQ(occurrences(same, "xf.block"), 1);
  for (auto &[name, tensor] : tensors)
    if (StringRef(name).starts_with("model.layers.1."))
      tensor = asBf16(tensor);
  writeTensors(tensors);
  std::string mixed = imported(directory());
  EXPECT_EQ(occurrences(mixed, "xf.block"), 2);
  EXPECT_HAS(mixed, "xf.layer @arcee_2(");
  EXPECT_HAS(mixed, "\"mlp.up_proj.weight\" : tensor<12x16xf32>");
  EXPECT_HAS(mixed, "\"mlp.up_proj.weight\" : tensor<12x16xbf16>");
}

TEST_F(Described, TensorsThatDoNotFitAreRefused) {
  StoredTensorMap tensors = zeros(), other = tensors;
  // The head again, under another name.
  other["model.head_again.weight"] = tensors.at("lm_head.weight");
  writeTensors(other);
  EXPECT_HAS(imported(directory()), "module {");
  other["model.layers.0.mlp.third.weight"] = {DType::F32, {1}, bytesOf({1})};
  writeTensors(other);
  EXPECT_HAS(imported(directory()),
             "has 1 tensor that this family does not read: 'model.layers.0.mlp.third.weight' [");
  other = tensors;
  other.erase("model.layers.1.mlp.up_proj.weight");
  writeTensors(other);
  EXPECT_HAS(imported(directory()), "has no tensor 'model.layers.1.mlp.up_proj.weight'; expected ");
}

} // namespace
