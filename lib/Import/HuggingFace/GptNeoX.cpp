// GPT-NeoX (Pythia): attention and MLP in parallel, each on a norm of its own, or in sequence.
//   y = (W₂ gelu(W₁ LN₂ x + b₁) + b₂ + a) + x         a = W_o attention(R q, R k, v) + b_o
//   y = W₂ gelu(W₁ LN₂ v + b₁) + b₂ + v, v = a + x    without use_parallel_residual
// The rows of one matrix give q, k, v of the first head, then of the second, and so on. R rotates a
// part of each head.
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class GptNeoX : public Decoder {
public:
  explicit GptNeoX(ConfigReader &config) : Decoder("gpt_neox", config, defaults()) {
    norm = Norm::layer(config.number("layer_norm_eps", 1e-5, 0, 1));
    finalNorm = "final_layer_norm";
    attention.qkvBias = attention.outBias = config.flag("attention_bias", true);
    setPlainMlp(/*bias=*/true, "dense_h_to_4h", "dense_4h_to_h");
    parallel = config.flag("use_parallel_residual", true);
    otherTensors = {"*.attention.bias", "*.attention.masked_bias"}; // masks, which were stored once
    for (StringRef key : {"num_key_value_heads", "head_dim"})
      if (config.has(key))
        config.problem(key, "is not read by this family; remove it");
  }

  SmallVector<StringRef> stems() const override { return {"gpt_neox.", ""}; }
  StringRef embeddingName() const override { return "embed_in.weight"; }
  SmallVector<StringRef> headNames() const override {
    return {"embed_out.weight", "lm_head.weight"};
  }

  Value block(BlockBuilder &b, Value x, int64_t layer) const override {
    Value a = mixed(b, b.norm("n", "input_layernorm", norm, x));
    Value mid = parallel ? Value() : b.add("mid", a, x);
    Value z = b.norm("z", "post_attention_layernorm", norm, parallel ? x : mid);
    if (!parallel)
      return b.add("y", feed(b, z, layer), mid);
    return b.add("y", b.add("branches", feed(b, z, layer), a), x);
  }

private:
  static Defaults defaults() {
    Defaults absent{44, 6144, 24576, 50432, 64, std::nullopt, std::nullopt};
    absent.rope = RopeForm::part(0.25);
    absent.rope.baseKey = "rotary_emb_base";
    absent.rope.partKey = "rotary_pct";
    absent.act = "gelu";
    return absent;
  }

  Value mixed(BlockBuilder &b, Value n) const {
    Value row = b.linear("qkv_row", "attention.query_key_value", 3 * hidden, n, attention.qkvBias);
    return b.linear("attn", "attention.dense", hidden, attention.mixGroups(b, row),
                    attention.outBias);
  }

  bool parallel;
};

} // namespace

std::unique_ptr<Family> hf::makeGptNeoX(ConfigReader &config) {
  return std::make_unique<GptNeoX>(config);
}
