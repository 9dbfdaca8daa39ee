// Falcon, in three forms. With F z = W₂ gelu(W₁ z + b₁) + b₂ and A n = W_o attention(q, k, v) +
// b_o:
//   7B   y = x + (F u + A u)                u = LN x
//   40B  y = x + (F LN₂ x + A LN₁ x)        new_decoder_architecture; or one norm, as above
//   RW   v = x + A LN₁ x, y = v + F LN₂ v   without parallel_attn
// One product gives q, k and v: group by group the queries that share a key, then that key and its
// value. With multi_query there is one group, in 40B as many as num_kv_heads. Positions are
// rotations, or with `alibi` a key at position j has the score (q · k + m_h j) / √dim, with m_h j
// rounded to bfloat16.
#include "Parts.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Falcon : public Family {
public:
  explicit Falcon(ConfigReader &config) {
    layers = config.integer("num_hidden_layers", 32, 1, maxLayers);
    hidden = config.integer("hidden_size", 4544, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 65024, 1, maxVocabulary);
    tied = config.flag("tie_word_embeddings", true);
    bias = config.flag("bias", false);
    norm = Norm::layer(config.number("layer_norm_epsilon", 1e-5, 0, 1));
    mlp = {config.integer("ffn_hidden_size", 4 * hidden, 1, 4 * maxWidth),
           readActivation(config, "activation", "gelu"), bias, "dense_h_to_4h", "dense_4h_to_h"};
    readForm(config);
    readAttention(config);
    config.unread({{"n_layer"}, {"n_head"}, {"n_embed"}}); // the first code's names of sizes
    config.require("apply_residual_connection_post_layernorm", false, false,
                   "transformers does not read it");
  }

  StringRef name() const override { return "falcon"; }
  SmallVector<StringRef> stems() const override { return {"transformer.", ""}; }
  StringRef layerStem() const override { return "h."; }
  StringRef embeddingName() const override { return "word_embeddings.weight"; }

  Value block(BlockBuilder &b, Value x, int64_t) const override {
    if (!parallel) {
      Value mid = b.add("mid", attend(b, b.norm("n", "input_layernorm", norm, x)), x);
      Value z = b.norm("z", "post_attention_layernorm", norm, mid);
      return b.add("y", mid, mlp(b, "mlp", "mlp", z));
    }
    Value u = b.norm("u", twoNorms ? "ln_attn" : "input_layernorm", norm, x);
    Value z = twoNorms ? b.norm("z", "ln_mlp", norm, x) : u;
    Value a = attend(b, u);
    return b.add("y", x, b.add("branches", mlp(b, "mlp", "mlp", z), a));
  }

  Value beforeHead(BlockBuilder &b, Value x) const override { return b.norm("n", "ln_f", norm, x); }

private:
  Value attend(BlockBuilder &b, Value n) const {
    auto [queries, keys, dim] = attention.heads;
    Value row =
        b.linear("qkv_row", "self_attention.query_key_value", (queries + 2 * keys) * dim, n, bias);
    return b.linear("attn", "self_attention.dense", hidden, attention.mixGroups(b, row), bias);
  }

  void readForm(ConfigReader &config) {
    newer = config.flag("new_decoder_architecture", false);
    parallel = config.flag("parallel_attn", true);
    int64_t norms = config.integer("num_ln_in_parallel_attn", newer ? 2 : 1, 0, 2);
    twoNorms = newer && norms == 2;
    if (newer && !parallel)
      config.problem("parallel_attn", "is not supported with new_decoder_architecture");
    if (!newer && parallel && norms == 2)
      config.problem("num_ln_in_parallel_attn",
                     "is not supported without new_decoder_architecture");
  }

  void readAttention(ConfigReader &config) {
    HeadShape &heads = attention.heads;
    heads = splitHeads(config, "num_attention_heads", 71, "hidden_size", hidden);
    bool oneKey = config.flag("multi_query", true) && !newer;
    int64_t keys = config.integer("num_kv_heads", heads.queries, 1, maxHeads);
    if (!oneKey && (newer ? heads.queries % keys : keys != heads.queries))
      config.problem("num_kv_heads", "does not fit num_attention_heads = " + Twine(heads.queries));
    heads.keys = oneKey ? 1 : heads.queries % keys ? heads.queries : keys;
    if (config.flag("alibi", false))
      attention.setAlibi(/*scaled=*/true, /*rounded=*/true);
    Rope rope = readRope(config, heads.dim);
    if (!attention.slopes.empty())
      return;
    attention.rope = rope;
    positions = rope.positions;
    if (heads.dim % 2)
      config.problem("hidden_size", "gives an odd head dimension of " + Twine(heads.dim) +
                                        "; a rotary embedding needs an even one");
  }

  Norm norm;
  Attention attention;
  PlainMlp mlp;
  bool bias, newer, parallel, twoNorms;
};

} // namespace

std::unique_ptr<Family> hf::makeFalcon(ConfigReader &config) {
  return std::make_unique<Falcon>(config);
}
