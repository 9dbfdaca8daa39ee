// Nemotron 3 and 4, Minitron. With N(w, b, x) = (1 + w) ⊙ (x − mean x) / √(var x + ε) + b:
//   v = x + W_o attention(R W_q n, R W_k n, W_v n)     n = N(w₁, b₁, x)
//   y = v + W_d relu(W_u z)²                           z = N(w₂, b₂, v)
// R rotates a part of each head.
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

std::unique_ptr<Family> hf::makeNemotron(ConfigReader &config) {
  Decoder::Defaults absent{32, 6144, 24576, 256000, 48, std::nullopt, std::nullopt};
  absent.rope = RopeForm::part(0.5);
  absent.act = "relu2";
  auto family = std::make_unique<Decoder>("nemotron", config, absent);
  family->norm = Norm::layer(config.number("norm_eps", 1e-5, 0, 1));
  family->norm.offset = 1;
  family->readAttentionBias(config);
  family->setPlainMlp(config.flag("mlp_bias", false), "up_proj", "down_proj");
  return family;
}
