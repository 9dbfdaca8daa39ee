// Granite: Llama's block with factors a (of the scores), r (of both branches), e (of the
// embedding) and 1/l (of the logits):
//   v = x + r W_o attention_a(R W_q n, R W_k n, W_v n)     n = w₁ ⊙ rms x
//   y = v + r W_d (silu(W_g z) ⊙ W_u z)                    z = w₂ ⊙ rms v
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

std::unique_ptr<Family> hf::makeGranite(ConfigReader &config) {
  Decoder::Defaults absent{32, 4096, 11008, 32000, 32, std::nullopt, std::nullopt};
  auto family = std::make_unique<Decoder>("granite", config, absent);
  family->norm = Norm::rms(config.number("rms_norm_eps", 1e-6, 0, 1));
  family->readAttentionBias(config);
  family->readMlpBias(config);
  family->attention.scale = config.number("attention_multiplier", 1, -1e6, 1e6);
  family->residualFactor = config.number("residual_multiplier", 1, -1e6, 1e6);
  family->embeddingFactor = config.number("embedding_multiplier", 1, -1e6, 1e6);
  double divisor = config.number("logits_scaling", 1, -1e6, 1e6);
  if (divisor == 0)
    config.problem("logits_scaling", "divides the logits; expected a number other than 0");
  family->logitFactor = divisor == 0 ? 1 : 1 / divisor;
  return family;
}
