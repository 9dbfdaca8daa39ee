// OLMo 2: norms stand behind the branches alone, and over all heads of q and k together.
// With N(w, x) = w ⊙ rms x:
//   v = x + N(w₁, W_o attention(R N(w_q, W_q x), R N(w_k, W_k x), W_v x))
//   y = v + N(w₂, W_d (silu(W_g v) ⊙ W_u v))
#include "Family.h"
#include "Rope.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Olmo2 : public Family {
public:
  explicit Olmo2(ConfigReader &config) {
    layers = config.integer("num_hidden_layers", 32, 1, maxLayers);
    hidden = config.integer("hidden_size", 4096, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 50304, 1, maxVocabulary);
    inner = config.integer("intermediate_size", 11008, 1, maxWidth);
    heads = readHeads(config, hidden, 32, std::nullopt, std::nullopt);
    eps = config.number("rms_norm_eps", 1e-5, 0, 1);
    act = readActivation(config, "hidden_act", "silu");
    attentionBias = config.flag("attention_bias", false);
    tied = config.flag("tie_word_embeddings", false);
    rope = readRope(config);
  }

  StringRef name() const override { return "olmo2"; }
  SmallVector<StringRef> stems() const override { return {"model.", ""}; }

  Value block(BlockBuilder &b, Value x, int64_t) const override {
    Value r = b.rope("rotary", heads.dim, rope.attr(b.context(), heads.dim));
    Value q =
        b.heads("q", b.rmsNorm("q_n", "self_attn.q_norm", project(b, "q", heads.queries, x), eps),
                heads.dim);
    Value k = b.heads(
        "k", b.rmsNorm("k_n", "self_attn.k_norm", project(b, "k", heads.keys, x), eps), heads.dim);
    Value v = b.heads("v", project(b, "v", heads.keys, x), heads.dim);
    Value qr = b.rotary("q_rot", q, r), kr = b.rotary("k_rot", k, r);
    Value o = b.flat("o", b.attention("o_heads", qr, kr, v, 1 / std::sqrt(double(heads.dim))));
    Value a = b.linear("attn", "self_attn.o_proj", hidden, o, attentionBias);
    Value mid = b.add("mid", x, b.rmsNorm("attn_n", "post_attention_layernorm", a, eps));

    Value g = b.linear("g", "mlp.gate_proj", inner, mid);
    Value u = b.linear("u", "mlp.up_proj", inner, mid);
    Value h = b.mul("h", b.activation("g_act", act, g), u);
    Value m = b.linear("mlp", "mlp.down_proj", hidden, h);
    return b.add("y", mid, b.rmsNorm("mlp_n", "post_feedforward_layernorm", m, eps));
  }

  Value beforeHead(BlockBuilder &b, Value x) const override {
    return b.rmsNorm("n", "norm", x, eps);
  }

private:
  Value project(BlockBuilder &b, StringRef as, int64_t count, Value x) const {
    return b.linear((as + "_row").str(), ("self_attn." + as + "_proj").str(), count * heads.dim, x,
                    attentionBias);
  }

  HeadShape heads;
  int64_t inner;
  double eps;
  xf::ActivationKind act;
  bool attentionBias;
  Rope rope;
};

} // namespace

std::unique_ptr<Family> hf::makeOlmo2(ConfigReader &config) {
  return std::make_unique<Olmo2>(config);
}
