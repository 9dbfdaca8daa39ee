// Phi 3 and 4: Llama's block with the rows of q, k, v and those of gate, up in one matrix each.
//   v = x + W_o attention(R q, R k, v)      (q, k, v) = W_qkv n      n = w₁ ⊙ rms x
//   y = v + W_d (silu(g) ⊙ u)               (g, u) = W_gu z          z = w₂ ⊙ rms v
// R may rotate a part of each head only; all layers may see a window.
#include "Family.h"
#include "Rope.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Phi3 : public Family {
public:
  explicit Phi3(ConfigReader &config) {
    layers = config.integer("num_hidden_layers", 32, 1, maxLayers);
    hidden = config.integer("hidden_size", 3072, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 32064, 1, maxVocabulary);
    inner = config.integer("intermediate_size", 8192, 1, maxWidth);
    heads = readHeads(config, hidden, 32, std::nullopt, std::nullopt);
    eps = config.number("rms_norm_eps", 1e-5, 0, 1);
    act = readActivation(config, "hidden_act", "silu");
    tied = config.flag("tie_word_embeddings", false);
    RopeForm form;
    form.mayScale = false; // its only scaling, longrope, depends on how long the run is
    form.mayRotatePart = true;
    rope = readRope(config, form, heads.dim);
    if (config.has("sliding_window"))
      window = config.integer("sliding_window", 1, 1, int64_t(1) << 40);
    for (StringRef key : {"attention_bias", "mlp_bias", "lm_head_bias"})
      config.require(key, false, false, "this family has no biases");
    // longrope's, and what no forward pass reads.
    for (StringRef key :
         {"original_max_position_embeddings", "full_attn_mod", "interpolate_factor"})
      config.ignore(key);
  }

  StringRef name() const override { return "phi3"; }
  SmallVector<StringRef> stems() const override { return {"model.", ""}; }

  Value block(BlockBuilder &b, Value x, int64_t) const override {
    Value near = window ? b.layerIndex("window", *window) : Value();
    Value r = b.rope("rotary", rope.dims(heads.dim), rope.attr(b.context(), heads.dim));
    Value n = b.rmsNorm("n", "input_layernorm", x, eps);
    int64_t all = heads.queries + 2 * heads.keys;
    Value qkv =
        b.heads("qkv", b.linear("qkv_row", "self_attn.qkv_proj", all * heads.dim, n), heads.dim);
    Value q = b.rotary("q_rot", b.slice("q", qkv, 0, heads.queries), r);
    Value k = b.rotary("k_rot", b.slice("k", qkv, heads.queries, heads.keys), r);
    Value v = b.slice("v", qkv, heads.queries + heads.keys, heads.keys);
    double scale = 1 / std::sqrt(double(heads.dim));
    Value o = b.flat("o", b.attention("o_heads", q, k, v, scale, near));
    Value mid = b.add("mid", x, b.linear("attn", "self_attn.o_proj", hidden, o));

    Value z = b.rmsNorm("z", "post_attention_layernorm", mid, eps);
    Value gu = b.linear("gu", "mlp.gate_up_proj", 2 * inner, z);
    Value g = b.slice("g", gu, 0, inner), u = b.slice("u", gu, inner, inner);
    Value h = b.mul("h", b.activation("g_act", act, g), u);
    return b.add("y", mid, b.linear("mlp", "mlp.down_proj", hidden, h));
  }

  Value beforeHead(BlockBuilder &b, Value x) const override {
    return b.rmsNorm("n", "norm", x, eps);
  }

private:
  HeadShape heads;
  int64_t inner;
  std::optional<int64_t> window;
  double eps;
  xf::ActivationKind act;
  Rope rope;
};

} // namespace

std::unique_ptr<Family> hf::makePhi3(ConfigReader &config) {
  return std::make_unique<Phi3>(config);
}
