#include "KeyRules.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

constexpr StringLiteral off = R"([false, 0, "", "none", [], {}])";

/// The values of the key whose pattern comes first decide; a pattern with `*` stands behind the
/// keys that it must not cover.
constexpr KeyRule rules[] = {
    // What the model is, and who wrote the file.
    {"architectures"},
    {"model_type"},
    {"*transformers_version"},
    {"transformers.js_config"},
    {"*name_or_path"},
    {"_commit_hash"},
    {"model_path"},
    {"auto_map"},
    {"tokenizer_class"},
    {"task_specific_params"},
    {"target_model_type"},
    {"custom_pipelines"},
    {"unsloth_*"},
    {"license"},
    // How it was trained.
    {"*dropout*"},
    {"*_pdrop"},
    {"*layerdrop"},
    {"*initializer_range"},
    {"init_std"},
    {"init_method*"},
    {"gradient_checkpointing*"},
    {"selective_checkpoint_enabled"},
    {"sequence_parallel_enabled"},
    {"finetuning_task"},
    {"output_router_logits"},
    {"*router_aux_loss_coef"},
    {"router_z_loss_coef"},
    {"router_jitter_noise"},
    {"aux_loss_alpha"},
    {"loss_*"},
    {"predict_special_tokens"},
    {"seq_aux"},
    // Limits that no formula reads but those that ask for them.
    {"max_position_embeddings"},
    {"max_sequence_length"},
    {"max_seq_len"},
    {"seq_length"},
    {"model_max_length"},
    // How the library's classes were run, and in which precision.
    {"use_cache"},
    {"cache_implementation"},
    {"torch_dtype"},
    {"dtype"},
    {"use_bfloat16"},
    {"torchscript"},
    {"return_dict"},
    {"output_attentions"},
    {"output_hidden_states"},
    {"attention_backend"},
    {"*attn_implementation*"},
    {"*experts_implementation"},
    {"*flash_attention*"},
    {"*flash_attn*"},
    {"*_in_fp32"},
    {"chunk_size_feed_forward"},
    {"ep_size"},
    {"move_model_to_device"},
    {"num_logits_to_keep"},
    {"is_decoder"},
    {"tie_encoder_decoder"},
    {"tie_last_hidden_states"},
    // Roles of tokens, labels, and heads for other tasks, whose tensors would not be read.
    {"*_id"},
    {"*_ids"},
    {"*token_index"},
    {"prefix"},
    {"id2label"},
    {"label2id"},
    {"num_labels"},
    {"problem_type"},
    {"summary_*"},
    // How it generates text.
    {"max_length"},
    {"min_length"},
    {"max_new_tokens"},
    {"do_sample"},
    {"early_stopping"},
    {"num_beams"},
    {"num_beam_groups"},
    {"diversity_penalty"},
    {"temperature"},
    {"top_k"},
    {"top_p"},
    {"typical_p"},
    {"repetition_penalty"},
    {"length_penalty"},
    {"*no_repeat_ngram_size"},
    {"bad_words_ids"},
    {"num_return_sequences"},
    {"output_scores"},
    {"return_dict_in_generate"},
    {"remove_invalid_values"},
    {"exponential_decay_length_penalty"},
    {"suppress_tokens"},
    {"begin_suppress_tokens"},
    {"epsilon_cutoff"},
    {"eta_cutoff"},
    {"encoder_repetition_penalty"},

    // Features of one family or another.
    {"use_mrope", off, "that positions have several axes, as those of images"},
    {"*mrope*", off, "that positions have several axes, as those of images"},
    {"is_causal", "[true]", "that a token sees those behind it"},
    {"use_bidirectional*", off, "that a token sees those behind it"},
    {"is_encoder_decoder", off, "an encoder beside the decoder"},
    {"*cross_attention*", off, "that attention reads a second sequence"},
    {"norm_topk_prob", "[]", "another rule for the weights of experts"},
    {"*qk_norm*", off, "norms of queries and keys"},
    {"*qk_layernorm*", off, "norms of queries and keys"},
    {"norm_type", "[]", "norms of another kind"},
    {"*alibi*", off, "scores that fall with the distance"},
    {"use_rotary*", "[]", "positions that are, or are not, rotations"},
    {"rotary*", "[]", "other rotations of queries and keys"},
    {"rope_scaling", R"([{}, {"type": "default"}, {"rope_type": "default"}])",
     "other rotations of queries and keys"},
    {"*rope*", off, "other rotations of queries and keys"},
    {"layer_types", R"(["full_attention"])", "layers of several kinds"},
    {"sliding_window", off, "that a token sees only some of those before it", "use_sliding_window"},
    {"max_window_layers"},
    {"decoder_sparse_step"},
    {"finetuned"},
    {"*window*", off, "that a token sees only some of those before it"},
    {"*sparse*", off, "that a token sees only some of those before it"},
    {"*softcap*", off, "soft caps of scores or logits"},
    {"*clip*", off, "values that are cut off"},
    {"num_experts*", "[0, 1]", "a mixture of experts"},
    {"num_local_experts", "[0, 1]", "a mixture of experts"},
    {"*expert*", off, "a mixture of experts"},
    {"moe_frequency", "[1]", "layers without a mixture of experts"},
    {"*moe*", off, "a mixture of experts"},
    {"num_nextn_predict_layers", off, "further layers, which predict further tokens"},
    {"pretraining_tp", "[0, 1]", "matrices that are multiplied piece by piece"},
    {"scale_attn_weights", "[true]", "other scores of attention"},
    {"*_multiplier*", "[1]", "a factor of some values"},
    {"*scal*", "[1, false]", "a factor of some values"},
    {"cla_share_factor", off, "keys and values that layers share", "use_cla"},
    {"*factor*", "[1]", "a factor of some values"},
    {"*norm*", off, "further norms, or others"},
    {"*bias*", off, "further biases"},
    {"*parallel*", off, "branches side by side"},
    {"draft_vocab_size", off, "a head of a part of the vocabulary, as drafting models have"},
    {"*vocab*", off, "another vocabulary"},
    {"*_act", off, "another nonlinearity"},
    {"*activation*", off, "another nonlinearity"},
    {"*vision*", off, "images beside the text"},
    {"*image*", off, "images beside the text"},
    {"*audio*", off, "sound beside the text"},
    {"n_layer", "[]", "a size under another family's name"},
    {"n_head", "[]", "a size under another family's name"},
    {"n_embd", "[]", "a size under another family's name"},
    {"*", off, "a variant of the block"},
};

} // namespace

bool hf::matchesPattern(StringRef pattern, StringRef text) {
  bool before = pattern.consume_front("*"), behind = pattern.consume_back("*");
  if (before && behind)
    return text.contains(pattern);
  if (before)
    return text.ends_with(pattern);
  return behind ? text.starts_with(pattern) : text == pattern;
}

bool KeyRule::allows(StringRef key, const json::Object &config) const {
  const json::Value &value = *config.get(key);
  if (inert.empty() || value.kind() == json::Value::Null || config.getBoolean(turnedOnBy) == false)
    return true;
  json::Value values = cantFail(json::parse(inert));
  auto isInert = [&](const json::Value &one) {
    return llvm::is_contained(*values.getAsArray(), one);
  };
  const json::Array *array = value.getAsArray();
  return isInert(value) || (array && llvm::all_of(*array, isInert));
}

std::string KeyRule::expectation() const {
  if (inert == off)
    return "it to be off or absent";
  StringRef list = inert.drop_front().drop_back();
  return list.empty() ? "no such key" : (list + " or no such key").str();
}

const KeyRule &hf::ruleFor(StringRef key, StringRef at, ArrayRef<KeyRule> own) {
  auto find = [](ArrayRef<KeyRule> among, StringRef name) {
    return llvm::find_if(among,
                         [&](const KeyRule &rule) { return matchesPattern(rule.pattern, name); });
  };
  if (const KeyRule *found = find(own, key); found != own.end())
    return *found;
  const KeyRule *found = find(rules, key);
  return found->pattern == "*" ? *find(rules, at) : *found;
}
