// Llama 1 to 3:
//   v = x + W_o attention(R W_q n, R W_k n, W_v n)     n = w₁ ⊙ rms x
//   y = v + W_d (silu(W_g z) ⊙ W_u z)                  z = w₂ ⊙ rms v
// with R the rotation by position, and biases where the config has them.
#include "Parts.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Llama : public Family {
public:
  explicit Llama(ConfigReader &config) {
    layers = config.integer("num_hidden_layers", 32, 1, maxLayers);
    hidden = config.integer("hidden_size", 4096, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 32000, 1, maxVocabulary);
    eps = config.number("rms_norm_eps", 1e-6, 0, 1);
    tied = config.flag("tie_word_embeddings", false);
    attention.heads = readHeads(config, hidden, 32, std::nullopt, std::nullopt);
    attention.rope = readRope(config);
    attention.qkvBias = attention.outBias = config.flag("attention_bias", false);
    mlp.inner = config.integer("intermediate_size", 11008, 1, maxWidth);
    mlp.act = readActivation(config, "hidden_act", "silu");
    mlp.bias = config.flag("mlp_bias", false);
    if (config.integer("pretraining_tp", 1, 0, 1 << 20) > 1)
      config.problem("pretraining_tp", "is not supported; expected 1");
    config.require("rope_interleaved", false, false, "the two halves of a head are rotated");
    config.ignore("is_llama_config");
  }

  StringRef name() const override { return "llama"; }
  SmallVector<StringRef> stems() const override { return {"model.", ""}; }

  Value block(BlockBuilder &b, Value x, int64_t) const override {
    Value n = b.rmsNorm("n", "input_layernorm", x, eps);
    Value mid = b.add("mid", x, attention(b, "attn", "self_attn", n));
    Value z = b.rmsNorm("z", "post_attention_layernorm", mid, eps);
    return b.add("y", mid, mlp(b, "mlp", "mlp", z));
  }

  Value beforeHead(BlockBuilder &b, Value x) const override {
    return b.rmsNorm("n", "norm", x, eps);
  }

private:
  double eps;
  RotaryAttention attention;
  GatedMlp mlp;
};

} // namespace

std::unique_ptr<Family> hf::makeLlama(ConfigReader &config) {
  return std::make_unique<Llama>(config);
}
