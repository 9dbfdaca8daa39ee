#include "ctxc/Checkpoint/GgufModel.h"
#include "GgufFamilies.h"
#include "ctxc/Checkpoint/FormatKeys.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <cstring>

using namespace llvm;
using namespace ctxc;

namespace {

/// Splits a bank, whose name has a `*`, into one tensor for each expert.
void addExperts(const TensorView &view, std::vector<TensorView> &tensors) {
  auto [before, behind] = StringRef(view.name).split('*');
  int64_t count = view.shape.front();
  for (int64_t i = 0; i < count; ++i) {
    TensorView expert = view;
    expert.name = (before + Twine(i) + behind).str();
    expert.shape.erase(expert.shape.begin());
    expert.bytes = view.bytes / count;
    expert.data = view.data + i * expert.bytes;
    tensors.push_back(std::move(expert));
  }
}

/// Divisors of the frequencies, which the converter has evaluated: Llama 3.1's, or longrope's for
/// runs inside the original context and beyond it.
constexpr StringLiteral ropeDivisors = "rope_freqs.weight",
                        shortDivisors = "rope_factors_short.weight",
                        longDivisors = "rope_factors_long.weight";

/// The `dim` / 2 numbers of `tensor`; empty where there is no such tensor.
json::Array readNumbers(const TensorView *tensor, int64_t dim, GgufKeys &keys) {
  json::Array numbers;
  if (!tensor)
    return numbers;
  if (tensor->dtype != DType::F32 ||
      ArrayRef<int64_t>(tensor->shape) != ArrayRef<int64_t>{dim / 2}) {
    keys.problem("tensor " + quoted(tensor->name) + " is not understood; expected " +
                 Twine(dim / 2) + " numbers of type F32");
    return numbers;
  }
  for (int64_t i = 0; i < dim / 2; ++i) {
    float x;
    memcpy(&x, tensor->data + i * sizeof x, sizeof x);
    numbers.push_back(std::isfinite(x) ? x : 0.0); // the importer refuses 0
  }
  return numbers;
}

/// Adds the divisors, as the factors of longrope. llama.cpp takes the attention factor from the
/// file, and YaRN's growth beside it from nowhere else.
void readDivisors(const GgufFile &file, int64_t dim, GgufKeys &keys, json::Object &rope) {
  json::Array one = readNumbers(file.find(ropeDivisors), dim, keys);
  json::Array shorter = readNumbers(file.find(shortDivisors), dim, keys);
  json::Array longer = readNumbers(file.find(longDivisors), dim, keys);
  double growth = keys.number("rope.scaling.attn_factor").value_or(1);
  if (one.empty() && shorter.empty() && longer.empty()) {
    if (growth != 1 && rope["rope_type"] != "yarn")
      keys.problem("rope.scaling.attn_factor", "stands without tensors of longrope's factors");
    return;
  }
  if (rope["rope_type"] != "default")
    keys.problem("tensor " + quoted(one.empty() ? shortDivisors : ropeDivisors) +
                 " is not understood; expected no rope scaling beside it");
  rope["rope_type"] = "longrope";
  rope["attention_factor"] = growth;
  std::optional<int64_t> original = keys.integer("rope.scaling.original_context_length");
  if (one.empty()) {
    rope["short_factor"] = std::move(shorter);
    rope["long_factor"] = std::move(longer);
    if (original)
      rope["original_max_position_embeddings"] = *original;
    return;
  }
  rope["short_factor"] = json::Array(one);
  rope["long_factor"] = std::move(one);
  rope["original_max_position_embeddings"] = 1 << 20; // beyond all positions: no effect
}

/// YaRN's numbers; queries and keys grow by what the file says and 0.1 ln factor + 1, each. Its
/// ramp is the same whatever the file says, as in llama.cpp.
void readYarn(GgufKeys &keys, double factor, json::Object &rope) {
  rope["rope_type"] = "yarn";
  rope["factor"] = factor;
  if (std::optional<int64_t> original = keys.integer("rope.scaling.original_context_length"))
    rope["original_max_position_embeddings"] = *original;
  rope["beta_fast"] = 32;
  rope["beta_slow"] = 1;
  double growth = keys.number("rope.scaling.attn_factor").value_or(1);
  rope["attention_factor"] = growth * (factor > 1 ? 0.1 * std::log(factor) + 1 : 1);
}

/// The rotation's keys, as `rope_parameters`.
json::Object readRope(const GgufFile &file, const GgufFamily &family, int64_t dim, GgufKeys &keys) {
  const double base = keys.number("rope.freq_base").value_or(10000);
  if (base < 1e-3)
    keys.problem("rope.freq_base", "is not understood; expected a positive number");
  json::Object rope{{"rope_type", "default"}, {"rope_theta", base}};
  std::string type = keys.text("rope.scaling.type").value_or("linear");
  StringRef factorKey = "rope.scaling.factor";
  std::optional<double> given = keys.number(factorKey), older = keys.number("rope.scale_linear");
  if (!given && older) {
    factorKey = "rope.scale_linear";
    given = older;
  }
  const double factor = given.value_or(0) == 0 ? 1 : *given;
  if (factor < 0)
    keys.problem(factorKey, "is not understood; expected a positive number");
  else if (type == "linear" && factor != 1) {
    rope["rope_type"] = "linear";
    rope["factor"] = factor;
  } else if (type == "yarn")
    readYarn(keys, factor, rope);
  else if (type == "longrope" && factor != 1)
    keys.problem(factorKey, "stands beside a rope.scaling.type of longrope, which has its own "
                            "factors; expected 1 or no such key");
  else if (type != "linear" && type != "none" && type != "longrope")
    keys.problem("rope.scaling.type", "is not supported; linear, none, yarn and longrope are");
  int64_t rotated = dim;
  if (family.rotatesPart) {
    rotated = keys.integer("rope.dimension_count").value_or(dim);
    // A little more than the share, so that no rounding takes an entry away.
    if (rotated < dim)
      rope["partial_rotary_factor"] = (double(rotated) + 0.25) / double(dim);
    else
      rope["partial_rotary_factor"] = 1;
  } else {
    keys.require("rope.dimension_count", dim,
                 ", the width of a head (attention.key_length, or else embedding_length divided by "
                 "attention.head_count)");
  }
  readDivisors(file, rotated, keys, rope);
  keys.integer("rope.scaling.original_context_length"); // a key of the other types
  keys.flag("rope.scaling.finetuned");
  return rope;
}

/// The ε of the norms, without which llama.cpp reads no file either.
void readEpsilon(const GgufFamily &family, GgufKeys &keys, json::Object &config) {
  StringRef key = family.epsilon.contains("rms") ? "attention.layer_norm_rms_epsilon"
                                                 : "attention.layer_norm_epsilon";
  double epsilon = keys.neededNumber(key);
  if (epsilon < 0 || epsilon > 1)
    keys.problem(key, "is out of range; expected a number from 0 to 1");
  if (!family.epsilon.empty())
    config[family.epsilon] = epsilon;
  else if (float(epsilon) != 1e-5f)
    keys.problem(key, "is not supported; expected 1e-5");
}

json::Object readConfig(const GgufFile &file, const GgufFamily &family, GgufKeys &keys) {
  int64_t layers = keys.needed("block_count"), hidden = keys.needed("embedding_length"),
          heads = keys.needed("attention.head_count");
  int64_t dim = keys.integer("attention.key_length").value_or(hidden / std::max<int64_t>(heads, 1));
  json::Object config{
      {"model_type", family.modelType},
      {"num_hidden_layers", layers},
      {"hidden_size", hidden},
      {"intermediate_size", keys.needed("feed_forward_length")},
      {"num_attention_heads", heads},
      {"num_key_value_heads", keys.integer("attention.head_count_kv").value_or(heads)},
      {"head_dim", dim},
      {"tie_word_embeddings", !file.find("output.weight")},
  };
  readEpsilon(family, keys, config);
  if (std::optional<int64_t> context = keys.integer("context_length"))
    config["max_position_embeddings"] = *context;
  if (const TensorView *table = file.find("token_embd.weight"); table && table->shape.size() == 2) {
    config["vocab_size"] = table->shape[0];
    keys.require("vocab_size", table->shape[0], ", the rows of 'token_embd.weight'");
  }
  keys.ignore("vocab_size"); // where there is no table, which is an error of its own
  // Without this key, llama.cpp takes an equal share of the residual stream.
  if (keys.has("attention.value_length") || dim == hidden / std::max<int64_t>(heads, 1))
    keys.require("attention.value_length", dim);
  else
    keys.problem("attention.value_length",
                 "is not there; expected " + Twine(dim) + ", as attention.key_length is");
  config["rope_parameters"] = readRope(file, family, dim, keys);
  if (family.complete) {
    GgufConfig all{file, keys, config, layers, hidden, heads, dim};
    family.complete(all);
  }
  for (StringRef key : {"expert_count", "expert_used_count"})
    if (!config.get("num_experts_per_tok"))
      keys.require(key, 0);
  return config;
}

} // namespace

Expected<GgufModel> ctxc::readGgufModel(const GgufFile &file) {
  std::string path = file.file().path().str();
  StringRef type = file.text("general.type").value_or("model");
  StringRef name = file.text("general.architecture").value_or("");
  const GgufFamily *family = findGgufFamily(file);
  if (type != "model")
    return makeError(path + ": is a GGUF file of type " + quoted(type) +
                     " (general.type); expected a model");
  if (!family)
    return makeError(path + ": key 'general.architecture' = " + quoted(name) +
                     " is not supported; " + ggufArchitectures() + " are");
  GgufModel model;
  Problems problems;
  GgufKeys keys(file, name, problems);
  model.config = readConfig(file, *family, keys);
  if (keys.integer("pooling_type").value_or(0)) // of what embeds texts (SentencePooling.h)
    model.config["architectures"] = json::Array{"Model"};
  keys.finish();
  // Those of the tokenizer are for who reads texts.
  std::string own = (name + ".").str();
  checkGgufKeys(
      file, [&](StringRef key) { return !key.starts_with(own) && !key.starts_with("tokenizer."); },
      ggufKeys, problems);
  if (!problems.empty())
    return problems.take();
  model.conventions = family->conventions;
  for (TensorView view : file.tensors()) {
    if (view.name == ropeDivisors || view.name == shortDivisors || view.name == longDivisors)
      continue; // in the config
    view.name = nameOfGguf(view.name, *family);
    bool bank = StringRef(view.name).contains(".*.");
    if (bank && view.shape.size() == 3 && view.bytes > 0) {
      addExperts(view, model.tensors);
      continue;
    }
    // A matrix of one row is written as a vector.
    if (StringRef(view.name).ends_with("shared_expert_gate.weight") && view.shape.size() == 1)
      view.shape.insert(view.shape.begin(), 1);
    model.tensors.push_back(std::move(view));
  }
  return model;
}
