// GPT-2. Matrices are stored transposed, positions have a table of their own:
//   x = E[token] + P[position]
//   v = x + W_o attention(q, k, v) + b_o        (q, k, v) = W_a LN₁ x + b_a
//   y = v + W₂ gelu(W₁ LN₂ v + b₁) + b₂
#include "Parts.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Gpt2 : public Family {
public:
  explicit Gpt2(ConfigReader &config) {
    layers = config.integer("n_layer", 12, 1, maxLayers);
    hidden = config.integer("n_embd", 768, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 50257, 1, maxVocabulary);
    positions = config.integer("n_positions", 1024, 1, maxVocabulary);
    inner = config.integer("n_inner", 4 * hidden, 1, 4 * maxWidth);
    act = readActivation(config, "activation_function", "gelu_new");
    norm = Norm::layer(config.number("layer_norm_epsilon", 1e-5, 0, 1));
    tied = config.flag("tie_word_embeddings", true);
    attention.heads = splitHeads(config, "n_head", 12, "n_embd", hidden);
    if (!config.flag("scale_attn_weights", true))
      attention.scale = 1;
    byLayer = config.flag("scale_attn_by_inverse_layer_idx", false);
    config.require("add_cross_attention", false, false, "only a decoder alone is");
    // The order of roundings, and the length of training.
    config.unread({{"reorder_and_upcast_attn"}, {"n_ctx"}});
    otherTensors = {"*.attn.bias", "*.attn.masked_bias"}; // masks, which were stored once
  }

  StringRef name() const override { return "gpt2"; }
  SmallVector<StringRef> stems() const override { return {"transformer.", ""}; }
  StringRef layerStem() const override { return "h."; }
  StringRef embeddingName() const override { return "wte.weight"; }

  Value afterEmbedding(BlockBuilder &b, Value x) const override {
    Value table = b.param("wpe.weight", {positions, hidden});
    return b.add("x_placed", x, b.embed("x_place", table, b.position("position")));
  }

  Value block(BlockBuilder &b, Value x, int64_t layer) const override {
    auto [heads, keys, dim] = attention.heads;
    Value n = b.norm("n", "ln_1", norm, x);
    Value qkv = b.heads("qkv", b.conv1d("qkv_row", "attn.c_attn", 3 * hidden, n), dim);
    Value q = b.slice("q", qkv, 0, heads);
    Value k = b.slice("k", qkv, heads, keys);
    Value v = b.slice("v", qkv, heads + keys, keys);
    if (byLayer)
      q = b.mul("q_scaled", q, b.layerNumber("attention_scale", 1.0f / float(layer + 1)));
    Value o = attention.mix(b, q, k, v);
    Value mid = b.add("mid", x, b.conv1d("attn", "attn.c_proj", hidden, o));

    Value z = b.norm("z", "ln_2", norm, mid);
    Value h = b.activation("h", act, b.conv1d("g", "mlp.c_fc", inner, z));
    return b.add("y", mid, b.conv1d("mlp", "mlp.c_proj", hidden, h));
  }

  Value beforeHead(BlockBuilder &b, Value x) const override { return b.norm("n", "ln_f", norm, x); }

private:
  int64_t positions, inner;
  xf::ActivationKind act;
  Norm norm;
  Attention attention;
  bool byLayer;
};

} // namespace

std::unique_ptr<Family> hf::makeGpt2(ConfigReader &config) {
  return std::make_unique<Gpt2>(config);
}
