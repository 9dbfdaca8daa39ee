#include "GgufKeys.h"
#include "ctxc/Checkpoint/FormatKeys.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace ctxc;

namespace {

/// Those of an architecture, without its name in front.
constexpr KeyRule architectureKeys[] = {
    // Sizes.
    {"block_count", isRead, "how many layers there are"},
    {"embedding_length", isRead, "the width of the residual stream"},
    {"feed_forward_length", isRead, "the width of the MLP"},
    {"attention.head_count", isRead, "the heads of queries"},
    {"attention.head_count_kv", isRead, "the heads of keys and values"},
    {"attention.key_length", isRead, "the width of a head"},
    {"attention.value_length", isRead, "the same, of values"},
    {"vocab_size", isRead, "the rows of the embedding"},
    {"pooling_type", isRead, "how the vector of a text is made; but for 0, the model has no head"},
    {"context_length", isRead, "how many positions there are"},
    {"expert_count", isRead, "how many experts there are"},
    {"expert_used_count", isRead, "how many a token takes"},
    {"expert_feed_forward_length", "[0]", "the width of an expert"},
    {"expert_shared_feed_forward_length", "[0]", "the width of the expert that every token takes"},

    // Norms and rotations.
    {"attention.layer_norm_rms_epsilon", {}, "the ε of RMS norms"},
    {"attention.layer_norm_epsilon", {}, "the ε of layer norms"},
    {"rope.freq_base", isRead, "the base of the rotation"},
    {"rope.freq_base_swa", never, "the base in layers with a window"},
    {"rope.dimension_count", isRead, "how much of a head is rotated"},
    {"rope.scaling.type", isRead, "linear, which it is without this key, none, yarn or longrope"},
    {"rope.scaling.factor", isRead, "by which positions are divided; 0 is 1"},
    {"rope.scale_linear", isRead, "the same, in older files"},
    {"rope.scaling.attn_factor", isRead, "by which queries and keys grow"},
    {"rope.scaling.original_context_length", isRead, "the positions that the model began with"},
    {"rope.scaling.finetuned", {}, "with Granite, that there is a rotation"},
    {"rope.scaling.yarn_beta_fast", "[32]", "another ramp, which llama.cpp does not read"},
    {"rope.scaling.yarn_beta_slow", "[1]", "another ramp, which llama.cpp does not read"},
    {"rope.scaling.yarn_ext_factor", "[1]", "another ramp, which llama.cpp does not read"},
    {"rope.scaling.yarn_attn_factor", "[1]", "larger queries, which llama.cpp does not read"},
    {"rope.scaling.yarn_log_multiplier", "[0]", "larger queries"},
    {"rope.scaling.alpha", "[0]", "another base"},
    {"rope.dimension_sections", "[0]", "that positions have several axes, as those of images"},
    {"rope.dimension_count_swa", never, "another rotation in layers with a window"},

    // What some architectures have.
    {"attention.sliding_window", "[0]", "that a token sees only some of those before it"},
    {"attention.sliding_window_pattern", never, "which layers have a window"},
    {"attention.clamp_kqv", "[0]", "values that are cut off"},
    {"attention.scale", never, "other scores of attention"},
    {"attn_logit_softcapping", "[0]", "soft caps of scores"},
    {"final_logit_softcapping", "[0]", "soft caps of logits"},
    {"logit_scale", never, "a factor of logits"},
    {"residual_scale", never, "a factor of what layers add"},
    {"embedding_scale", never, "a factor of embeddings"},
    {"use_parallel_residual", never, "whether attention and MLP stand side by side"},
    {"tensor_data_layout", never, "another order of rows"},

    // What no architecture here has.
    {"attention.causal", "[true]", "that a token sees those behind it"},
    {"attention.max_alibi_bias", "[0]", "scores that fall with the distance"},
    {"attention.q_lora_rank", never, "latent attention"},
    {"attention.kv_lora_rank", never, "latent attention"},
    {"expert_group_count", "[0]", "groups of experts"},
    {"expert_group_used_count", "[0]", "groups of experts"},
    {"expert_shared_count", "[0]", "experts that every token takes"},
    {"expert_gating_func", never, "other weights of experts"},
    {"expert_weights_scale", never, "other weights of experts"},
    {"expert_weights_norm", never, "other weights of experts"},
    {"nextn_predict_layers", "[0]", "further layers, which predict further tokens"},
    {"leading_dense_block_count", "[0]", "layers without experts"},
    {"embedding_length_per_layer_input", "[0]", "embeddings of each layer"},
    {"hidden_activation", never, "another nonlinearity"},
    {"*", never, "a variant that is not known here"},
};

/// All others.
constexpr KeyRule otherKeys[] = {
    {"general.architecture", isRead, "the family; keys that begin with its name have a table too"},
    {"general.type", isRead, "that the file has a model"},
    {"general.alignment", isRead, "where tensors begin"},
    {"general.name", {}, "for texts, whether it is Phi 3, whose symbols take spaces with them"},
    {"split.no", isRead, "which part of a model the file is, from 0 on"},
    {"split.count", isRead, "of how many"},
    {"split.tensors.count", isRead, "how many tensors they have together"},

    // Who made it, from what, and how it generates text.
    {"general.quantization_version"},
    {"general.file_type"},
    {"general.author"},
    {"general.version"},
    {"general.organization"},
    {"general.finetune"},
    {"general.basename"},
    {"general.description"},
    {"general.quantized_by"},
    {"general.size_label"},
    {"general.license*"},
    {"general.url"},
    {"general.doi"},
    {"general.uuid"},
    {"general.repo_url"},
    {"general.source.*"},
    {"general.base_model.*"},
    {"general.dataset*"},
    {"general.tags"},
    {"general.languages"},
    {"general.sampling.*"},
    {"quantize.*"},
    {"imatrix.*"},
    {"mradermacher.*"},
    {"ctxc.*"},
    {"*", never, "something that is not known here"},
};

} // namespace

const KeyTable ctxc::ggufArchitectureKeys{"GGUF, the keys of an architecture", architectureKeys},
    ctxc::ggufKeys{"GGUF, other keys", otherKeys};

/// How many entries of an array are looked at.
static constexpr uint64_t mostEntries = 1 << 12;

static json::Value jsonOf(const GgufFile &file, const std::string &key, const GgufValue &value) {
  if (auto *flag = std::get_if<bool>(&value))
    return *flag;
  if (auto *whole = std::get_if<int64_t>(&value))
    return *whole;
  if (auto *big = std::get_if<uint64_t>(&value))
    return *big;
  if (auto *real = std::get_if<double>(&value))
    return *real;
  if (auto *text = std::get_if<StringRef>(&value))
    return json::fixUTF8(*text);
  uint64_t count = std::get<GgufArray>(value).count;
  if (count > mostEntries)
    return "an array of " + std::to_string(count) + " entries";
  json::Array entries;
  if (auto texts = file.texts(key))
    for (StringRef text : *texts)
      entries.push_back(json::fixUTF8(text));
  else if (auto numbers = file.numbers(key))
    for (double number : *numbers)
      entries.push_back(number);
  return entries;
}

/// Numbers that all layers have alike stand for one, as llama.cpp reads arrays with one for each.
static void joinLayers(json::Object &keys) {
  int64_t layers = keys.getInteger("block_count").value_or(0);
  for (StringRef key : {"feed_forward_length", "attention.head_count", "attention.head_count_kv"}) {
    const json::Array *each = keys.getArray(key);
    if (each && layers > 0 && int64_t(each->size()) == layers &&
        all_of(*each, [&](const json::Value &number) {
          return number.getAsInteger() && number == each->front();
        })) {
      int64_t number = *each->front().getAsInteger();
      keys[key] = number;
    }
  }
}

GgufKeys::GgufKeys(const GgufFile &file, StringRef architecture, Problems &problems)
    : values(jsonOfGguf(file, architecture.str() + ".")),
      reader(values, file.file().path(), architecture.str() + ".", ggufArchitectureKeys, problems) {
  joinLayers(values);
}

json::Object ctxc::jsonOfGguf(const GgufFile &file, StringRef prefix) {
  json::Object object;
  for (const auto &[key, value] : file.metadata())
    if (StringRef name = key; name.consume_front(prefix))
      object[json::fixUTF8(name)] = jsonOf(file, key, value);
  return object;
}

void ctxc::checkGgufKeys(const GgufFile &file, function_ref<bool(StringRef)> concerns,
                         const KeyTable &table, Problems &problems) {
  json::Object all = jsonOfGguf(file, "");
  ConfigReader reader(all, file.file().path(), "", table, problems);
  for (const auto &[key, value] : all)
    if (!concerns(key) || table.ruleFor(key).inert == isRead)
      reader.value(key);
  reader.finish();
}
