// Gemma 3, the text model. With N(w, x) = (1 + w) ⊙ rms x:
//   v = x + N(w₂, W_o attention(R N(w_q, W_q n), R N(w_k, W_k n), W_v n))   n = N(w₁, x)
//   y = v + N(w₄, W_d (gelu(W_g z) ⊙ W_u z))                                z = N(w₃, v)
// Sliding layers see a window and rotate by other frequencies R than full ones.
#include "Parts.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Gemma3 : public Family {
public:
  explicit Gemma3(ConfigReader &config) {
    layers = config.integer("num_hidden_layers", 26, 1, maxLayers);
    hidden = config.integer("hidden_size", 2304, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 262208, 1, maxVocabulary);
    tied = config.flag("tie_word_embeddings", true);
    norm = Norm::rms(config.number("rms_norm_eps", 1e-6, 0, 1), /*offset=*/1);
    attention.heads = readHeads(config, hidden, 8, 4, 256);
    attention.headNorm = HeadNorm{norm};
    attention.ropeByLayer = true;
    attention.qkvBias = attention.outBias = config.flag("attention_bias", false);
    attention.scale = 1 / std::sqrt(config.number("query_pre_attn_scalar", 256, 1e-6, 1e12));
    mlp.inner = config.integer("intermediate_size", 9216, 1, maxWidth);
    mlp.act = readActivation(config, "hidden_activation", "gelu_pytorch_tanh");
    if (config.has("final_logit_softcapping"))
      cap = config.number("final_logit_softcapping", 1, 1e-6, 1e9);
    config.require("use_bidirectional_attention", false, false, "only causal attention is");
    // Gemma 3's classes keep these, and their forward pass reads none of them.
    config.unread({{"attn_logit_softcapping"}, {"hidden_act"}, {"_sliding_window_pattern"}});
    int64_t pattern = config.integer("sliding_window_pattern", 6, 1, maxLayers);
    windows = readSlidingLayers(config, layers, pattern, 4096);
    readRopes(config);
  }

  StringRef name() const override { return "gemma3"; }
  SmallVector<StringRef> stems() const override { return {"model.", ""}; }

  Value block(BlockBuilder &b, Value x, int64_t layer) const override {
    Value window = b.layerIndex("window", windows.windowOf(layer));
    Attention own = attention;
    own.rope = windows.sliding[layer] ? localRope : globalRope;
    Value n = b.norm("n", "input_layernorm", norm, x);
    Value a = own(b, "attn", "self_attn", n, window);
    Value mid = b.add("mid", x, b.norm("attn_n", "post_attention_layernorm", norm, a));
    Value z = b.norm("z", "pre_feedforward_layernorm", norm, mid);
    Value m = mlp(b, "mlp", "mlp", z);
    return b.add("y", mid, b.norm("mlp_n", "post_feedforward_layernorm", norm, m));
  }

  // √hidden is rounded to float32, as it is where the weights are float32.
  Value afterEmbedding(BlockBuilder &b, Value x) const override {
    return b.times("x_scaled", x, std::sqrt(double(hidden)));
  }
  Value beforeHead(BlockBuilder &b, Value x) const override { return b.norm("n", "norm", norm, x); }
  Value afterHead(BlockBuilder &b, Value logits) const override {
    return cap ? b.softcap("capped", logits, *cap) : logits;
  }

private:
  void readRopes(ConfigReader &config) {
    checkOneRopeForm(config);
    checkWholeHeads(config);
    double global = config.number("rope_theta", 1e6, 1e-3, 1e30);
    double local = config.number("rope_local_base_freq", 1e4, 1e-3, 1e30);
    ConfigReader *nested = config.object("rope_parameters");
    RopeForm form;
    form.mayBeLong = false;
    globalRope = readRopeParameters(
        config, nested ? nested->object("full_attention") : config.object("rope_scaling"), global,
        form);
    localRope = readRopeParameters(config, nested ? nested->object("sliding_attention") : nullptr,
                                   local, form);
    for (StringRef key : {"full_attention", "sliding_attention"})
      if (nested && nested->object(key))
        checkWholeHeads(*nested->object(key));
    if (!nested && config.has("rope_scaling"))
      if (ConfigReader *scaling = config.object("rope_scaling"))
        checkWholeHeads(*scaling);
  }

  Norm norm;
  Attention attention;
  GatedMlp mlp;
  std::optional<double> cap;
  SlidingLayers windows;
  Rope globalRope, localRope;
};

} // namespace

std::unique_ptr<Family> hf::makeGemma3(ConfigReader &config) {
  return std::make_unique<Gemma3>(config);
}
