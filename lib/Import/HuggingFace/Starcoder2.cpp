// StarCoder 2: layer norms with biases and an MLP without a gate; all layers may see a window.
//   v = x + W_o attention(R q, R k, v) + b_o           q = W_q n + b_q, …     n = LN₁ x
//   y = v + W₂ gelu(W₁ z + b₁) + b₂                                           z = LN₂ v
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

std::unique_ptr<Family> hf::makeStarcoder2(ConfigReader &config) {
  Decoder::Defaults absent{30, 3072, 12288, 49152, 24, 2, std::nullopt, /*tied=*/true};
  absent.act = "gelu_pytorch_tanh";
  auto family = std::make_unique<Decoder>("starcoder2", config, absent);
  family->norm = Norm::layer(config.number("norm_epsilon", 1e-5, 0, 1));
  bool bias = config.flag("use_bias", true);
  family->attention.qkvBias = family->attention.outBias = bias;
  family->setPlainMlp(bias, "c_fc", "c_proj");
  family->windows = readOneWindow(config, family->layers, std::nullopt);
  // What the first checkpoints keep of the code that trained them.
  config.unread({{"activation_function"},
                 {"layer_norm_epsilon"},
                 {"mlp_type", R"(["default"])", "another MLP"},
                 {"norm_type", R"(["layer_norm"])", "norms of another kind"}});
  return family;
}
