// Qwen 2's mixtures (Qwen1.5-MoE-A2.7B, Qwen2-57B-A14B):
//   v = x + W_o attention(R q, R k, v)                         n = w₁ ⊙ rms x,  q = W_q n + b_q, …
//   y = v + Σ_e p_e E_e z + σ(w_s · z) S z                     z = w₂ ⊙ rms v
// with gated MLPs E_e and S, over the experts e with the largest entries of p = softmax(R z), which
// are made to sum to one where norm_topk_prob. Other layers have one gated MLP M: y = v + M z.
// Some layers may see a window.
#include "Decoder.h"
#include "QwenMixture.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Qwen2Moe : public Decoder {
public:
  explicit Qwen2Moe(ConfigReader &config)
      : Decoder("qwen2_moe", config, {24, 2048, 5632, 151936, 16, 16, std::nullopt}) {
    norm = Norm::rms(config.number("rms_norm_eps", 1e-6, 0, 1));
    attention.qkvBias = config.flag("qkv_bias", true);
    int64_t most = config.integer("max_window_layers", 28, 0, maxLayers);
    windows =
        readSwitchedWindows(config, layers, [&](int64_t i) { return i % 2 == 0 && i < most; });
    mixture.read(config, {60, 4, 1408, 5632, /*sumToOne=*/false});
  }

protected:
  Value feed(BlockBuilder &b, Value z, int64_t layer) const override {
    return mixture(b, z, layer);
  }

private:
  QwenMixture mixture;
};

} // namespace

std::unique_ptr<Family> hf::makeQwen2Moe(ConfigReader &config) {
  return std::make_unique<Qwen2Moe>(config);
}
