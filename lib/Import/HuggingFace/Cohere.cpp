// Cohere's Command-R: attention and gated MLP in parallel on one norm without a bias.
//   y = x + W_o attention(R q, R k, v) + W_d (silu(W_g u) ⊙ W_u u)      u = w ⊙ layer x
//   logits = logit_scale · E N(x)
// R rotates neighbours together; with use_qk_norm each head of q and k is normalised
// and scaled by weights of its own before.
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Cohere : public Decoder {
public:
  explicit Cohere(ConfigReader &config)
      : Decoder("cohere", config,
                {40, 8192, 22528, 256000, 64, std::nullopt, std::nullopt, /*tied=*/true}) {
    norm = Norm::layer(config.number("layer_norm_eps", 1e-5, 0, 1), /*bias=*/false);
    attention.style = xf::RotaryStyle::interleaved;
    if (config.flag("use_qk_norm", false))
      attention.headNorm = HeadNorm{norm, "_norm", HeadNorm::ownRow};
    readAttentionBias(config);
    logitFactor = config.number("logit_scale", 0.0625, -1e6, 1e6);
    if (config.isNull("logit_scale") || logitFactor == 0)
      config.problem("logit_scale", "is not supported; expected a number other than 0");
    requireBase(config);
  }

  Value block(BlockBuilder &b, Value x, int64_t layer) const override {
    Value u = b.norm("u", "input_layernorm", norm, x);
    return b.add("y", b.add("mid", x, attend(b, u, layer)), feed(b, u, layer));
  }

private:
  static void requireBase(ConfigReader &config) {
    ConfigReader *parameters =
        config.has("rope_parameters") ? config.object("rope_parameters") : nullptr;
    if (!config.has("rope_theta") && !(parameters && parameters->has("rope_theta")))
      config.problem("has no key 'rope_theta', whose default for cohere is 10000 in transformers 4 "
                     "and 500000 in transformers 5; state the one that is meant");
  }
};

} // namespace

std::unique_ptr<Family> hf::makeCohere(ConfigReader &config) {
  return std::make_unique<Cohere>(config);
}
