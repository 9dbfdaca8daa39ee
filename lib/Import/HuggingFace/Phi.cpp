// Phi 1, 1.5 and 2: attention and MLP in parallel on one norm; biases everywhere, the head's too.
//   y = (W_o attention(R q, R k, v) + b_o + W₂ gelu(W₁ u + b₁) + b₂) + x        u = LN x
// R rotates a part of each head; with qk_layernorm each head of q and k is normalised before.
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Phi : public Decoder {
public:
  explicit Phi(ConfigReader &config) : Decoder("phi", config, defaults()) {
    norm = Norm::layer(config.number("layer_norm_eps", 1e-5, 0, 1));
    finalNorm = "final_layernorm";
    headBias = true;
    attention.qkvBias = attention.outBias = true;
    attention.out = "dense";
    if (config.flag("qk_layernorm", false))
      attention.headNorm = HeadNorm{norm, "_layernorm"};
    setPlainMlp(/*bias=*/true, "fc1", "fc2");
  }

  Value block(BlockBuilder &b, Value x, int64_t layer) const override {
    Value u = b.norm("u", "input_layernorm", norm, x);
    Value a = attend(b, u, layer);
    return b.add("y", b.add("branches", a, feed(b, u, layer)), x);
  }

private:
  static Defaults defaults() {
    Defaults absent{24, 2048, 8192, 51200, 32, std::nullopt, std::nullopt};
    absent.rope = RopeForm::part(0.5);
    absent.act = "gelu_new";
    return absent;
  }
};

} // namespace

std::unique_ptr<Family> hf::makePhi(ConfigReader &config) { return std::make_unique<Phi>(config); }
