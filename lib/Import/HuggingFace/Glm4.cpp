// GLM 4 (0414): norms before and behind both branches, gate and up in one matrix.
// With N(w, x) = w ⊙ rms x:
//   v = x + N(w₂, W_o attention(R q, R k, v))      n = N(w₁, x),  q = W_q n + b_q, …
//   y = v + N(w₄, W_d (silu(g) ⊙ u))               z = N(w₃, v),  (g, u) = W_gu z
// R rotates a part of each head, neighbours together.
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Glm4 : public Decoder {
public:
  explicit Glm4(ConfigReader &config)
      : Decoder("glm4", config,
                {40, 4096, 13696, 151552, 32, 2, 128, /*tied=*/false, RopeForm::part(0.5)}) {
    norm = Norm::rms(config.number("rms_norm_eps", 1.5625e-7, 0, 1));
    attention.style = xf::RotaryStyle::interleaved;
    attention.qkvBias = config.flag("attention_bias", true);
    std::get<GatedMlp>(mlp).fused = true;
  }

  Value block(BlockBuilder &b, Value x, int64_t layer) const override {
    Value n = b.norm("n", "input_layernorm", norm, x);
    Value a = attend(b, n, layer);
    Value mid = b.add("mid", x, b.norm("attn_n", "post_self_attn_layernorm", norm, a));
    Value z = b.norm("z", "post_attention_layernorm", norm, mid);
    return b.add("y", mid, b.norm("mlp_n", "post_mlp_layernorm", norm, feed(b, z, layer)));
  }
};

} // namespace

std::unique_ptr<Family> hf::makeGlm4(ConfigReader &config) {
  return std::make_unique<Glm4>(config);
}
