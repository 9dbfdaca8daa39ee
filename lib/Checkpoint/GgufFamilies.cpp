#include "GgufFamilies.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;

namespace {

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

constexpr GgufName commonModel[] = {
    {"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};
constexpr GgufName commonLayer[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    {"ffn_gate_inp", "mlp.gate"},
    {"ffn_gate_exps", "mlp.experts.*.gate_proj"},
    {"ffn_up_exps", "mlp.experts.*.up_proj"},
    {"ffn_down_exps", "mlp.experts.*.down_proj"},
    {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
    {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
    {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
};

/// Norms behind the branches (Gemma 2 and 3, OLMo 2).
constexpr GgufName sandwich[] = {{"post_attention_norm", "post_attention_layernorm"},
                                 {"ffn_norm", "pre_feedforward_layernorm"},
                                 {"post_ffw_norm", "post_feedforward_layernorm"}};
constexpr GgufName mixtral[] = {{"ffn_gate_inp", "block_sparse_moe.gate"},
                                {"ffn_gate_exps", "block_sparse_moe.experts.*.w1"},
                                {"ffn_up_exps", "block_sparse_moe.experts.*.w3"},
                                {"ffn_down_exps", "block_sparse_moe.experts.*.w2"}};
constexpr GgufName glm4[] = {{"post_attention_norm", "post_self_attn_layernorm"},
                             {"post_ffw_norm", "post_mlp_layernorm"},
                             {"ffn_up", "mlp.gate_up_proj"}};
constexpr GgufName phi2Model[] = {{"output_norm", "model.final_layernorm"}};
constexpr GgufName phi2[] = {
    {"attn_output", "self_attn.dense"}, {"ffn_up", "mlp.fc1"}, {"ffn_down", "mlp.fc2"}};
constexpr GgufName phi3[] = {{"attn_qkv", "self_attn.qkv_proj"}, {"ffn_up", "mlp.gate_up_proj"}};
constexpr GgufName starcoder2[] = {{"ffn_up", "mlp.c_fc"}, {"ffn_down", "mlp.c_proj"}};
constexpr GgufName gptOss[] = {{"post_attention_norm", "post_attention_layernorm"},
                               {"attn_sinks.weight", "self_attn.sinks"},
                               {"ffn_gate_inp", "mlp.router"},
                               {"ffn_gate_exps.bias", "mlp.experts.gate_proj_bias"},
                               {"ffn_up_exps.bias", "mlp.experts.up_proj_bias"},
                               {"ffn_down_exps.bias", "mlp.experts.down_proj_bias"}};
constexpr GgufName gpt2Model[] = {{"token_embd", "transformer.wte"},
                                  {"position_embd", "transformer.wpe"},
                                  {"output_norm", "transformer.ln_f"}};
constexpr GgufName gpt2[] = {{"attn_norm", "ln_1"},  {"attn_qkv", "attn.c_attn"},
                             {"ffn_norm", "ln_2"},   {"attn_output", "attn.c_proj"},
                             {"ffn_up", "mlp.c_fc"}, {"ffn_down", "mlp.c_proj"}};
constexpr GgufName bertModel[] = {{"token_embd", "embeddings.word_embeddings"},
                                  {"token_types", "embeddings.token_type_embeddings"},
                                  {"position_embd", "embeddings.position_embeddings"},
                                  {"token_embd_norm", "embeddings.LayerNorm"}};
constexpr GgufName bert[] = {{"attn_q", "attention.self.query"},
                             {"attn_k", "attention.self.key"},
                             {"attn_v", "attention.self.value"},
                             {"attn_output", "attention.output.dense"},
                             {"attn_output_norm", "attention.output.LayerNorm"},
                             {"ffn_up", "intermediate.dense"},
                             {"ffn_down", "output.dense"},
                             {"layer_output_norm", "output.LayerNorm"}};
constexpr GgufName bloomModel[] = {{"token_embd", "transformer.word_embeddings"},
                                   {"token_embd_norm", "transformer.word_embeddings_layernorm"},
                                   {"output_norm", "transformer.ln_f"}};
constexpr GgufName bloom[] = {{"attn_qkv", "self_attention.query_key_value"},
                              {"attn_output", "self_attention.dense"},
                              {"ffn_up", "mlp.dense_h_to_4h"},
                              {"ffn_down", "mlp.dense_4h_to_h"}};
constexpr GgufName falconTwoNorms[] = {{"attn_norm", "ln_mlp"},
                                       {"attn_norm_2", "ln_attn"},
                                       {"attn_qkv", "self_attention.query_key_value"},
                                       {"attn_output", "self_attention.dense"},
                                       {"ffn_up", "mlp.dense_h_to_4h"},
                                       {"ffn_down", "mlp.dense_4h_to_h"}};
constexpr GgufName neoxModel[] = {{"token_embd", "gpt_neox.embed_in"},
                                  {"output_norm", "gpt_neox.final_layer_norm"},
                                  {"output", "embed_out"}};
constexpr GgufName neox[] = {{"attn_qkv", "attention.query_key_value"},
                             {"attn_output", "attention.dense"},
                             {"ffn_up", "mlp.dense_h_to_4h"},
                             {"ffn_down", "mlp.dense_4h_to_h"}};

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

void completeBiases(GgufConfig &c) {
  c.config["attention_bias"] = c.has("attn_q.bias");
  c.config["mlp_bias"] = c.has("ffn_up.bias");
}

/// The mixture's sizes; llama.cpp makes the weights of experts sum to one, or not, by family.
void readExperts(GgufConfig &c, bool sumToOne) {
  c.needed("expert_count", "num_experts");
  c.needed("expert_used_count", "num_experts_per_tok");
  c.config["norm_topk_prob"] = sumToOne;
}

void completeMixtral(GgufConfig &c) {
  c.needed("expert_count", "num_local_experts");
  c.needed("expert_used_count", "num_experts_per_tok");
}

void completeQwen2Moe(GgufConfig &c) {
  readExperts(c, /*sumToOne=*/false);
  c.needed("expert_feed_forward_length", "moe_intermediate_size");
  c.needed("expert_shared_feed_forward_length", "shared_expert_intermediate_size");
}

void completeQwen3Moe(GgufConfig &c) {
  readExperts(c, /*sumToOne=*/true);
  c.needed("expert_feed_forward_length", "moe_intermediate_size");
}

void completeOlmoe(GgufConfig &c) { readExperts(c, /*sumToOne=*/false); }

/// llama.cpp goes on to scale the rotation of layers with a window where the file says that none
/// is.
void checkWindowsRotation(GgufConfig &c) {
  double factor =
      c.keys.number("rope.scaling.factor").value_or(c.keys.number("rope.scale_linear").value_or(0));
  if (c.keys.text("rope.scaling.type") == std::string("none") && factor != 0 && factor != 1)
    c.keys.problem("rope.scaling.type", "stands beside a rope.scaling.factor, of which llama.cpp "
                                        "takes one for layers with a window; expected no factor");
}

/// Gemma's largest models, of 46 and 62 layers, alone divide by the width of a head's share of the
/// residual stream.
void completeGemma(GgufConfig &c, bool isLargest) {
  c.config["query_pre_attn_scalar"] =
      isLargest ? c.hidden / std::max<int64_t>(c.heads, 1) : c.headSize;
  c.needed("attention.sliding_window", "sliding_window");
  c.number("final_logit_softcapping", "final_logit_softcapping");
}

void completeGemma2(GgufConfig &c) {
  completeGemma(c, c.layers == 46);
  checkWindowsRotation(c);
  c.number("attn_logit_softcapping", "attn_logit_softcapping");
}

void completeGemma3(GgufConfig &c) {
  completeGemma(c, c.layers == 62);
  double local = c.keys.number("rope.freq_base_swa").value_or(10000);
  json::Value full = std::move(*c.config.get("rope_parameters"));
  c.config["rope_parameters"] = json::Object{
      {"full_attention", std::move(full)},
      {"sliding_attention", json::Object{{"rope_type", "default"}, {"rope_theta", local}}}};
}

void completeOlmo(GgufConfig &c) { c.number("attention.clamp_kqv", "clip_qkv"); }

void completeGranite(GgufConfig &c) {
  completeBiases(c);
  c.factor("attention.scale", "attention_multiplier", 1 / std::sqrt(double(c.headSize)));
  c.factor("embedding_scale", "embedding_multiplier");
  c.factor("residual_scale", "residual_multiplier");
  double scale = c.keys.neededNumber("logit_scale");
  if (scale == 0)
    c.keys.problem("logit_scale", "divides by zero");
  c.config["logits_scaling"] = scale;
  if (!c.keys.flag("rope.scaling.finetuned").value_or(true))
    c.keys.problem("rope.scaling.finetuned",
                   "is not supported: it means that there is no rotation");
}

void completeCohere(GgufConfig &c) {
  c.factor("logit_scale", "logit_scale");
  c.config["attention_bias"] = c.has("attn_q.bias");
  c.config["use_qk_norm"] = c.has("attn_q_norm.weight");
}

void completeGlm4(GgufConfig &c) { c.config["attention_bias"] = c.has("attn_q.bias"); }

void completePhi3(GgufConfig &c) {
  if (std::optional<int64_t> window = c.keys.integer("attention.sliding_window"))
    c.config["sliding_window"] = *window ? json::Value(*window) : json::Value(nullptr);
}

void completeStarcoder2(GgufConfig &c) { c.config["use_bias"] = c.has("attn_q.bias"); }

void completeStableLm(GgufConfig &c) {
  c.config["use_qkv_bias"] = c.has("attn_q.bias");
  c.config["use_parallel_residual"] = c.keys.flag("use_parallel_residual").value_or(false);
}

void completeNemotron(GgufConfig &c) { completeBiases(c); }

/// The rotation is YaRN's without rounding its bounds, which a file does not say.
void completeGptOss(GgufConfig &c) {
  completeMixtral(c);
  checkWindowsRotation(c);
  c.keys.require("expert_feed_forward_length", *c.config.getInteger("intermediate_size"));
  c.needed("attention.sliding_window", "sliding_window");
  c.config["attention_bias"] = c.has("attn_q.bias");
  if (json::Object *rope = c.config.getObject("rope_parameters"); rope && rope->get("factor"))
    (*rope)["truncate"] = false;
}

/// The keys of GPT-2's generation, whose positions are no rotations.
void completeGpt2(GgufConfig &c) {
  c.rename("num_hidden_layers", "n_layer");
  c.rename("hidden_size", "n_embd");
  c.rename("num_attention_heads", "n_head");
  c.rename("intermediate_size", "n_inner");
  c.rename("max_position_embeddings", "n_positions");
  for (StringRef key : {"num_key_value_heads", "head_dim", "rope_parameters"})
    c.config.erase(key);
}

/// An encoder without a head. Files do not say the nonlinearity, which is GELU.
void completeBert(GgufConfig &c) {
  c.config["architectures"] = json::Array{"BertModel"};
  if (const TensorView *types = c.file.find("token_types.weight"); types && !types->shape.empty())
    c.config["type_vocab_size"] = types->shape.size() > 1 ? types->shape[0] : 1;
  if (c.keys.flag("attention.causal").value_or(true))
    c.keys.problem("key 'bert.attention.causal' is not false; expected an encoder");
  for (StringRef key :
       {"num_key_value_heads", "head_dim", "rope_parameters", "tie_word_embeddings"})
    c.config.erase(key);
}

void completeBloom(GgufConfig &c) {
  c.rename("num_hidden_layers", "n_layer");
  c.rename("num_attention_heads", "n_head");
  for (StringRef key : {"num_key_value_heads", "head_dim", "rope_parameters", "intermediate_size"})
    c.config.erase(key);
}

void completeFalcon(GgufConfig &c) {
  int64_t keys = c.config.getInteger("num_key_value_heads").value_or(1);
  bool newer = keys > 1;
  c.rename("intermediate_size", "ffn_hidden_size");
  c.config["new_decoder_architecture"] = newer;
  c.config["multi_query"] = !newer;
  c.config["num_kv_heads"] = newer ? keys : c.heads;
  c.config["num_ln_in_parallel_attn"] = c.has("attn_norm_2.weight") ? 2 : 1;
  for (StringRef key : {"num_key_value_heads", "head_dim"})
    c.config.erase(key);
  c.keys.ignore("tensor_data_layout"); // which is the one there is
}

void completeNeoX(GgufConfig &c) {
  c.config["use_parallel_residual"] = c.keys.neededFlag("use_parallel_residual");
  for (StringRef key : {"num_key_value_heads", "head_dim"})
    c.config.erase(key);
}

//===----------------------------------------------------------------------===//
// Families
//===----------------------------------------------------------------------===//

constexpr StorageConventions whole{true, false, false, false},
    interleaved{false, true, false, false}, blocks{false, false, true, false},
    plain{false, false, false, true};
constexpr StringLiteral stem = "model.layers.", h = "transformer.h.", nx = "gpt_neox.layers.",
                        rms = "rms_norm_eps", eps = "layer_norm_eps",
                        epsilon = "layer_norm_epsilon", experts = "blk.0.ffn_gate_exps.weight";

constexpr GgufFamily families[] = {
    // clang-format off: one line a family
    {"bert", "bert", "", {}, bertModel, bert, "encoder.layer.", eps, false, completeBert},
    {"bloom", "bloom", "", blocks, bloomModel, bloom, h, epsilon, false, completeBloom},
    {"command-r", "cohere", "", {}, {}, {}, stem, eps, false, completeCohere},
    {"falcon", "falcon", "blk.0.attn_norm_2.weight", blocks, bloomModel, falconTwoNorms, h, epsilon, false, completeFalcon},
    {"falcon", "falcon", "", blocks, bloomModel, bloom, h, epsilon, false, completeFalcon},
    {"gemma", "gemma", "", whole},
    {"gemma2", "gemma2", "", whole, {}, sandwich, stem, rms, false, completeGemma2},
    {"gemma3", "gemma3_text", "", whole, {}, sandwich, stem, rms, false, completeGemma3},
    {"glm4", "glm4", "", {}, {}, glm4, stem, rms, true, completeGlm4},
    {"gpt-oss", "gpt_oss", "", {}, {}, gptOss, stem, rms, false, completeGptOss},
    {"gpt2", "gpt2", "", plain, gpt2Model, gpt2, h, epsilon, false, completeGpt2},
    {"gptneox", "gpt_neox", "", blocks, neoxModel, neox, nx, eps, true, completeNeoX},
    {"granite", "granite", "", interleaved, {}, {}, stem, rms, false, completeGranite},
    {"llama", "mixtral", experts, interleaved, {}, mixtral, stem, rms, false, completeMixtral},
    {"llama", "llama", "", interleaved, {}, {}, stem, rms, false, completeBiases},
    {"nemotron", "nemotron", "", whole, {}, {}, stem, "norm_eps", true, completeNemotron},
    {"olmo", "olmo", "", interleaved, {}, {}, stem, "", false, completeOlmo},
    {"olmo2", "olmo2", "", {}, {}, sandwich},
    {"olmoe", "olmoe", "", {}, {}, {}, stem, rms, false, completeOlmoe},
    {"phi2", "phi", "", {}, phi2Model, phi2, stem, eps, true},
    {"phi3", "phi3", "", {}, {}, phi3, stem, rms, true, completePhi3},
    {"qwen2", "qwen2"},
    {"qwen2moe", "qwen2_moe", "", {}, {}, {}, stem, rms, false, completeQwen2Moe},
    {"qwen3", "qwen3"},
    {"qwen3moe", "qwen3_moe", "", {}, {}, {}, stem, rms, false, completeQwen3Moe},
    {"smollm3", "smollm3", "", interleaved, {}, {}, stem, rms, false, completeBiases},
    {"stablelm", "stablelm", "", {}, {}, {}, stem, eps, true, completeStableLm},
    {"starcoder2", "starcoder2", "", {}, {}, starcoder2, stem, "norm_epsilon", false, completeStarcoder2},
    // clang-format on
};

std::optional<StringRef> lookup(ArrayRef<GgufName> own, ArrayRef<GgufName> common, StringRef name) {
  for (ArrayRef<GgufName> table : {own, common})
    for (auto [from, to] : table)
      if (from == name)
        return to;
  return std::nullopt;
}

} // namespace

void GgufConfig::number(StringRef from, StringRef to) {
  if (std::optional<double> found = keys.number(from))
    config[to] = *found;
}

void GgufConfig::factor(StringRef from, StringRef to, double absent) {
  double found = keys.number(from).value_or(0);
  config[to] = found == 0 ? absent : found;
}

void GgufConfig::rename(StringRef from, StringRef to) {
  if (json::Value *value = config.get(from)) {
    json::Value moved = std::move(*value);
    config.erase(from);
    config[to] = std::move(moved);
  }
}

const GgufFamily *ctxc::findGgufFamily(const GgufFile &file) {
  StringRef name = file.text("general.architecture").value_or("");
  const GgufFamily *found = llvm::find_if(families, [&](const GgufFamily &family) {
    return family.name == name && (family.sign.empty() || file.find(family.sign));
  });
  return found == std::end(families) ? nullptr : found;
}

std::string ctxc::ggufArchitectures() {
  std::vector<StringRef> names;
  for (const GgufFamily &family : families)
    if (names.empty() || names.back() != family.name)
      names.push_back(family.name);
  return join(ArrayRef(names).drop_back(), ", ") + " and " + names.back().str();
}

std::string ctxc::nameOfGguf(StringRef name, const GgufFamily &family) {
  auto [module, kind] = name.rsplit('.'); // "weight" or "bias"
  if (std::optional<StringRef> to = lookup(family.model, commonModel, module))
    return (*to + "." + kind).str();
  auto [blk, rest] = module.split('.');
  auto [layer, part] = rest.split('.');
  if (blk != "blk" || layer.empty() || !llvm::all_of(layer, isDigit))
    return name.str();
  std::string lead = (family.layers + layer + ".").str();
  if (std::optional<StringRef> whole = lookup(family.layer, {}, (part + "." + kind).str()))
    return lead + whole->str();
  std::optional<StringRef> to = lookup(family.layer, commonLayer, part);
  return to ? lead + (*to + "." + kind).str() : name.str();
}
