// BLOOM: scores fall with distance (ALiBi), and the embedding is normalised.
//   x = LN E[token]
//   v = r₁ + W_o attention(q, k, v) + b_o     n = LN₁ x      r₁ = x, r₂ = v, or
//   y = r₂ + W₂ gelu(W₁ z + b₁) + b₂          z = LN₂ v      r₁ = n, r₂ = z with
//                                                           apply_residual_connection_post_layernorm
// The rows of one matrix give q, k, v of the first head, then of the second, and so on. The score
// of a key at position j is q · k / √dim + m_h j.
#include "Parts.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Bloom : public Family {
public:
  explicit Bloom(ConfigReader &config) {
    layers = config.integer("n_layer", 2, 1, maxLayers);
    // The name in the published configs, which goes first.
    StringRef width = config.has("n_embed") ? "n_embed" : "hidden_size";
    hidden = config.integer(width, 64, 1, maxWidth);
    config.unread({{"hidden_size"}});
    vocabulary = config.integer("vocab_size", 250880, 1, maxVocabulary);
    tied = config.flag("tie_word_embeddings", true);
    norm = Norm::layer(config.number("layer_norm_epsilon", 1e-5, 0, 1));
    StringRef heads = config.has("num_attention_heads") ? "num_attention_heads" : "n_head";
    attention.heads = splitHeads(config, heads, 8, width, hidden);
    attention.setAlibi(/*scaled=*/false, /*rounded=*/false);
    mlp = {4 * hidden, xf::ActivationKind::gelu_tanh, /*bias=*/true, "dense_h_to_4h",
           "dense_4h_to_h"};
    residualIsNormed = config.flag("apply_residual_connection_post_layernorm", false);
    bool sliced = config.flag("slow_but_exact", false);
    if (config.integer("pretraining_tp", 1, 0, 1 << 20) > 1 && sliced)
      config.problem("slow_but_exact", "is not supported where 'pretraining_tp' is more than 1: "
                                       "transformers leaves out the bias of the attention then");
    // What its forward pass does not read.
    config.unread(
        {{"masked_softmax_fusion"}, {"offset_alibi"}, {"skip_bias_add"}, {"skip_bias_add_qkv"}});
  }

  StringRef name() const override { return "bloom"; }
  SmallVector<StringRef> stems() const override { return {"transformer.", ""}; }
  StringRef layerStem() const override { return "h."; }
  StringRef embeddingName() const override { return "word_embeddings.weight"; }

  Value afterEmbedding(BlockBuilder &b, Value x) const override {
    return b.norm("x_n", "word_embeddings_layernorm", norm, x);
  }

  Value block(BlockBuilder &b, Value x, int64_t) const override {
    Value n = b.norm("n", "input_layernorm", norm, x);
    Value row = b.linear("qkv_row", "self_attention.query_key_value", 3 * hidden, n, /*bias=*/true);
    Value o = attention.mixGroups(b, row);
    Value a = b.linear("attn", "self_attention.dense", hidden, o, /*bias=*/true);
    Value mid = b.add("mid", a, residualIsNormed ? n : x);
    Value z = b.norm("z", "post_attention_layernorm", norm, mid);
    return b.add("y", mlp(b, "mlp", "mlp", z), residualIsNormed ? z : mid);
  }

  Value beforeHead(BlockBuilder &b, Value x) const override { return b.norm("n", "ln_f", norm, x); }

private:
  Norm norm;
  Attention attention;
  PlainMlp mlp;
  bool residualIsNormed;
};

} // namespace

std::unique_ptr<Family> hf::makeBloom(ConfigReader &config) {
  return std::make_unique<Bloom>(config);
}
