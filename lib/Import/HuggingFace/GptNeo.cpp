// GPT-Neo: GPT-2's block in matrices that are stored as they are used; scores are not scaled, and
// local layers see a window.
//   x = E[token] + P[position]
//   v = x + W_o attention(W_q n, W_k n, W_v n) + b_o      n = LN₁ x
//   y = v + W₂ gelu(W₁ z + b₁) + b₂                       z = LN₂ v
#include "Parts.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class GptNeo : public Family {
public:
  explicit GptNeo(ConfigReader &config) {
    layers = config.integer("num_layers", 24, 1, maxLayers);
    hidden = config.integer("hidden_size", 2048, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 50257, 1, maxVocabulary);
    positions = config.integer("max_position_embeddings", 2048, 1, maxVocabulary);
    tied = config.flag("tie_word_embeddings", true);
    norm = Norm::layer(config.number("layer_norm_epsilon", 1e-5, 0, 1));
    attention.heads = splitHeads(config, "num_heads", 16, "hidden_size", hidden);
    attention.scale = 1;
    attention.outBias = true;
    attention.out = "out_proj";
    mlp = {config.integer("intermediate_size", 4 * hidden, 1, 4 * maxWidth),
           readActivation(config, "activation_function", "gelu_new"), /*bias=*/true, "c_fc",
           "c_proj"};
    windows.window = config.integer("window_size", 256, 1, int64_t(1) << 40);
    readLayerTypes(config);
    otherTensors = {"*.attention.bias", "*.attention.masked_bias"}; // masks, which were stored once
  }

  StringRef name() const override { return "gpt_neo"; }
  SmallVector<StringRef> stems() const override { return {"transformer.", ""}; }
  StringRef layerStem() const override { return "h."; }
  StringRef embeddingName() const override { return "wte.weight"; }

  Value afterEmbedding(BlockBuilder &b, Value x) const override {
    Value table = b.param("wpe.weight", {positions, hidden});
    return b.add("x_placed", x, b.embed("x_place", table, b.position("position")));
  }

  Value block(BlockBuilder &b, Value x, int64_t layer) const override {
    Value n = b.norm("n", "ln_1", norm, x);
    Value a = attention(b, "attn", "attn.attention", n, windows.of(b, layer));
    Value mid = b.add("mid", a, x);
    Value z = b.norm("z", "ln_2", norm, mid);
    return b.add("y", mid, mlp(b, "mlp", "mlp", z));
  }

  Value beforeHead(BlockBuilder &b, Value x) const override { return b.norm("n", "ln_f", norm, x); }

private:
  /// From attention_types, [[["global", "local"], 12], …], and attention_layers, which says the
  /// same layer by layer.
  void readLayerTypes(ConfigReader &config) {
    std::vector<std::string> types = config.texts("attention_layers");
    std::vector<std::string> expanded;
    if (config.has("attention_types") || types.empty())
      expanded = expand(config);
    if (types.empty())
      types = expanded;
    else if (!expanded.empty() && expanded != types)
      config.problem("attention_types", "does not agree with 'attention_layers'");
    if (int64_t(types.size()) != layers)
      config.problem("attention_types", "gives " + Twine(types.size()) +
                                            " layers; expected num_layers = " + Twine(layers));
    if (!all_of(types, [](StringRef t) { return t == "global" || t == "local"; }))
      config.problem("attention_types", "has an unknown entry; global and local are supported");
    types.resize(layers);
    for (StringRef type : types)
      windows.sliding.push_back(type == "local");
  }

  static std::vector<std::string> expand(ConfigReader &config) {
    const json::Value *types = config.value("attention_types");
    std::vector<std::string> expanded;
    json::Array absent{json::Array{json::Array{"global", "local"}, 12}};
    for (const json::Value &group : types && types->getAsArray() ? *types->getAsArray() : absent) {
      const json::Array *pair = group.getAsArray();
      const json::Array *pattern = pair && pair->size() == 2 ? (*pair)[0].getAsArray() : nullptr;
      std::optional<int64_t> times = pattern ? (*pair)[1].getAsInteger() : std::nullopt;
      if (!times || *times < 0 || *times > maxLayers || pattern->size() > size_t(maxLayers)) {
        config.problem("attention_types", "is not understood; expected [[[\"global\", …], N], …]");
        return expanded;
      }
      for (int64_t i = 0; i < *times && expanded.size() <= size_t(maxLayers); ++i)
        for (const json::Value &type : *pattern)
          expanded.push_back(type.getAsString().value_or("").str());
    }
    return expanded;
  }

  int64_t positions;
  Norm norm;
  Attention attention;
  PlainMlp mlp;
  SlidingLayers windows;
};

} // namespace

std::unique_ptr<Family> hf::makeGptNeo(ConfigReader &config) {
  return std::make_unique<GptNeo>(config);
}
