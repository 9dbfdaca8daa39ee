#include "ctxc/Checkpoint/GgufModel.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <cstring>
#include <set>

using namespace llvm;
using namespace ctxc;

namespace {

/// What llama.cpp knows of an architecture and does not store in the file.
struct Architecture {
  StringLiteral name, modelType;
  StorageConventions conventions;
  bool sandwichNorms; ///< norms before and after each branch
  bool experts = false;
};

constexpr Architecture architectures[] = {
    {"gemma3", "gemma3_text", {true, false}, true},
    {"llama", "llama", {false, true}, false},
    {"qwen2", "qwen2", {}, false},
    {"qwen3", "qwen3", {}, false},
    {"qwen3moe", "qwen3_moe", {}, false, true},
};

constexpr std::pair<StringLiteral, StringLiteral> modelNames[] = {
    {"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};

/// Names of a layer's tensors, without "blk.N." and "model.layers.N.".
constexpr std::pair<StringLiteral, StringLiteral> layerNames[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"}, {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},           {"ffn_down", "mlp.down_proj"},
    {"ffn_gate_inp", "mlp.gate"},
};
/// Names of the banks of a layer's experts.
constexpr std::pair<StringLiteral, StringLiteral> bankNames[] = {
    {"ffn_gate_exps", "gate_proj"}, {"ffn_up_exps", "up_proj"}, {"ffn_down_exps", "down_proj"}};
constexpr std::pair<StringLiteral, StringLiteral> plainNorms[] = {
    {"ffn_norm", "post_attention_layernorm"}};
constexpr std::pair<StringLiteral, StringLiteral> sandwichNorms[] = {
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"}};

std::optional<StringRef> lookup(ArrayRef<std::pair<StringLiteral, StringLiteral>> table,
                                StringRef name) {
  for (auto [from, to] : table)
    if (from == name)
      return to;
  return std::nullopt;
}

/// Turns "blk.7.ffn_up.weight" into "model.layers.7.mlp.up_proj.weight"; keeps other names.
std::string rename(StringRef name, const Architecture &architecture) {
  auto [module, kind] = name.rsplit('.'); // "weight" or "bias"
  if (std::optional<StringRef> to = lookup(modelNames, module))
    return (*to + "." + kind).str();
  auto [stem, rest] = module.split('.');
  auto [layer, part] = rest.split('.');
  if (stem != "blk" || layer.empty() || !llvm::all_of(layer, isDigit))
    return name.str();
  std::optional<StringRef> to = lookup(layerNames, part);
  if (!to)
    to = architecture.sandwichNorms ? lookup(sandwichNorms, part) : lookup(plainNorms, part);
  return to ? ("model.layers." + layer + "." + *to + "." + kind).str() : name.str();
}

/// Splits a bank into one tensor for each expert, "model.layers.7.mlp.experts.0.up_proj.weight" and
/// so on; false where `view` is no bank.
bool addExperts(const TensorView &view, std::vector<TensorView> &tensors) {
  auto [module, kind] = StringRef(view.name).rsplit('.');
  auto [stem, rest] = module.split('.');
  auto [layer, part] = rest.split('.');
  std::optional<StringRef> name = lookup(bankNames, part);
  if (stem != "blk" || kind != "weight" || layer.empty() || !llvm::all_of(layer, isDigit) ||
      !name || view.shape.size() != 3 || view.bytes == 0)
    return false;
  int64_t count = view.shape.front();
  for (int64_t i = 0; i < count; ++i) {
    TensorView expert = view;
    expert.name =
        ("model.layers." + layer + ".mlp.experts." + Twine(i) + "." + *name + ".weight").str();
    expert.shape.erase(expert.shape.begin());
    expert.bytes = view.bytes / count;
    expert.data = view.data + i * expert.bytes;
    tensors.push_back(std::move(expert));
  }
  return true;
}

/// Reads the architecture's keys, each once; keys that were not read are problems.
class Keys {
public:
  Keys(const GgufFile &file, StringRef architecture)
      : file(file), path(file.file().path()), prefix(architecture.str() + ".") {}

  bool has(StringRef key) const { return file.metadata().count(prefix + key.str()); }

  std::optional<int64_t> integer(StringRef key) {
    return expect(key, file.integer(take(key)), "an integer");
  }
  int64_t needed(StringRef key) {
    if (!has(key))
      problem("has no key " + quoted(prefix + key.str()));
    return integer(key).value_or(1);
  }
  std::optional<double> number(StringRef key) {
    return expect(key, file.number(take(key)), "a number");
  }
  std::optional<StringRef> text(StringRef key) { return expect(key, file.text(take(key)), "text"); }
  void ignore(StringRef key) { take(key); }

  /// A key whose one supported value is `supported`.
  void require(StringRef key, int64_t supported) {
    std::optional<int64_t> found = integer(key);
    if (found && *found != supported)
      problem("key " + quoted(prefix + key.str()) + " = " + Twine(*found) +
              " is not supported; expected " + Twine(supported));
  }

  void problem(const Twine &message) {
    problems = joinErrors(std::move(problems), makeError(path + ": " + message));
  }
  Error finish() {
    for (const auto &[key, value] : file.metadata())
      if (StringRef(key).starts_with(prefix) && !read.count(key))
        problem("key " + quoted(key) +
                " is not known here, and may change what the model computes");
    return std::move(problems);
  }

private:
  std::string take(StringRef key) {
    std::string whole = prefix + key.str();
    read.insert(whole);
    return whole;
  }
  template <typename T>
  std::optional<T> expect(StringRef key, std::optional<T> found, StringRef what) {
    if (!found && has(key))
      problem("key " + quoted(prefix + key.str()) + " is not " + what);
    return found;
  }

  const GgufFile &file;
  std::string path, prefix;
  std::set<std::string> read;
  Error problems = Error::success();
};

constexpr StringLiteral ropeDivisors = "rope_freqs.weight";

/// Divisors of each frequency (Llama 3.1's rule, evaluated by the converter),
/// as the factors of longrope.
void readDivisors(const TensorView &tensor, int64_t dim, Keys &keys, json::Object &rope) {
  if (tensor.dtype != DType::F32 || ArrayRef<int64_t>(tensor.shape) != ArrayRef<int64_t>{dim / 2} ||
      rope["rope_type"] != "default") {
    keys.problem("tensor " + quoted(tensor.name) + " is not understood; expected " +
                 Twine(dim / 2) + " numbers of type F32, and no rope scaling beside it");
    return;
  }
  json::Array shorter, longer;
  for (int64_t i = 0; i < dim / 2; ++i) {
    float x;
    memcpy(&x, tensor.data + i * sizeof x, sizeof x);
    for (json::Array *factors : {&shorter, &longer})
      factors->push_back(std::isfinite(x) ? x : 0.0); // the importer refuses 0
  }
  rope["rope_type"] = "longrope";
  rope["short_factor"] = std::move(shorter);
  rope["long_factor"] = std::move(longer);
  rope["attention_factor"] = 1.0;
  rope["original_max_position_embeddings"] = 1 << 20; // beyond all positions: no effect
}

/// The rotation's keys, as `rope_parameters`.
json::Object readRope(Keys &keys, double base) {
  json::Object rope{{"rope_type", "default"},
                    {"rope_theta", keys.number("rope.freq_base").value_or(base)}};
  StringRef type = keys.text("rope.scaling.type").value_or("none");
  std::optional<double> factor = keys.number("rope.scaling.factor");
  for (StringRef key : {"rope.scaling.original_context_length", "rope.scaling.finetuned"})
    keys.ignore(key); // keys of the other types
  if (type == "linear" && factor && *factor > 0) {
    rope["rope_type"] = "linear";
    rope["factor"] = *factor;
  } else if (type != "none") {
    keys.problem("rope scaling of type " + quoted(type) + " is not supported; linear, with a " +
                 "factor, is");
  }
  return rope;
}

json::Object readConfig(const GgufFile &file, const Architecture &architecture, Keys &keys) {
  int64_t layers = keys.needed("block_count"), hidden = keys.needed("embedding_length"),
          heads = keys.needed("attention.head_count");
  int64_t dim = keys.integer("attention.key_length").value_or(hidden / std::max<int64_t>(heads, 1));
  json::Object config{
      {"model_type", architecture.modelType},
      {"num_hidden_layers", layers},
      {"hidden_size", hidden},
      {"intermediate_size", keys.needed("feed_forward_length")},
      {"num_attention_heads", heads},
      {"num_key_value_heads", keys.integer("attention.head_count_kv").value_or(heads)},
      {"head_dim", dim},
      {"rms_norm_eps", keys.number("attention.layer_norm_rms_epsilon").value_or(1e-6)},
      {"tie_word_embeddings", !file.find("output.weight")},
  };
  if (std::optional<int64_t> context = keys.integer("context_length"))
    config["max_position_embeddings"] = *context;
  if (const TensorView *table = file.find("token_embd.weight"); table && table->shape.size() == 2)
    config["vocab_size"] = table->shape[0];
  keys.ignore("vocab_size"); // the table's row count has it
  keys.require("attention.value_length", dim);
  keys.require("rope.dimension_count", dim);
  if (architecture.experts) {
    config["num_experts"] = keys.needed("expert_count");
    config["num_experts_per_tok"] = keys.needed("expert_used_count");
    config["moe_intermediate_size"] = keys.needed("expert_feed_forward_length");
    config["norm_topk_prob"] = true; // as llama.cpp computes
  } else {
    keys.require("expert_count", 0);
    keys.require("expert_used_count", 0);
  }
  json::Object rope = readRope(keys, architecture.name == "gemma3" ? 1e6 : 1e4);
  if (const TensorView *divisors = file.find(ropeDivisors))
    readDivisors(*divisors, dim, keys, rope);
  if (architecture.name == "gemma3") {
    // Gemma 3 27B alone divides by the width of a head's share of the residual stream.
    config["query_pre_attn_scalar"] = layers == 62 ? hidden / heads : dim;
    config["sliding_window"] = keys.needed("attention.sliding_window");
    config["rope_parameters"] = json::Object{
        {"full_attention", std::move(rope)},
        {"sliding_attention", json::Object{{"rope_type", "default"}, {"rope_theta", 10000.0}}}};
    return config;
  }
  config["rope_parameters"] = std::move(rope);
  if (architecture.name == "llama") {
    config["attention_bias"] = file.find("blk.0.attn_q.bias") != nullptr;
    config["mlp_bias"] = file.find("blk.0.ffn_up.bias") != nullptr;
  }
  return config;
}

} // namespace

Expected<GgufModel> ctxc::readGgufModel(const GgufFile &file) {
  std::string path = file.file().path().str();
  StringRef type = file.text("general.type").value_or("model");
  StringRef name = file.text("general.architecture").value_or("");
  const Architecture *architecture =
      llvm::find_if(architectures, [&](const Architecture &a) { return a.name == name; });
  if (type != "model")
    return makeError(path + ": is a GGUF file of type " + quoted(type) + "; expected a model");
  if (architecture == std::end(architectures))
    return makeError(path + ": key 'general.architecture' = " + quoted(name) +
                     " is not supported; gemma3, llama, qwen2, qwen3 and qwen3moe are");
  GgufModel model;
  Keys keys(file, name);
  model.config = readConfig(file, *architecture, keys);
  if (Error error = keys.finish())
    return std::move(error);
  model.conventions = architecture->conventions;
  for (TensorView view : file.tensors()) {
    if (view.name == ropeDivisors)
      continue; // in the config
    if (architecture->experts && addExperts(view, model.tensors))
      continue;
    view.name = rename(view.name, *architecture);
    model.tensors.push_back(std::move(view));
  }
  return model;
}
