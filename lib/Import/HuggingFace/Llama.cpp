// Llama 1 to 3:
//   v = x + W_o attention(R W_q n, R W_k n, W_v n)     n = w₁ ⊙ rms x
//   y = v + W_d (silu(W_g z) ⊙ W_u z)                  z = w₂ ⊙ rms v
// with R the rotation by position, and biases where the config has them.
#include "Family.h"
#include "Rope.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Llama : public Family {
public:
  explicit Llama(ConfigReader &config) {
    layers = config.integer("num_hidden_layers", 32, 1, maxLayers);
    hidden = config.integer("hidden_size", 4096, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 32000, 1, maxVocabulary);
    inner = config.integer("intermediate_size", 11008, 1, maxWidth);
    heads = readHeads(config, hidden, 32, std::nullopt, std::nullopt);
    eps = config.number("rms_norm_eps", 1e-6, 0, 1);
    act = readActivation(config, "hidden_act", "silu");
    attentionBias = config.flag("attention_bias", false);
    mlpBias = config.flag("mlp_bias", false);
    tied = config.flag("tie_word_embeddings", false);
    rope = readRope(config);
    if (config.integer("pretraining_tp", 1, 0, 1 << 20) > 1)
      config.problem("pretraining_tp", "is not supported; expected 1");
    config.require("rope_interleaved", false, false, "the two halves of a head are rotated");
    config.ignore("is_llama_config");
  }

  StringRef name() const override { return "llama"; }
  SmallVector<StringRef> stems() const override { return {"model.", ""}; }

  Value block(BlockBuilder &b, Value x) const override {
    Value r = b.rope("rotary", heads.dim, rope.attr(b.context(), heads.dim));
    Value n = b.rmsNorm("n", "input_layernorm", x, eps);
    Value q = project(b, "q", "self_attn.q_proj", heads.queries, n);
    Value k = project(b, "k", "self_attn.k_proj", heads.keys, n);
    Value v = project(b, "v", "self_attn.v_proj", heads.keys, n);
    Value qr = b.rotary("q_rot", q, r), kr = b.rotary("k_rot", k, r);
    Value o = b.flat("o", b.attention("o_heads", qr, kr, v, 1 / std::sqrt(double(heads.dim))));
    Value a = b.linear("attn", "self_attn.o_proj", hidden, o, attentionBias);
    Value mid = b.add("mid", x, a);

    Value z = b.rmsNorm("z", "post_attention_layernorm", mid, eps);
    Value g = b.linear("g", "mlp.gate_proj", inner, z, mlpBias);
    Value u = b.linear("u", "mlp.up_proj", inner, z, mlpBias);
    Value h = b.mul("h", b.activation("g_act", act, g), u);
    Value m = b.linear("mlp", "mlp.down_proj", hidden, h, mlpBias);
    return b.add("y", mid, m);
  }

  Value beforeHead(BlockBuilder &b, Value x) const override {
    return b.rmsNorm("n", "norm", x, eps);
  }

private:
  Value project(BlockBuilder &b, StringRef as, StringRef module, int64_t count, Value n) const {
    Value row = b.linear((as + "_row").str(), module, count * heads.dim, n, attentionBias);
    return b.heads(as, row, heads.dim);
  }

  HeadShape heads;
  int64_t inner;
  double eps;
  xf::ActivationKind act;
  bool attentionBias, mlpBias;
  Rope rope;
};

} // namespace

std::unique_ptr<Family> hf::makeLlama(ConfigReader &config) {
  return std::make_unique<Llama>(config);
}
