// GPT-J: attention and MLP in parallel on one norm; the head has a bias.
//   y = x + (W_o attention(R q, R k, v) + W₂ gelu(W₁ u + b₁) + b₂)      u = LN x
// R rotates the first rotary_dim entries of each head, neighbours together.
#include "Family.h"
#include <cmath>

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
    inner = config.integer("n_inner", 4 * hidden, 1, 4 * maxWidth);
    heads = config.integer("n_head", 16, 1, maxHeads);
    eps = config.number("layer_norm_epsilon", 1e-5, 0, 1);
    act = readActivation(config, "activation_function", "gelu_new");
    tied = config.flag("tie_word_embeddings", false);
    headBias = true;
    dim = std::max<int64_t>(hidden / heads, 1);
    if (hidden % heads)
      config.problem("n_embd", "is not a multiple of n_head = " + Twine(heads));
    rotated = config.integer("rotary_dim", 64, 1, maxWidth);
    if (config.isNull("rotary_dim") || rotated % 2 || rotated > dim)
      config.problem("rotary_dim", "is not supported; expected an even number of at most n_embd / "
                                   "n_head = " +
                                       Twine(dim));
    config.require("rotary", true, true, "positions are rotations");
    // What its class keeps and its forward pass does not read.
    for (StringRef key :
         {"n_positions", "n_ctx", "scale_attn_weights", "summary_type", "summary_use_proj",
          "summary_activation", "summary_proj_to_labels", "summary_first_dropout"})
      config.ignore(key);
  }

  StringRef name() const override { return "gptj"; }
  SmallVector<StringRef> stems() const override { return {"transformer.", ""}; }
  StringRef layerStem() const override { return "h."; }
  StringRef embeddingName() const override { return "wte.weight"; }

  Value block(BlockBuilder &b, Value x, int64_t) const override {
    Value r = b.rope("rotary", rotated, xf::RopeAttr::get(b.context(), 10000, rotated));
    Value u = b.layerNorm("u", "ln_1", x, eps);
    Value q = b.rotary("q_rot", project(b, "q", u), r, xf::RotaryStyle::interleaved);
    Value k = b.rotary("k_rot", project(b, "k", u), r, xf::RotaryStyle::interleaved);
    Value v = project(b, "v", u);
    Value o = b.flat("o", b.attention("o_heads", q, k, v, 1 / std::sqrt(double(dim))));
    Value a = b.linear("attn", "attn.out_proj", hidden, o);

    Value h = b.activation("h", act, b.linear("g", "mlp.fc_in", inner, u, /*bias=*/true));
    Value m = b.linear("mlp", "mlp.fc_out", hidden, h, /*bias=*/true);
    return b.add("y", b.add("branches", a, m), x);
  }

  Value beforeHead(BlockBuilder &b, Value x) const override {
    return b.layerNorm("n", "ln_f", x, eps);
  }

private:
  Value project(BlockBuilder &b, StringRef as, Value u) const {
    Value row = b.linear((as + "_row").str(), ("attn." + as + "_proj").str(), hidden, u);
    return b.heads(as, row, dim);
  }

  int64_t heads, dim, inner, rotated;
  double eps;
  xf::ActivationKind act;
};

} // namespace

std::unique_ptr<Family> hf::makeGptJ(ConfigReader &config) {
  return std::make_unique<GptJ>(config);
}
