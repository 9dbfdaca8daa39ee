// Qwen 3: Llama's block with a norm N of each head of q and k, one w for all of them.
//   v = x + W_o attention(R N(W_q n), R N(W_k n), W_v n)     n = w₁ ⊙ rms x
//   y = v + W_d (silu(W_g z) ⊙ W_u z)                        z = w₂ ⊙ rms v
// Where use_sliding_window, the upper layers see a window.
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

std::unique_ptr<Family> hf::makeQwen3(ConfigReader &config) {
  Decoder::Defaults absent{32, 4096, 22016, 151936, 32, 32, 128};
  auto family = std::make_unique<Decoder>("qwen3", config, absent);
  family->norm = Norm::rms(config.number("rms_norm_eps", 1e-6, 0, 1));
  family->readAttentionBias(config);
  family->attention.headNorm = HeadNorm{family->norm};
  config.unread({{"use_qk_norm", "[true]", "queries and keys without norms"}});
  int64_t first = config.integer("max_window_layers", 28, 0, maxLayers);
  family->windows =
      readSwitchedWindows(config, family->layers, [&](int64_t layer) { return layer >= first; });
  return family;
}
