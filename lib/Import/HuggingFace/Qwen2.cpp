// Qwen 2 and 2.5: Llama's block with biases on q, k and v.
//   v = x + W_o attention(R q, R k, v)       q = W_q n + b_q, …     n = w₁ ⊙ rms x
//   y = v + W_d (silu(W_g z) ⊙ W_u z)                               z = w₂ ⊙ rms v
// Where use_sliding_window, the upper layers see a window.
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

std::unique_ptr<Family> hf::makeQwen2(ConfigReader &config) {
  Decoder::Defaults absent{32, 4096, 22016, 151936, 32, 32, std::nullopt};
  auto family = std::make_unique<Decoder>("qwen2", config, absent);
  family->norm = Norm::rms(config.number("rms_norm_eps", 1e-6, 0, 1));
  family->attention.qkvBias = true;
  int64_t first = config.integer("max_window_layers", 28, 0, maxLayers);
  family->windows =
      readSwitchedWindows(config, family->layers, [&](int64_t layer) { return layer >= first; });
  return family;
}
