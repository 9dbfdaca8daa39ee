// Gemma 2. With N(w, x) = (1 + w) ⊙ rms x and soft caps c on attention's scores and the logits:
//   v = x + N(w₂, W_o attention_c(R W_q n, R W_k n, W_v n))      n = N(w₁, x)
//   y = v + N(w₄, W_d (gelu(W_g z) ⊙ W_u z))                     z = N(w₃, v)
// Every other layer, from the first on, sees a window only.
#include "Family.h"
#include "Rope.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Gemma2 : public Family {
public:
  explicit Gemma2(ConfigReader &config) {
    layers = config.integer("num_hidden_layers", 26, 1, maxLayers);
    hidden = config.integer("hidden_size", 2304, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 256000, 1, maxVocabulary);
    inner = config.integer("intermediate_size", 9216, 1, maxWidth);
    heads = readHeads(config, hidden, 8, 4, 256);
    eps = config.number("rms_norm_eps", 1e-6, 0, 1);
    act = readActivation(config, "hidden_activation", "gelu_pytorch_tanh");
    attentionBias = config.flag("attention_bias", false);
    tied = config.flag("tie_word_embeddings", true);
    scale = 1 / std::sqrt(config.number("query_pre_attn_scalar", 256, 1e-6, 1e12));
    scoreCap = config.optionalNumber("attn_logit_softcapping", 50, 1e-6, 1e9);
    logitCap = config.optionalNumber("final_logit_softcapping", 30, 1e-6, 1e9);
    windows = readSlidingLayers(config, layers, /*pattern=*/2, 4096);
    rope = readRope(config);
    config.require("use_bidirectional_attention", false, false, "only causal attention is");
    // Gemma 2's configs keep these, and its forward pass reads none of them.
    for (StringRef key : {"hidden_act", "sliding_window_size"})
      config.ignore(key);
  }

  StringRef name() const override { return "gemma2"; }
  SmallVector<StringRef> stems() const override { return {"model.", ""}; }

  Value block(BlockBuilder &b, Value x, int64_t layer) const override {
    Value window = b.layerIndex("window", windows.windowOf(layer));
    Value r = b.rope("rotary", heads.dim, rope.attr(b.context(), heads.dim));
    Value n = norm(b, "n", "input_layernorm", x);
    Value q = b.rotary("q_rot", project(b, "q", heads.queries, n), r);
    Value k = b.rotary("k_rot", project(b, "k", heads.keys, n), r);
    Value v = project(b, "v", heads.keys, n);
    Value o = b.flat("o", b.attention("o_heads", q, k, v, scale, window, scoreCap));
    Value a = b.linear("attn", "self_attn.o_proj", hidden, o, attentionBias);
    Value mid = b.add("mid", x, norm(b, "attn_n", "post_attention_layernorm", a));

    Value z = norm(b, "z", "pre_feedforward_layernorm", mid);
    Value g = b.linear("g", "mlp.gate_proj", inner, z);
    Value u = b.linear("u", "mlp.up_proj", inner, z);
    Value h = b.mul("h", b.activation("g_act", act, g), u);
    Value m = b.linear("mlp", "mlp.down_proj", hidden, h);
    return b.add("y", mid, norm(b, "mlp_n", "post_feedforward_layernorm", m));
  }

  // √hidden is rounded to float32, as it is where the weights are float32.
  Value afterEmbedding(BlockBuilder &b, Value x) const override {
    return b.times("x_scaled", x, std::sqrt(double(hidden)));
  }
  Value beforeHead(BlockBuilder &b, Value x) const override { return norm(b, "n", "norm", x); }
  Value afterHead(BlockBuilder &b, Value logits) const override {
    return logitCap ? b.softcap("capped", logits, *logitCap) : logits;
  }

private:
  Value norm(BlockBuilder &b, StringRef as, StringRef module, Value x) const {
    return b.rmsNorm(as, module, x, eps, /*offset=*/1);
  }
  Value project(BlockBuilder &b, StringRef as, int64_t count, Value n) const {
    Value row = b.linear((as + "_row").str(), ("self_attn." + as + "_proj").str(),
                         count * heads.dim, n, attentionBias);
    return b.heads(as, row, heads.dim);
  }

  HeadShape heads;
  int64_t inner;
  double eps, scale;
  std::optional<double> scoreCap, logitCap;
  xf::ActivationKind act;
  bool attentionBias;
  SlidingLayers windows;
  Rope rope;
};

} // namespace

std::unique_ptr<Family> hf::makeGemma2(ConfigReader &config) {
  return std::make_unique<Gemma2>(config);
}
