// Llama 1 to 3:
//   v = x + W_o attention(R W_q n, R W_k n, W_v n)     n = w₁ ⊙ rms x
//   y = v + W_d (silu(W_g z) ⊙ W_u z)                  z = w₂ ⊙ rms v
// with R the rotation by position, and biases where the config has them.
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

std::unique_ptr<Family> hf::makeLlama(ConfigReader &config) {
  Decoder::Defaults absent{32, 4096, 11008, 32000, 32, std::nullopt, std::nullopt};
  auto family = std::make_unique<Decoder>("llama", config, absent);
  family->norm = Norm::rms(config.number("rms_norm_eps", 1e-6, 0, 1));
  family->readAttentionBias(config);
  family->readMlpBias(config);
  if (config.integer("pretraining_tp", 1, 0, 1 << 20) > 1)
    config.problem("pretraining_tp", "is not supported; expected 1");
  config.require("rope_interleaved", false, false, "the two halves of a head are rotated");
  config.unread({{"is_llama_config"}});
  return family;
}
