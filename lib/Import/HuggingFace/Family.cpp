#include "Family.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

xf::ActivationKind hf::readActivation(ConfigReader &config, StringRef key, StringRef absent) {
  using Kind = xf::ActivationKind;
  std::string name = config.text(key, absent);
  std::optional<Kind> kind =
      StringSwitch<std::optional<Kind>>(name)
          .Cases({"gelu", "gelu_python"}, Kind::gelu)
          .Cases({"gelu_pytorch_tanh", "gelu_new", "gelu_fast"}, Kind::gelu_tanh)
          .Cases({"silu", "swish"}, Kind::silu)
          .Case("relu", Kind::relu)
          .Case("relu2", Kind::relu2)
          .Case("sigmoid", Kind::sigmoid)
          .Case("tanh", Kind::tanh)
          .Case("quick_gelu", Kind::quick_gelu)
          .Default(std::nullopt);
  if (!kind)
    config.problem(key, "is not supported; gelu, gelu_pytorch_tanh, gelu_new, silu, relu, relu2, "
                        "sigmoid, tanh and quick_gelu are");
  return kind.value_or(Kind::silu);
}

HeadShape hf::readHeads(ConfigReader &config, int64_t hidden, int64_t queries,
                        std::optional<int64_t> keys, std::optional<int64_t> dim, bool rotates) {
  HeadShape heads;
  heads.queries = config.integer("num_attention_heads", queries, 1, maxHeads);
  // Null, other than absent, is one for each query head in every family.
  int64_t absent =
      config.isNull("num_key_value_heads") ? heads.queries : keys.value_or(heads.queries);
  heads.keys = config.integer("num_key_value_heads", absent, 1, maxHeads);
  if (heads.queries % heads.keys)
    config.problem("num_attention_heads",
                   "is not a multiple of num_key_value_heads = " + Twine(heads.keys));
  bool derived = !dim && !config.has("head_dim");
  if (derived && hidden % heads.queries)
    config.problem("hidden_size", "is not a multiple of num_attention_heads = " +
                                      Twine(heads.queries) + ", and there is no head_dim");
  heads.dim = config.integer("head_dim", dim.value_or(std::max<int64_t>(hidden / heads.queries, 1)),
                             1, maxHeads);
  if (rotates && heads.dim % 2)
    config.problem(derived ? "hidden_size" : "head_dim",
                   "gives an odd head dimension of " + Twine(heads.dim) +
                       "; a rotary embedding needs an even one");
  return heads;
}

HeadShape hf::splitHeads(ConfigReader &config, StringRef key, int64_t absent, StringRef widthKey,
                         int64_t hidden) {
  int64_t heads = config.integer(key, absent, 1, maxHeads);
  if (hidden % heads)
    config.problem(widthKey, "is not a multiple of " + key + " = " + Twine(heads));
  return {heads, heads, std::max<int64_t>(hidden / heads, 1)};
}

SlidingLayers hf::readSlidingLayers(ConfigReader &config, int64_t layers, int64_t pattern,
                                    int64_t window) {
  return readSlidingLayers(
      config, layers, [&](int64_t i) { return (i + 1) % pattern != 0; }, window);
}

SlidingLayers hf::readSlidingLayers(ConfigReader &config, int64_t layers,
                                    function_ref<bool(int64_t)> slides, int64_t window) {
  SlidingLayers result;
  std::vector<std::string> types = config.texts("layer_types");
  for (int64_t i = 0; i < layers && types.empty(); ++i)
    result.sliding.push_back(slides(i));
  bool known = true;
  for (const std::string &type : types) {
    known &= type == "sliding_attention" || type == "full_attention";
    result.sliding.push_back(type == "sliding_attention");
  }
  if (!known)
    config.problem("layer_types", "has an unknown entry; sliding_attention and full_attention are "
                                  "supported");
  if (int64_t(result.sliding.size()) != layers) {
    config.problem("layer_types", "has " + Twine(result.sliding.size()) +
                                      " entries; expected num_hidden_layers = " + Twine(layers));
    result.sliding.resize(layers);
  }
  if (config.isNull("sliding_window") && result.any())
    config.problem("sliding_window", "is needed by the layers of type sliding_attention");
  if (result.any())
    result.window = config.integer("sliding_window", window, 1, int64_t(1) << 40);
  config.unread({{"sliding_window"}}); // where no layer slides
  return result;
}

SlidingLayers hf::readSwitchedWindows(ConfigReader &config, int64_t layers,
                                      function_ref<bool(int64_t)> slides) {
  if (config.flag("use_sliding_window", false))
    return readSlidingLayers(config, layers, slides, 4096);
  config.unread({{"sliding_window"}});
  if (any_of(config.texts("layer_types"), [](StringRef s) { return s != "full_attention"; }))
    config.problem("layer_types", "has other entries than full_attention, and use_sliding_window "
                                  "is false");
  return {};
}

SlidingLayers hf::readOneWindow(ConfigReader &config, int64_t layers,
                                std::optional<int64_t> absent) {
  SlidingLayers result;
  bool all = config.has("sliding_window") || (absent && !config.isNull("sliding_window"));
  result.sliding.assign(layers, all);
  result.window = config.integer("sliding_window", absent.value_or(1), 1, int64_t(1) << 40);
  return result;
}
