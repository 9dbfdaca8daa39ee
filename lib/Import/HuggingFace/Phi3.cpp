// Phi 3 and 4: Llama's block with the rows of q, k, v and those of gate, up in one matrix each.
//   v = x + W_o attention(R q, R k, v)      (q, k, v) = W_qkv n      n = w₁ ⊙ rms x
//   y = v + W_d (silu(g) ⊙ u)               (g, u) = W_gu z          z = w₂ ⊙ rms v
// R may rotate a part of each head only; all layers may see a window.
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Phi3 : public Decoder {
public:
  explicit Phi3(ConfigReader &config) : Decoder("phi3", config, defaults(config)) {
    norm = Norm::rms(config.number("rms_norm_eps", 1e-5, 0, 1));
    std::get<GatedMlp>(mlp).fused = true;
    windows = readOneWindow(config, layers, std::nullopt);
    for (StringRef key : {"attention_bias", "mlp_bias", "lm_head_bias"})
      config.require(key, false, false, "this family has no biases");
    // What no forward pass reads.
    config.unread({{"full_attn_mod"}, {"interpolate_factor"}});
  }

  Value block(BlockBuilder &b, Value x, int64_t layer) const override {
    Value window = windows.of(b, layer);
    Value n = b.norm("n", "input_layernorm", norm, x);
    auto [queries, keys, dim] = attention.heads;
    Value row = b.linear("qkv_row", "self_attn.qkv_proj", (queries + 2 * keys) * dim, n);
    Value o = attention.mixBlocks(b, row, window);
    Value mid = b.add("mid", x, b.linear("attn", "self_attn.o_proj", hidden, o));
    Value z = b.norm("z", "post_attention_layernorm", norm, mid);
    return b.add("y", mid, feed(b, z, layer));
  }

private:
  static Defaults defaults(ConfigReader &config) {
    Defaults absent{32, 3072, 8192, 32064, 32, std::nullopt, std::nullopt};
    absent.rope = RopeForm::part(1);
    absent.rope.mayScale = false;
    absent.rope.original =
        config.integer("original_max_position_embeddings", 4096, 2, int64_t(1) << 40);
    return absent;
  }
};

} // namespace

std::unique_ptr<Family> hf::makePhi3(ConfigReader &config) {
  return std::make_unique<Phi3>(config);
}
