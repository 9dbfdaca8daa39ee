// Qwen 2's mixtures (Qwen1.5-MoE-A2.7B, Qwen2-57B-A14B):
//   v = x + W_o attention(R q, R k, v)                         n = w₁ ⊙ rms x,  q = W_q n + b_q, …
//   y = v + Σ_e p_e E_e z + σ(w_s · z) S z                     z = w₂ ⊙ rms v
// with gated MLPs E_e and S, over the experts e with the largest entries of p = softmax(R z), which
// are made to sum to one where norm_topk_prob. Other layers have one gated MLP M: y = v + M z.
// Some layers may see a window.
#include "QwenMixture.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Qwen2Moe : public Family {
public:
  explicit Qwen2Moe(ConfigReader &config) {
    layers = config.integer("num_hidden_layers", 24, 1, maxLayers);
    hidden = config.integer("hidden_size", 2048, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 151936, 1, maxVocabulary);
    eps = config.number("rms_norm_eps", 1e-6, 0, 1);
    tied = config.flag("tie_word_embeddings", false);
    attention.heads = readHeads(config, hidden, 16, 16, std::nullopt);
    attention.rope = readRope(config);
    attention.qkvBias = config.flag("qkv_bias", true);
    int64_t most = config.integer("max_window_layers", 28, 0, maxLayers);
    windows =
        readSwitchedWindows(config, layers, [&](int64_t i) { return i % 2 == 0 && i < most; });
    mixture.read(config, {60, 4, 1408, 5632, /*sumToOne=*/false});
  }

  StringRef name() const override { return "qwen2_moe"; }
  SmallVector<StringRef> stems() const override { return {"model.", ""}; }

  Value block(BlockBuilder &b, Value x, int64_t layer) const override {
    Value window = windows.of(b, layer);
    Value n = b.rmsNorm("n", "input_layernorm", x, eps);
    Value mid = b.add("mid", x, attention(b, "attn", "self_attn", n, window));
    Value z = b.rmsNorm("z", "post_attention_layernorm", mid, eps);
    return b.add("y", mid, mixture(b, z, layer));
  }

  Value beforeHead(BlockBuilder &b, Value x) const override {
    return b.rmsNorm("n", "norm", x, eps);
  }

private:
  double eps;
  Attention attention;
  SlidingLayers windows;
  QwenMixture mixture;
};

} // namespace

std::unique_ptr<Family> hf::makeQwen2Moe(ConfigReader &config) {
  return std::make_unique<Qwen2Moe>(config);
}
