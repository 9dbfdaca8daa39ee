// Mistral: Llama's block without biases, and a window that all layers see:
//   v = x + W_o attention(R W_q n, R W_k n, W_v n)     n = w₁ ⊙ rms x
//   y = v + W_d (silu(W_g z) ⊙ W_u z)                  z = w₂ ⊙ rms v
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

std::unique_ptr<Family> hf::makeMistral(ConfigReader &config) {
  Decoder::Defaults absent{32, 4096, 14336, 32000, 32, 8, std::nullopt};
  auto family = std::make_unique<Decoder>("mistral", config, absent);
  family->norm = Norm::rms(config.number("rms_norm_eps", 1e-6, 0, 1));
  family->windows = readOneWindow(config, family->layers, 4096);
  return family;
}
