// Jamba: Llama's block with Mamba's mixer M in the place of attention in most layers, and a mixture
// in the place of the MLP in some:
//   v = x + M n, or v = x + W_o attention(W_q n, W_k n, W_v n)      n = w₁ ⊙ rms x
//   y = v + W_d (silu(W_g z) ⊙ W_u z), or y = v + Σ_e p_e E_e z     z = w₂ ⊙ rms v
// with gated MLPs E_e, over the experts with the largest entries of p = softmax(R z). Nothing is
// rotated.
#include "Mixers.h"
#include "Parts.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

/// Layers i with i mod period = offset.
struct Every {
  int64_t period = 1, offset = 0;
  bool has(int64_t layer) const { return layer % period == offset; }
};

class Jamba : public Family {
public:
  explicit Jamba(ConfigReader &config) {
    layers = config.integer("num_hidden_layers", 32, 1, maxLayers);
    hidden = config.integer("hidden_size", 4096, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 65536, 1, maxVocabulary);
    tied = config.flag("tie_word_embeddings", false);
    norm = Norm::rms(config.number("rms_norm_eps", 1e-6, 0, 1));
    attention.heads = readHeads(config, hidden, 32, 8, std::nullopt, /*rotates=*/false);
    mlp = {config.integer("intermediate_size", 14336, 1, maxWidth),
           readActivation(config, "hidden_act", "silu")};
    attends = readEvery(config, "attn_layer_period", "attn_layer_offset", {8, 4});
    readMixer(config);
    readMixtures(config);
    config.unread({{"n_ctx"}}); // the first checkpoints' limit of positions
  }

  StringRef name() const override { return "jamba"; }
  SmallVector<StringRef> stems() const override { return {"model.", ""}; }

  Value block(BlockBuilder &b, Value x, int64_t layer) const override {
    Value n = b.norm("n", "input_layernorm", norm, x);
    Value mixed =
        attends.has(layer) ? attention(b, "attn", "self_attn", n) : mixer(b, "mixed", "mamba", n);
    Value mid = b.add("mid", x, mixed);
    Value z = b.norm("z", "pre_ff_layernorm", norm, mid);
    bool mixture = experts.count > 1 && mixes.has(layer);
    return b.add("y", mid,
                 mixture ? experts(b, "mlp", "feed_forward", z) : mlp(b, "mlp", "feed_forward", z));
  }

  Value beforeHead(BlockBuilder &b, Value x) const override {
    return b.norm("n", "final_layernorm", norm, x);
  }

private:
  static Every readEvery(ConfigReader &config, StringRef period, StringRef offset, Every absent) {
    Every every;
    every.period = config.integer(period, absent.period, 1, maxLayers);
    every.offset = config.integer(offset, absent.offset, 0, maxLayers);
    if (every.offset >= every.period)
      config.problem(offset, "is not less than " + period + " = " + Twine(every.period));
    return every;
  }

  void readMixer(ConfigReader &config) {
    mixer.inner = config.integer("mamba_expand", 2, 1, 1 << 10) * hidden;
    mixer.state = config.integer("mamba_d_state", 16, 1, maxWidth);
    mixer.rank = readTimeStepRank(config, "mamba_dt_rank", hidden);
    mixer.bias = config.flag("mamba_proj_bias", false);
    mixer.conv = {readKernel(config, "mamba_d_conv"), mlp.act,
                  config.flag("mamba_conv_bias", true)};
    mixer.norm = norm;
    config.require("mamba_inner_layernorms", true, true, "a mixer has norms of Δ, B and C");
    ignoreMixerKeys(config);
  }

  void readMixtures(ConfigReader &config) {
    mixes = readEvery(config, "expert_layer_period", "expert_layer_offset", {2, 1});
    experts.inner = mlp.inner;
    experts.act = mlp.act;
    experts.router = "router";
    readExperts(config, "num_experts", 16, 2, experts);
  }

  Norm norm;
  Attention attention;
  Every attends, mixes;
  SelectiveScan mixer;
  GatedMlp mlp;
  GatedExperts experts;
};

} // namespace

std::unique_ptr<Family> hf::makeJamba(ConfigReader &config) {
  return std::make_unique<Jamba>(config);
}
