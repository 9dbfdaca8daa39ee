// OPT. With a table of positions whose first two rows belong to none:
//   x = W_in E[token] + P[position + 2]            W_in where word_embed_proj_dim is not the width
//   v = x + W_o attention(q, k, v) + b_o           n = LN₁ x,  q = W_q n + b_q, …
//   y = v + W₂ relu(W₁ z + b₁) + b₂                z = LN₂ v
//   logits = E W_out LN y
// Without do_layer_norm_before, as in OPT-350m, norms stand on the sums and none before the head:
//   v = LN₁ (x + W_o attention(q, k, v) + b_o)     y = LN₂ (v + W₂ relu(W₁ v + b₁) + b₂)
#include "Parts.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Opt : public Family {
public:
  explicit Opt(ConfigReader &config) {
    layers = config.integer("num_hidden_layers", 12, 1, maxLayers);
    stream = config.integer("hidden_size", 768, 1, maxWidth);
    hidden = config.integer("word_embed_proj_dim", stream, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 50272, 1, maxVocabulary);
    positions = config.integer("max_position_embeddings", 2048, 1, maxVocabulary);
    tied = config.flag("tie_word_embeddings", true);
    bool bias = config.flag("enable_bias", true);
    attention.heads = splitHeads(config, "num_attention_heads", 12, "hidden_size", stream);
    attention.qkvBias = attention.outBias = bias;
    attention.out = "out_proj";
    mlp = {config.integer("ffn_dim", 3072, 1, maxWidth),
           readActivation(config, "activation_function", "relu"), bias, "fc1", "fc2"};
    bool affine = config.flag("layer_norm_elementwise_affine", true);
    norm = {xf::NormKind::layer, 1e-5, /*offset=*/0, affine, affine};
    normFirst = config.flag("do_layer_norm_before", true);
    normLast = !config.flag("_remove_final_layer_norm", false) && normFirst;
  }

  StringRef name() const override { return "opt"; }
  SmallVector<StringRef> stems() const override { return {"model.decoder.", "decoder.", ""}; }

  Value afterEmbedding(BlockBuilder &b, Value x) const override {
    if (hidden != stream)
      x = b.linear("x_wide", "project_in", stream, x);
    Value table = b.param("embed_positions.weight", {positions + unused, stream});
    return b.add("x_placed", x, b.embed("x_place", table, b.position("position", unused)));
  }

  Value block(BlockBuilder &b, Value x, int64_t) const override {
    Value n = normFirst ? b.norm("n", "self_attn_layer_norm", norm, x) : x;
    Value mid = b.add("mid", x, attention(b, "attn", "self_attn", n));
    if (!normFirst)
      mid = b.norm("mid_n", "self_attn_layer_norm", norm, mid);
    Value z = normFirst ? b.norm("z", "final_layer_norm", norm, mid) : mid;
    Value y = b.add("y", mid, mlp(b, "mlp", "", z));
    return normFirst ? y : b.norm("y_n", "final_layer_norm", norm, y);
  }

  Value beforeHead(BlockBuilder &b, Value x) const override {
    if (normLast)
      x = b.norm("n", "final_layer_norm", norm, x);
    return hidden == stream ? x : b.linear("n_narrow", "project_out", hidden, x);
  }

private:
  static constexpr int64_t unused = 2; // rows of P

  int64_t stream, positions;
  Norm norm;
  Attention attention;
  PlainMlp mlp;
  bool normFirst, normLast;
};

} // namespace

std::unique_ptr<Family> hf::makeOpt(ConfigReader &config) { return std::make_unique<Opt>(config); }
