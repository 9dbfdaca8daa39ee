// Mamba: a mixer with a state and no MLP.
//   y = x + M n                                    n = w ⊙ rms x, M as in Mixers.h
#include "Mixers.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Mamba : public Family {
public:
  explicit Mamba(ConfigReader &config) {
    layers = config.integer("num_hidden_layers", 32, 1, maxLayers);
    hidden = config.integer("hidden_size", 768, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 50280, 1, maxVocabulary);
    tied = config.flag("tie_word_embeddings", true);
    norm = Norm::rms(config.number("layer_norm_epsilon", 1e-5, 0, 1));
    int64_t expand = config.integer("expand", 2, 1, 1 << 10);
    mixer.inner = config.integer("intermediate_size", expand * hidden, 1, 4 * maxWidth);
    mixer.state = config.integer("state_size", 16, 1, maxWidth);
    mixer.rank = readTimeStepRank(config, "time_step_rank", hidden);
    mixer.bias = config.flag("use_bias", false);
    mixer.conv = {readKernel(config, "conv_kernel"), readActivation(config, "hidden_act", "silu"),
                  config.flag("use_conv_bias", true)};
    ignoreMixerKeys(config);
    // Of storage, and what the first checkpoints keep of the package they come from.
    config.unread({{"d_inner"}, {"d_model"}, {"n_layer"}, {"ssm_cfg"}, {"rms_norm"}});
    config.unread({{"fused_add_norm"}, {"pad_vocab_size_multiple"}});
  }

  StringRef name() const override { return "mamba"; }
  SmallVector<StringRef> stems() const override { return {"backbone.", ""}; }
  StringRef embeddingName() const override { return "embeddings.weight"; }

  Value block(BlockBuilder &b, Value x, int64_t) const override {
    Value n = b.norm("n", "norm", norm, x);
    return b.add("y", x, mixer(b, "mixed", "mixer", n));
  }

  Value beforeHead(BlockBuilder &b, Value x) const override {
    return b.norm("n", "norm_f", norm, x);
  }

private:
  Norm norm;
  SelectiveScan mixer;
};

} // namespace

std::unique_ptr<Family> hf::makeMamba(ConfigReader &config) {
  return std::make_unique<Mamba>(config);
}
