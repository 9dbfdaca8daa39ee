// Cohere's Command-R: attention and gated MLP in parallel on one norm without a bias.
//   y = x + W_o attention(R q, R k, v) + W_d (silu(W_g u) ⊙ W_u u)      u = w ⊙ layer x
//   logits = logit_scale · E N(x)
// R rotates neighbours together; with use_qk_norm each head of q and k is normalised
// and scaled by weights of its own before.
#include "Family.h"
#include "Rope.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Cohere : public Family {
public:
  explicit Cohere(ConfigReader &config) {
    layers = config.integer("num_hidden_layers", 40, 1, maxLayers);
    hidden = config.integer("hidden_size", 8192, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 256000, 1, maxVocabulary);
    inner = config.integer("intermediate_size", 22528, 1, maxWidth);
    heads = readHeads(config, hidden, 64, std::nullopt, std::nullopt);
    eps = config.number("layer_norm_eps", 1e-5, 0, 1);
    act = readActivation(config, "hidden_act", "silu");
    attentionBias = config.flag("attention_bias", false);
    headNorms = config.flag("use_qk_norm", false);
    logitScale = config.number("logit_scale", 0.0625, -1e6, 1e6);
    if (config.isNull("logit_scale") || logitScale == 0)
      config.problem("logit_scale", "is not supported; expected a number other than 0");
    tied = config.flag("tie_word_embeddings", true);
    rope = readRope(config);
    ConfigReader *parameters =
        config.has("rope_parameters") ? config.object("rope_parameters") : nullptr;
    if (!config.has("rope_theta") && !(parameters && parameters->has("rope_theta")))
      config.problem("has no key 'rope_theta', whose default for cohere is 10000 in transformers 4 "
                     "and 500000 in transformers 5; state the one that is meant");
    config.ignore("model_max_length");
  }

  StringRef name() const override { return "cohere"; }
  SmallVector<StringRef> stems() const override { return {"model.", ""}; }

  Value block(BlockBuilder &b, Value x, int64_t) const override {
    Value r = b.rope("rotary", heads.dim, rope.attr(b.context(), heads.dim));
    Value u = b.layerNormWithoutBias("u", "input_layernorm", {hidden}, x, eps);
    Value q = headNorm(b, "q", heads.queries, project(b, "q", heads.queries, u));
    Value k = headNorm(b, "k", heads.keys, project(b, "k", heads.keys, u));
    Value v = project(b, "v", heads.keys, u);
    Value qr = b.rotary("q_rot", q, r, xf::RotaryStyle::interleaved);
    Value kr = b.rotary("k_rot", k, r, xf::RotaryStyle::interleaved);
    Value o = b.flat("o", b.attention("o_heads", qr, kr, v, 1 / std::sqrt(double(heads.dim))));
    Value a = b.linear("attn", "self_attn.o_proj", hidden, o, attentionBias);

    Value g = b.linear("g", "mlp.gate_proj", inner, u);
    Value h = b.mul("h", b.activation("g_act", act, g), b.linear("up", "mlp.up_proj", inner, u));
    Value m = b.linear("mlp", "mlp.down_proj", hidden, h);
    return b.add("y", b.add("mid", x, a), m);
  }

  Value beforeHead(BlockBuilder &b, Value x) const override {
    return b.layerNormWithoutBias("n", "norm", {hidden}, x, eps);
  }
  Value afterHead(BlockBuilder &b, Value logits) const override {
    return b.times("logits_scaled", logits, logitScale);
  }

private:
  Value project(BlockBuilder &b, StringRef as, int64_t count, Value u) const {
    Value row = b.linear((as + "_row").str(), ("self_attn." + as + "_proj").str(),
                         count * heads.dim, u, attentionBias);
    return b.heads(as, row, heads.dim);
  }
  Value headNorm(BlockBuilder &b, StringRef as, int64_t count, Value x) const {
    if (!headNorms)
      return x;
    return b.layerNormWithoutBias((as + "_n").str(), ("self_attn." + as + "_norm").str(),
                                  {count, heads.dim}, x, eps);
  }

  HeadShape heads;
  int64_t inner;
  double eps, logitScale;
  xf::ActivationKind act;
  bool attentionBias, headNorms;
  Rope rope;
};

} // namespace

std::unique_ptr<Family> hf::makeCohere(ConfigReader &config) {
  return std::make_unique<Cohere>(config);
}
