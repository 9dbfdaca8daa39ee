// OLMo, the first: Llama's block, with norms that have no parameters (and q, k, v clipped at
// ±clip_qkv):
//   v = x + W_o attention(R W_q n, R W_k n, W_v n)     n = (x − mean x) / √(var x + 1e-5)
//   y = v + W_d (silu(W_g z) ⊙ W_u z)                  z likewise of v
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

std::unique_ptr<Family> hf::makeOlmo(ConfigReader &config) {
  Decoder::Defaults absent{32, 4096, 11008, 50304, 32, std::nullopt, std::nullopt};
  auto family = std::make_unique<Decoder>("olmo", config, absent);
  family->norm = {xf::NormKind::layer, 1e-5, /*offset=*/0, /*scale=*/false, /*bias=*/false};
  family->readAttentionBias(config);
  if (config.has("clip_qkv"))
    family->attention.clip = config.number("clip_qkv", 1, 1e-6, 1e9);
  return family;
}
