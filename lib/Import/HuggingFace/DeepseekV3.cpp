// DeepSeek-V3 and R1: latent attention A (LatentAttention.h), and mixtures of gated MLPs with one
// for all tokens.
//   v = x + A n                                          n = w₁ ⊙ rms x
//   y = v + f Σ_e p_e E_e z + S z                        z = w₂ ⊙ rms v
// with s = σ(R z), over the experts e with the largest entries of s + b in those topk_group of
// n_group groups whose two largest entries have the largest sums, and p = s over their sum where
// norm_topk_prob. The first layers have one gated MLP M: y = v + M z.
#include "Decoder.h"
#include "LatentAttention.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class DeepseekV3 : public Decoder {
public:
  explicit DeepseekV3(ConfigReader &config) : Decoder("deepseek_v3", config, defaults()) {
    norm = Norm::rms(config.number("rms_norm_eps", 1e-6, 0, 1));
    latent = LatentAttention(config, attention.heads.queries, *attention.rope);
    if (attention.heads.keys != latent.heads)
      config.problem("num_key_value_heads", "is not num_attention_heads");
    if (config.has("head_dim") && attention.heads.dim != latent.rotated)
      config.problem("head_dim", "is not qk_rope_head_dim, of which it is another name");
    dense = config.integer("first_k_dense_replace", 3, 0, maxLayers);
    readMixture(config);
    // Layers that predict further tokens stand behind the last one, and are not read.
    extraLayers = config.integer("num_nextn_predict_layers", 1, 0, maxLayers);
    config.unread({{"num_mtp_layers"}, {"qk_head_dim"}, {"pretraining_tp"}});
  }

protected:
  Value attend(BlockBuilder &b, Value n, int64_t) const override {
    return latent(b, "attn", "self_attn", n);
  }

  Value feed(BlockBuilder &b, Value z, int64_t layer) const override {
    if (layer < dense)
      return Decoder::feed(b, z, layer);
    Value routed = experts(b, "routed", "mlp", z);
    return b.add("mlp", routed, shared(b, "common", "mlp.shared_experts", z, "shared_"));
  }

private:
  static Defaults defaults() {
    Defaults absent{61, 7168, 18432, 129280, 128, 128, 64};
    absent.rope.mayBeLong = false; // its factors would be for the part of a head that rotates
    return absent;
  }

  void readMixture(ConfigReader &config) {
    readExperts(config, expertsKey(config, "n_routed_experts"), 256, 8, experts);
    experts.act = shared.act = std::get<GatedMlp>(mlp).act;
    experts.inner = config.integer("moe_intermediate_size", 2048, 1, maxWidth);
    shared.inner = experts.inner * config.integer("n_shared_experts", 1, 1, maxExperts);
    experts.sigmoid = experts.corrected = true;
    experts.sumToOne = config.flag("norm_topk_prob", true);
    experts.factor = config.number("routed_scaling_factor", 2.5, 1e-6, 1e6);
    readExpertGroups(config, 8, 4, experts);
    // Keys of the model's first code; transformers' own class behaves as they say.
    if (config.text("scoring_func", "sigmoid") != "sigmoid")
      config.problem("scoring_func", "is not supported; sigmoid is");
    if (config.text("topk_method", "noaux_tc") != "noaux_tc")
      config.problem("topk_method", "is not supported; noaux_tc is");
    if (config.integer("moe_layer_freq", 1, 0, maxLayers) != 1)
      config.problem("moe_layer_freq", "is not supported; 1 is");
  }

  LatentAttention latent;
  int64_t dense; ///< layers without a mixture, from the first on
  GatedExperts experts;
  GatedMlp shared;
};

} // namespace

std::unique_ptr<Family> hf::makeDeepseekV3(ConfigReader &config) {
  return std::make_unique<DeepseekV3>(config);
}
