// OLMo 2: norms stand behind the branches alone, and over all heads of q and k together.
// With N(w, x) = w ⊙ rms x:
//   v = x + N(w₁, W_o attention(R N(w_q, W_q x), R N(w_k, W_k x), W_v x))
//   y = v + N(w₂, W_d (silu(W_g v) ⊙ W_u v))
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Olmo2 : public Decoder {
public:
  explicit Olmo2(ConfigReader &config)
      : Decoder("olmo2", config, {32, 4096, 11008, 50304, 32, std::nullopt, std::nullopt}) {
    norm = Norm::rms(config.number("rms_norm_eps", 1e-5, 0, 1));
    readAttentionBias(config);
    attention.headNorm = HeadNorm{norm, "_norm", HeadNorm::row};
  }

  Value block(BlockBuilder &b, Value x, int64_t layer) const override {
    Value a = b.norm("attn_n", "post_attention_layernorm", norm, attend(b, x, layer));
    Value mid = b.add("mid", x, a);
    return b.add("y", mid,
                 b.norm("mlp_n", "post_feedforward_layernorm", norm, feed(b, mid, layer)));
  }
};

} // namespace

std::unique_ptr<Family> hf::makeOlmo2(ConfigReader &config) {
  return std::make_unique<Olmo2>(config);
}
