// Qwen3-Next: most layers have a gated delta rule in the place of attention; all norms but the one
// inside it are N(w, x) = (1 + w) ⊙ rms x.
//   v = x + D n, or v = x + W_o (attention(R N(w_q, q), R N(w_k, W_k n), W_v n) ⊙ σ(g))
//   y = v + M z                                     n = N(w₁, x),  z = N(w₂, v),  M a QwenMixture
// W_q n holds q and g, head by head. R rotates a part of each head.
//   D n = W_o' (w ⊙ rms h ⊙ silu t)        [q; k; v; t] = W_i n, head by head of k
//   h = delta(q' / √dim, k', v', softplus(a + b_τ), A_log, σ(b))      [b; a] = W_b n, the same
// with [q'; k'; v'] = silu(K * [q; k; v]), and q' and k' made unit vectors. `delta` is an
// xf.linear_attention with the decays exp(−exp A_log softplus(…)).
#include "Mixers.h"
#include "QwenMixture.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;
using xf::ActivationKind;

namespace {

class Qwen3Next : public Family {
public:
  explicit Qwen3Next(ConfigReader &config) {
    layers = config.integer("num_hidden_layers", 48, 1, maxLayers);
    hidden = config.integer("hidden_size", 2048, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 151936, 1, maxVocabulary);
    tied = config.flag("tie_word_embeddings", false);
    norm = Norm::rms(config.number("rms_norm_eps", 1e-6, 0, 1), /*offset=*/1);
    attention.heads = readHeads(config, hidden, 16, 2, 256);
    attention.rope = readRope(config, attention.heads.dim, RopeForm::part(0.25));
    positions = attention.rope->positions;
    attention.qkvBias = attention.outBias = config.flag("attention_bias", false);
    mixture.read(config, {512, 10, 512, 512, /*sumToOne=*/true});
    readDelta(config);
    readLayerTypes(config);
    config.require("use_sliding_window", false, false, "no layer has a window");
    otherTensors = {"mtp.*"}; // which predict further tokens
  }

  StringRef name() const override { return "qwen3_next"; }
  SmallVector<StringRef> stems() const override { return {"model.", ""}; }

  Value block(BlockBuilder &b, Value x, int64_t layer) const override {
    Value n = b.norm("n", "input_layernorm", norm, x);
    Value mid = b.add("mid", x, attends[layer] ? attend(b, n) : recur(b, n));
    return b.add("y", mid, mixture(b, b.norm("z", "post_attention_layernorm", norm, mid), layer));
  }

  Value beforeHead(BlockBuilder &b, Value x) const override { return b.norm("n", "norm", norm, x); }

private:
  Value attend(BlockBuilder &b, Value n) const {
    auto [queries, keys, dim] = attention.heads;
    bool bias = attention.qkvBias;
    Value row = b.linear("qg_row", "self_attn.q_proj", 2 * queries * dim, n, bias);
    Value qg = b.heads("qg", row, 2 * dim);
    Value g = b.flat("g", b.slice("g_heads", qg, dim, dim, /*along=*/1));
    Value q = b.norm("q_n", "self_attn.q_norm", norm, b.slice("q", qg, 0, dim, /*along=*/1));
    Value k = b.heads("k", b.linear("k_row", "self_attn.k_proj", keys * dim, n, bias), dim);
    Value v = b.heads("v", b.linear("v_row", "self_attn.v_proj", keys * dim, n, bias), dim);
    Value o = attention.mix(b, q, b.norm("k_n", "self_attn.k_norm", norm, k), v);
    Value gated = b.mul("gated", o, b.activation("g_act", ActivationKind::sigmoid, g));
    return b.linear("attn", "self_attn.o_proj", hidden, gated, attention.outBias);
  }

  /// D n.
  Value recur(BlockBuilder &b, Value n) const {
    int64_t each = valueHeads / keyHeads, group = each * valueDim; // of a head of k
    int64_t keys = keyHeads * keyDim, values = valueHeads * valueDim;
    Value row = b.linear("qkvt_row", "linear_attn.in_proj_qkvz", 2 * (keys + values), n);
    Value qkvt = b.heads("qkvt", row, 2 * (keyDim + group));
    auto part = [&](StringRef as, Value from, int64_t first, int64_t size) {
      return b.flat(as, b.slice((as + "_heads").str(), from, first, size, /*along=*/1));
    };
    Value mixed = b.concat("qkv", {part("q", qkvt, 0, keyDim), part("k", qkvt, keyDim, keyDim),
                                   part("v", qkvt, 2 * keyDim, group)});
    Value t = part("t", qkvt, 2 * keyDim + group, group);
    Value c = conv(b, "c", "linear_attn.conv1d", mixed);
    Value q = unit(b, "q_unit", b.slice("q_c", c, 0, keys));
    Value k = unit(b, "k_unit", b.slice("k_c", c, keys, keys));
    Value v = b.heads("v_c_heads", b.slice("v_c", c, 2 * keys, values), valueDim);

    Value ba =
        b.heads("ba", b.linear("ba_row", "linear_attn.in_proj_ba", 2 * valueHeads, n), 2 * each);
    Value beta = b.activation("beta", ActivationKind::sigmoid, part("b", ba, 0, each));
    Value bias = b.param("linear_attn.dt_bias", {valueHeads});
    Value dt = b.activation("dt", ActivationKind::softplus,
                            b.bias("step", part("a", ba, each, each), bias));
    Value A = b.param("linear_attn.A_log", {valueHeads});
    q = b.times("q_scaled", q, 1 / std::sqrt(double(keyDim)));
    Value h = b.linearAttention("h", "linear_attn", q, k, v, dt, A, beta);

    Norm inside = Norm::rms(norm.eps);
    Value h_n = b.flat("h_row", b.norm("h_n", "linear_attn.norm", inside, h));
    Value gated = b.mul("gated", h_n, b.activation("t_act", ActivationKind::silu, t));
    return b.linear("mixed", "linear_attn.out_proj", hidden, gated);
  }

  /// Each head of q or k, x / √(Σ x² + 10⁻⁶).
  Value unit(BlockBuilder &b, StringRef as, Value x) const {
    Norm plain{xf::NormKind::l2, 1e-6, /*offset=*/0, /*scale=*/false};
    return b.norm(as, "linear_attn", plain, b.heads((as + "_heads").str(), x, keyDim));
  }

  void readDelta(ConfigReader &config) {
    keyHeads = config.integer("linear_num_key_heads", 16, 1, maxHeads);
    valueHeads = config.integer("linear_num_value_heads", 32, 1, maxHeads);
    keyDim = config.integer("linear_key_head_dim", 128, 1, maxHeads);
    valueDim = config.integer("linear_value_head_dim", 128, 1, maxHeads);
    if (valueHeads % keyHeads)
      config.problem("linear_num_value_heads",
                     "is not a multiple of linear_num_key_heads = " + Twine(keyHeads));
    conv = {readKernel(config, "linear_conv_kernel_dim"),
            readActivation(config, "hidden_act", "silu"), /*bias=*/false};
  }

  /// layer_types; where absent, every so many-th layer attends.
  void readLayerTypes(ConfigReader &config) {
    int64_t interval = config.integer("full_attention_interval", 4, 1, maxLayers);
    std::vector<std::string> types = config.texts("layer_types");
    for (int64_t i = 0; i < layers && !config.has("layer_types"); ++i)
      types.push_back((i + 1) % interval ? "linear_attention" : "full_attention");
    if (!all_of(types,
                [](StringRef t) { return t == "linear_attention" || t == "full_attention"; }))
      config.problem("layer_types", "has an unknown entry; linear_attention and full_attention are "
                                    "supported");
    if (int64_t(types.size()) != layers)
      config.problem("layer_types", "has " + Twine(types.size()) +
                                        " entries; expected num_hidden_layers = " + Twine(layers));
    types.resize(layers);
    for (StringRef type : types)
      attends.push_back(type == "full_attention");
  }

  Norm norm;
  Attention attention;
  QwenMixture mixture;
  CausalConv conv;
  int64_t keyHeads, valueHeads, keyDim, valueDim;
  std::vector<bool> attends; ///< by layer; the others recur
};

} // namespace

std::unique_ptr<Family> hf::makeQwen3Next(ConfigReader &config) {
  return std::make_unique<Qwen3Next>(config);
}
