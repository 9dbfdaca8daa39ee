// Qwen 3's mixtures (Qwen3-30B-A3B, Qwen3-235B-A22B): a norm N of each head of q and k, one w for
// all of them, and a mixture of gated MLPs.
//   v = x + W_o attention(R N(W_q n), R N(W_k n), W_v n)     n = w₁ ⊙ rms x
//   y = v + Σ_e p_e W_dᵉ (silu(W_gᵉ z) ⊙ W_uᵉ z)             z = w₂ ⊙ rms v
// over the experts e with the largest entries of p = softmax(R z), which are made to sum to one
// where norm_topk_prob. Other layers have one gated MLP M: y = v + M z. Where use_sliding_window,
// all layers see a window.
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Qwen3Moe : public Decoder {
public:
  explicit Qwen3Moe(ConfigReader &config)
      : Decoder("qwen3_moe", config, {24, 2048, 6144, 151936, 32, 4, std::nullopt}) {
    norm = Norm::rms(config.number("rms_norm_eps", 1e-6, 0, 1));
    readAttentionBias(config);
    attention.headNorm = HeadNorm{norm};
    if (config.flag("use_sliding_window", false))
      windows = readOneWindow(config, layers, 4096);
    experts.inner = config.integer("moe_intermediate_size", 768, 1, maxWidth);
    experts.act = std::get<GatedMlp>(mlp).act;
    experts.sumToOne = config.flag("norm_topk_prob", false);
    sparse = readSparseLayers(config, expertsKey(config, "num_experts"), 128, 8, experts);
    config.unread({{"sliding_window"}, // of other models of the family
                   {"use_qk_norm", "[true]", "queries and keys without norms"}});
  }

protected:
  Value feed(BlockBuilder &b, Value z, int64_t layer) const override {
    return sparse[layer] ? experts(b, "mlp", "mlp", z) : Decoder::feed(b, z, layer);
  }

private:
  GatedExperts experts;
  SparseLayers sparse;
};

} // namespace

std::unique_ptr<Family> hf::makeQwen3Moe(ConfigReader &config) {
  return std::make_unique<Qwen3Moe>(config);
}
