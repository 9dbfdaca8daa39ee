// Falcon-H1: attention and a mixer with a state (Mamba 2's) beside each other, with a factor at
// nearly every place:
//   v = x + s_o S(n) + a_o W_o attention(R q, k_m R k, v)     n = w₁ ⊙ rms x,  q = W_q a_i n, …
//   y = v + d W_d (silu(g W_g z) ⊙ W_u z)                     z = w₂ ⊙ rms v
//   S(n) = W_o' N(y, t)     [t; u; B; C; τ] = m ⊙ W_i s_i n,  [u'; B'; C'] = silu(K * [u; B; C] +
//   b) y = scan(u', softplus(τ + b_τ), −exp A_log, B', C') + D ⊙ u'
// with one of m for each part, and N the product y ⊙ silu t, normalised before or after it where
// mamba_rms_norm. A and D are numbers of a head. `scan` is an xf.linear_attention.
#include "Mixers.h"
#include "Parts.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;
using xf::ActivationKind;

namespace {

constexpr double most = 1e6; // of a factor

class FalconH1 : public Family {
public:
  explicit FalconH1(ConfigReader &config) {
    layers = config.integer("num_hidden_layers", 32, 1, maxLayers);
    hidden = config.integer("hidden_size", 4096, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 128000, 1, maxVocabulary);
    tied = config.flag("tie_word_embeddings", false);
    norm = Norm::rms(config.number("rms_norm_eps", 1e-5, 0, 1));
    embeddingFactor = config.number("embedding_multiplier", 1, -most, most);
    logitFactor = config.number("lm_head_multiplier", 1, -most, most);
    readAttention(config);
    readMixer(config);
    inner = config.integer("intermediate_size", 14336, 1, maxWidth);
    mlpBias = config.flag("mlp_bias", false);
    mlpFactors = config.factors("mlp_multipliers", 2, -most, most);
    // What other implementations read; what the blocks are called.
    config.unread({{"mamba_use_mlp"}, {"mlp_expansion_factor"}});
  }

  StringRef name() const override { return "falcon_h1"; }
  SmallVector<StringRef> stems() const override { return {"model.", ""}; }

  Value block(BlockBuilder &b, Value x, int64_t) const override {
    Value n = b.norm("n", "input_layernorm", norm, x);
    Value state = times(b, "mixed_scaled", mix(b, n), stateOut);
    Value a = attention(b, "attn", "self_attn", times(b, "n_attn", n, attentionIn));
    Value both = b.add("both", state, times(b, "attn_scaled", a, attentionOut));
    Value mid = b.add("mid", x, both);
    return b.add("y", mid, feed(b, b.norm("z", "pre_ff_layernorm", norm, mid)));
  }

  Value afterEmbedding(BlockBuilder &b, Value x) const override {
    return times(b, "x_scaled", x, embeddingFactor);
  }
  Value beforeHead(BlockBuilder &b, Value x) const override {
    return b.norm("n", "final_layernorm", norm, x);
  }
  Value afterHead(BlockBuilder &b, Value logits) const override {
    return times(b, "logits_scaled", logits, logitFactor);
  }

private:
  static Value times(BlockBuilder &b, StringRef as, Value x, double factor) {
    return factor == 1 ? x : b.times(as, x, factor);
  }

  void readAttention(ConfigReader &config) {
    attention.heads = readHeads(config, hidden, 32, 8, std::nullopt);
    attention.rope = readRope(config, attention.heads.dim);
    positions = attention.rope->positions;
    attention.qkvBias = attention.outBias = config.flag("attention_bias", false);
    // (q · k_m k) is the score of both, rotated or not.
    attention.scale =
        config.number("key_multiplier", 1, -most, most) / std::sqrt(double(attention.heads.dim));
    attentionIn = config.number("attention_in_multiplier", 1, -most, most);
    attentionOut = config.number("attention_out_multiplier", 1, -most, most);
  }

  void readMixer(ConfigReader &config) {
    int64_t expanded = config.integer("mamba_expand", 2, 1, 1 << 10) * hidden;
    width = config.integer("mamba_d_ssm", config.isNull("mamba_d_ssm") ? expanded : 1024, 1,
                           4 * maxWidth);
    heads = config.integer("mamba_n_heads", 128, 1, maxHeads);
    const json::Value *dim = config.value("mamba_d_head");
    int64_t each = width / heads;
    if (dim && dim->getAsString() != StringRef("auto"))
      each = config.integer("mamba_d_head", each, 1, maxWidth);
    if (each * heads != width)
      config.problem("mamba_n_heads", "times mamba_d_head = " + Twine(each) +
                                          " is not the mixer's width, " + Twine(width));
    groups = config.integer("mamba_n_groups", 1, 1, maxHeads);
    if (heads % groups || width % groups)
      config.problem("mamba_n_groups", "does not divide mamba_n_heads = " + Twine(heads) +
                                           " and the mixer's width, " + Twine(width));
    state = config.integer("mamba_d_state", 256, 1, maxWidth);
    act = readActivation(config, "hidden_act", "silu");
    conv = {readKernel(config, "mamba_d_conv"), act, config.flag("mamba_conv_bias", true)};
    inBias = config.flag("mamba_proj_bias", false);
    outBias = config.flag("projectors_bias", false);
    normed = config.flag("mamba_rms_norm", false);
    normFirst = config.flag("mamba_norm_before_gate", true);
    stateIn = config.number("ssm_in_multiplier", 1, -most, most);
    stateOut = config.number("ssm_out_multiplier", 1, -most, most);
    parts = config.factors("ssm_multipliers", 5, -most, most);
    checkTimeSteps(config);
    ignoreMixerKeys(config);
  }

  /// Null, or [0, ∞] as transformers writes it: softplus is in that range by itself.
  static void checkTimeSteps(ConfigReader &config) {
    const json::Value *limit = config.value("time_step_limit");
    if (!limit)
      return;
    const json::Array *range = limit->getAsArray();
    bool none = false;
    if (range && range->size() == 2 && (*range)[0].getAsNumber() == 0.0)
      if (const json::Object *last = (*range)[1].getAsObject())
        none = last->getString("__float__") == StringRef("Infinity");
    if (!none)
      config.problem("time_step_limit", "is not supported; expected none, "
                                        "[0.0, {\"__float__\": \"Infinity\"}]");
  }

  /// S(n).
  Value mix(BlockBuilder &b, Value n) const {
    int64_t shared = groups * state, mixed = width + 2 * shared;
    Value row = b.linear("tuBCs", "mamba.in_proj", width + mixed + heads,
                         times(b, "n_mixer", n, stateIn), inBias);
    int64_t from = 0, index = 0;
    auto part = [&](StringRef as, int64_t size) {
      double factor = parts[index++];
      Value x = b.slice(factor == 1 ? as.str() : (as + "_in").str(), row, from, size);
      from += size;
      return times(b, as, x, factor);
    };
    Value t = part("t", width), u = part("u", width), B = part("B", shared);
    Value C = part("C", shared), step = part("step", heads);

    Value c = conv(b, "c", "mamba.conv1d", b.concat("uBC", {u, B, C}));
    Value dt = b.activation("dt", ActivationKind::softplus,
                            b.bias("step_biased", step, b.param("mamba.dt_bias", {heads})));
    Value A = b.param("mamba.A_log", {heads}), D = b.param("mamba.D", {heads});
    // Δ and D have a number for each head: columns of the transposed heads are multiplied by it.
    int64_t dim = width / heads;
    Value columns =
        b.transpose("u_columns", b.heads("u_c_heads", b.slice("u_c", c, 0, width), dim));
    Value steps = b.broadcast("dt_rows", b.reshape("dt_row", dt, {1, heads}), dim);
    Value v = b.transpose("dtu", b.mul("dtu_columns", columns, steps));
    Value skip = b.flat("skip", b.transpose("skip_heads", b.scale("skip_columns", columns, D)));
    Value h = b.linearAttention(
        "scanned_heads", "mamba",
        b.heads("C_groups", b.slice("C_c", c, width + shared, shared), this->state),
        b.heads("B_groups", b.slice("B_c", c, width, shared), this->state), v, dt, A);
    Value y = b.add("kept", b.flat("scanned", h), skip);
    return b.linear("mixed", "mamba.out_proj", hidden, gate(b, y, t), outBias);
  }

  /// N(y, t).
  Value gate(BlockBuilder &b, Value y, Value t) const {
    Value g = b.activation("t_act", ActivationKind::silu, t);
    if (normed && normFirst)
      return b.mul("gated", normGroups(b, y), g);
    Value gated = b.mul("gated", y, g);
    return normed ? normGroups(b, gated) : gated;
  }

  /// w ⊙ rms of each group.
  Value normGroups(BlockBuilder &b, Value y) const {
    Norm plain = norm;
    plain.scale = false;
    Value each = b.norm("y_hat", "mamba.norm", plain, b.heads("y_groups", y, width / groups));
    return b.scale("y_n", b.flat("y_row", each), b.param("mamba.norm.weight", {width}));
  }

  Value feed(BlockBuilder &b, Value z) const {
    Value g = b.linear("g", "feed_forward.gate_proj", inner, z, mlpBias);
    Value u = b.linear("u", "feed_forward.up_proj", inner, z, mlpBias);
    Value h = b.mul("h", b.activation("g_act", act, times(b, "g_scaled", g, mlpFactors[0])), u);
    Value d = b.linear("mlp", "feed_forward.down_proj", hidden, h, mlpBias);
    return times(b, "mlp_scaled", d, mlpFactors[1]);
  }

  Norm norm;
  double embeddingFactor, logitFactor;
  Attention attention;
  double attentionIn, attentionOut;
  int64_t width, heads, groups, state; ///< of the mixer
  CausalConv conv;
  bool inBias, outBias, normed, normFirst;
  double stateIn, stateOut;
  std::vector<double> parts, mlpFactors;
  xf::ActivationKind act;
  int64_t inner;
  bool mlpBias;
};

} // namespace

std::unique_ptr<Family> hf::makeFalconH1(ConfigReader &config) {
  return std::make_unique<FalconH1>(config);
}
