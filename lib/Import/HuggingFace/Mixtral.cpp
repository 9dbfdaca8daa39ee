// Mixtral: Llama's attention, and a mixture of gated MLPs.
//   v = x + W_o attention(R W_q n, R W_k n, W_v n)              n = w₁ ⊙ rms x
//   y = v + Σ_e p_e W₂ᵉ (silu(W₁ᵉ z) ⊙ W₃ᵉ z)                  z = w₂ ⊙ rms v
// over the experts e with the largest entries of p = softmax(R z), which are made to sum to one.
// All layers may see a window.
#include "Parts.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Mixtral : public Family {
public:
  explicit Mixtral(ConfigReader &config) {
    layers = config.integer("num_hidden_layers", 32, 1, maxLayers);
    hidden = config.integer("hidden_size", 4096, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 32000, 1, maxVocabulary);
    eps = config.number("rms_norm_eps", 1e-5, 0, 1);
    tied = config.flag("tie_word_embeddings", false);
    attention.heads = readHeads(config, hidden, 32, 8, std::nullopt);
    RopeForm form;
    form.base = 1e6;
    attention.rope = readRope(config, form);
    windows = readOneWindow(config, layers, std::nullopt);
    experts.inner = config.integer("intermediate_size", 14336, 1, maxWidth);
    experts.act = readActivation(config, "hidden_act", "silu");
    experts.sumToOne = true;
    experts.gate = "w1", experts.up = "w3", experts.down = "w2";
    readExperts(config, "num_local_experts", 8, 2, experts);
    // Of training.
    for (StringRef key : {"output_router_logits", "router_aux_loss_coef", "router_jitter_noise"})
      config.ignore(key);
  }

  StringRef name() const override { return "mixtral"; }
  SmallVector<StringRef> stems() const override { return {"model.", ""}; }

  Value block(BlockBuilder &b, Value x, int64_t layer) const override {
    Value window = windows.of(b, layer);
    Value n = b.rmsNorm("n", "input_layernorm", x, eps);
    Value mid = b.add("mid", x, attention(b, "attn", "self_attn", n, window));
    Value z = b.rmsNorm("z", "post_attention_layernorm", mid, eps);
    // The path in transformers 5, which can store it so too.
    StringRef path = b.has("mlp.gate.weight") ? "mlp" : "block_sparse_moe";
    return b.add("y", mid, experts(b, "mlp", path, z));
  }

  Value beforeHead(BlockBuilder &b, Value x) const override {
    return b.rmsNorm("n", "norm", x, eps);
  }

private:
  double eps;
  Attention attention;
  SlidingLayers windows;
  GatedExperts experts;
};

} // namespace

std::unique_ptr<Family> hf::makeMixtral(ConfigReader &config) {
  return std::make_unique<Mixtral>(config);
}
