// GPT-J: attention and MLP in parallel on one norm; the head has a bias.
//   y = x + (W_o attention(R q, R k, v) + W₂ gelu(W₁ u + b₁) + b₂)      u = LN x
// R rotates the first rotary_dim entries of each head, neighbours together.
#include "Parts.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class GptJ : public Family {
public:
  explicit GptJ(ConfigReader &config) {
    layers = config.integer("n_layer", 28, 1, maxLayers);
    hidden = config.integer("n_embd", 4096, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 50400, 1, maxVocabulary);
    tied = config.flag("tie_word_embeddings", false);
    headBias = true;
    norm = Norm::layer(config.number("layer_norm_epsilon", 1e-5, 0, 1));
    attention.heads = splitHeads(config, "n_head", 16, "n_embd", hidden);
    attention.style = xf::RotaryStyle::interleaved;
    attention.out = "out_proj";
    readRotation(config);
    mlp = {config.integer("n_inner", 4 * hidden, 1, 4 * maxWidth),
           readActivation(config, "activation_function", "gelu_new"), /*bias=*/true, "fc_in",
           "fc_out"};
    // What its class keeps and its forward pass does not read.
    config.unread({{"n_positions"}, {"n_ctx"}, {"scale_attn_weights"}});
    otherTensors = {"*.attn.bias", "*.attn.masked_bias"}; // masks, which were stored once
  }

  StringRef name() const override { return "gptj"; }
  SmallVector<StringRef> stems() const override { return {"transformer.", ""}; }
  StringRef layerStem() const override { return "h."; }
  StringRef embeddingName() const override { return "wte.weight"; }

  Value block(BlockBuilder &b, Value x, int64_t) const override {
    Value u = b.norm("u", "ln_1", norm, x);
    Value a = attention(b, "attn", "attn", u);
    return b.add("y", b.add("branches", a, mlp(b, "mlp", "mlp", u)), x);
  }

  Value beforeHead(BlockBuilder &b, Value x) const override { return b.norm("n", "ln_f", norm, x); }

private:
  void readRotation(ConfigReader &config) {
    int64_t dim = attention.heads.dim, rotated = config.integer("rotary_dim", 64, 1, maxWidth);
    if (config.isNull("rotary_dim") || rotated % 2 || rotated > dim)
      config.problem("rotary_dim", "is not supported; expected an even number of at most n_embd / "
                                   "n_head = " +
                                       Twine(dim));
    config.require("rotary", true, true, "positions are rotations");
    attention.rope.emplace();
    attention.rope->entries = rotated;
  }

  Norm norm;
  Attention attention;
  PlainMlp mlp;
};

} // namespace

std::unique_ptr<Family> hf::makeGptJ(ConfigReader &config) {
  return std::make_unique<GptJ>(config);
}
