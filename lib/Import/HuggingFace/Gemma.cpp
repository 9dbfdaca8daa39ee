// Gemma, the first. With N(w, x) = (1 + w) ⊙ rms x and √hidden times the embedding:
//   v = x + W_o attention(R W_q n, R W_k n, W_v n)     n = N(w₁, x)
//   y = v + W_d (gelu(W_g z) ⊙ W_u z)                  z = N(w₂, v)
#include "Decoder.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

std::unique_ptr<Family> hf::makeGemma(ConfigReader &config) {
  Decoder::Defaults absent{28, 3072, 24576, 256000, 16, 16, 256, /*tied=*/true};
  absent.act = "gelu_pytorch_tanh";
  auto family = std::make_unique<Decoder>("gemma", config, absent);
  family->norm = Norm::rms(config.number("rms_norm_eps", 1e-6, 0, 1), /*offset=*/1);
  // √hidden is rounded to float32, as it is where the weights are float32.
  family->embeddingFactor = std::sqrt(double(family->hidden));
  family->readAttentionBias(config);
  // The first checkpoints say gelu and mean its approximation; so does transformers.
  if (config.text("hidden_act", "") == "gelu")
    std::get<GatedMlp>(family->mlp).act = xf::ActivationKind::gelu_tanh;
  // A later name for the same key, which transformers 4 read and transformers 5 does not.
  if (config.text("hidden_activation", "gelu_pytorch_tanh") != "gelu_pytorch_tanh")
    config.problem("hidden_activation", "is not supported; expected gelu_pytorch_tanh");
  config.require("use_bidirectional_attention", false, false, "only causal attention is");
  return family;
}
