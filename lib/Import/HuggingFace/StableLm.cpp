// StableLM: Llama's block with layer norms, or with both branches in parallel on one of them:
//   v = x + W_o attention(R q, R k, v)               n = LN₁ x,  q = W_q n + b_q, …
//   y = v + W_d (silu(W_g z) ⊙ W_u z)                z = LN₂ v, or z = n and y = x + … + …
// R rotates a part of each head; with qk_layernorm each head of q and k is normalised before, with
// weights of its own.
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class StableLm : public Decoder {
public:
  explicit StableLm(ConfigReader &config)
      : Decoder(
            "stablelm", config,
            {32, 2560, 6912, 50304, 32, 32, std::nullopt, /*tied=*/false, RopeForm::part(0.25)}) {
    norm = Norm::layer(config.number("layer_norm_eps", 1e-5, 0, 1));
    attention.qkvBias = config.flag("use_qkv_bias", false);
    if (config.flag("qk_layernorm", false))
      attention.headNorm =
          HeadNorm{Norm::layer(norm.eps, /*bias=*/false), "_layernorm.norms", HeadNorm::ownModule};
    parallel = config.flag("use_parallel_residual", false);
    if (attention.heads.dim * attention.heads.queries != hidden)
      config.problem("head_dim", "is not supported; it is hidden_size / num_attention_heads");
  }

  Value block(BlockBuilder &b, Value x, int64_t layer) const override {
    if (!parallel)
      return Decoder::block(b, x, layer);
    Value u = b.norm("u", "input_layernorm", norm, x);
    return b.add("y", b.add("mid", x, attend(b, u, layer)), feed(b, u, layer));
  }

private:
  bool parallel;
};

} // namespace

std::unique_ptr<Family> hf::makeStableLm(ConfigReader &config) {
  return std::make_unique<StableLm>(config);
}
