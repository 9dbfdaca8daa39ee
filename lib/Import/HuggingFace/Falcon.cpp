// Falcon, the form of the 7B model: attention and MLP in parallel, one key head.
//   y = x + (W₂ gelu(W₁ u) + W_o attention(R q, R k, v))     u = layernorm x
// where q (all heads), k and v are consecutive rows of one product W u.
#include "Family.h"
#include "Rope.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Falcon : public Family {
public:
  explicit Falcon(ConfigReader &config) {
    layers = config.integer("num_hidden_layers", 32, 1, maxLayers);
    hidden = config.integer("hidden_size", 4544, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 65024, 1, maxVocabulary);
    inner = config.integer("ffn_hidden_size", 4 * hidden, 1, 4 * maxWidth);
    heads = config.integer("num_attention_heads", 71, 1, maxHeads);
    eps = config.number("layer_norm_epsilon", 1e-5, 0, 1);
    act = readActivation(config, "activation", "gelu");
    bias = config.flag("bias", false);
    tied = config.flag("tie_word_embeddings", true);
    rope = readRope(config);
    dim = hidden / heads;
    if (hidden % heads || dim % 2)
      config.problem("hidden_size",
                     "is not an even multiple of num_attention_heads = " + Twine(heads));
    StringRef form = "only the form of Falcon-7B is (new_decoder_architecture false, multi_query "
                     "true, parallel_attn true, alibi false)";
    config.require("new_decoder_architecture", false, false, form);
    config.require("multi_query", true, true, form);
    config.require("parallel_attn", true, true, form);
    config.require("alibi", false, false, form);
    config.require("apply_residual_connection_post_layernorm", false, false, form);
    if (config.integer("num_ln_in_parallel_attn", 1, 0, 2) == 2)
      config.problem("num_ln_in_parallel_attn", "is not supported: " + form);
    config.ignore("num_kv_heads"); // multi_query has one, whatever it says
  }

  StringRef name() const override { return "falcon"; }
  SmallVector<StringRef> stems() const override { return {"transformer.", ""}; }
  StringRef layerStem() const override { return "h."; }
  StringRef embeddingName() const override { return "word_embeddings.weight"; }

  Value block(BlockBuilder &b, Value x, int64_t) const override {
    Value r = b.rope("rotary", dim, rope.attr(b.context(), dim));
    Value u = b.layerNorm("u", "input_layernorm", x, eps);
    Value fused = b.linear("qkv_row", "self_attention.query_key_value", (heads + 2) * dim, u, bias);
    Value qkv = b.heads("qkv", fused, dim);
    Value q = b.rotary("q_rot", b.slice("q", qkv, 0, heads), r);
    Value k = b.rotary("k_rot", b.slice("k", qkv, heads, 1), r);
    Value v = b.slice("v", qkv, heads + 1, 1);
    Value o = b.flat("o", b.attention("o_heads", q, k, v, 1 / std::sqrt(double(dim))));
    Value a = b.linear("attn", "self_attention.dense", hidden, o, bias);

    Value h = b.activation("h", act, b.linear("g", "mlp.dense_h_to_4h", inner, u, bias));
    Value m = b.linear("mlp", "mlp.dense_4h_to_h", hidden, h, bias);
    return b.add("y", x, b.add("branches", m, a));
  }

  Value beforeHead(BlockBuilder &b, Value x) const override {
    return b.layerNorm("n", "ln_f", x, eps);
  }

private:
  int64_t heads, dim, inner;
  double eps;
  xf::ActivationKind act;
  bool bias;
  Rope rope;
};

} // namespace

std::unique_ptr<Family> hf::makeFalcon(ConfigReader &config) {
  return std::make_unique<Falcon>(config);
}
