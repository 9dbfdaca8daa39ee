// Gemma 2. With N(w, x) = (1 + w) ⊙ rms x and soft caps c on attention's scores and the logits:
//   v = x + N(w₂, W_o attention_c(R W_q n, R W_k n, W_v n))      n = N(w₁, x)
//   y = v + N(w₄, W_d (gelu(W_g z) ⊙ W_u z))                     z = N(w₃, v)
// Every other layer, from the first on, sees a window only.
#include "Decoder.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Gemma2 : public Decoder {
public:
  explicit Gemma2(ConfigReader &config) : Decoder("gemma2", config, defaults()) {
    norm = Norm::rms(config.number("rms_norm_eps", 1e-6, 0, 1), /*offset=*/1);
    readAttentionBias(config);
    attention.scale = 1 / std::sqrt(config.number("query_pre_attn_scalar", 256, 1e-6, 1e12));
    attention.cap = config.optionalNumber("attn_logit_softcapping", 50, 1e-6, 1e9);
    logitCap = config.optionalNumber("final_logit_softcapping", 30, 1e-6, 1e9);
    windows = readSlidingLayers(config, layers, /*pattern=*/2, 4096);
    // √hidden is rounded to float32, as it is where the weights are float32.
    embeddingFactor = std::sqrt(double(hidden));
    config.require("use_bidirectional_attention", false, false, "only causal attention is");
    // Gemma 2's configs keep these, and its forward pass reads none of them.
    config.unread({{"hidden_act"}, {"sliding_window_size"}});
  }

  Value block(BlockBuilder &b, Value x, int64_t layer) const override {
    Value n = b.norm("n", "input_layernorm", norm, x);
    Value a = b.norm("attn_n", "post_attention_layernorm", norm, attend(b, n, layer));
    Value mid = b.add("mid", x, a);
    Value z = b.norm("z", "pre_feedforward_layernorm", norm, mid);
    return b.add("y", mid, b.norm("mlp_n", "post_feedforward_layernorm", norm, feed(b, z, layer)));
  }

private:
  static Defaults defaults() {
    Defaults absent{26, 2304, 9216, 256000, 8, 4, 256, /*tied=*/true};
    absent.act = "gelu_pytorch_tanh";
    absent.actKey = "hidden_activation";
    return absent;
  }
};

} // namespace

std::unique_ptr<Family> hf::makeGemma2(ConfigReader &config) {
  return std::make_unique<Gemma2>(config);
}
