// BERT: an encoder with its norms behind the sums, and the head that predicts masked tokens.
//   x = LN(E[token] + T[0] + P[position])               T: of the first segment
//   v = LN(x + W_o attention(W_q x, W_k x, W_v x))      attention sees the tokens behind too
//   y = LN(v + W₂ gelu(W₁ v))
//   logits = E LN(gelu(W y)) + b
// Every matrix has a bias.
#include "Parts.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Bert : public Family {
public:
  explicit Bert(ConfigReader &config) {
    layers = config.integer("num_hidden_layers", 12, 1, maxLayers);
    hidden = config.integer("hidden_size", 768, 1, maxWidth);
    vocabulary = config.integer("vocab_size", 30522, 1, maxVocabulary);
    places = config.integer("max_position_embeddings", 512, 1, maxVocabulary);
    segments = config.integer("type_vocab_size", 2, 1, maxVocabulary);
    tied = config.flag("tie_word_embeddings", true);
    headBias = true;
    norm = Norm::layer(config.number("layer_norm_eps", 1e-12, 0, 1));
    attention.heads = splitHeads(config, "num_attention_heads", 12, "hidden_size", hidden);
    attention.bidirectional = true;
    act = readActivation(config, "hidden_act", "gelu");
    mlp = {config.integer("intermediate_size", 3072, 1, maxWidth), act, /*bias=*/true,
           "intermediate.dense", "output.dense"};
    config.require("is_decoder", false, false, "only the encoder is");
    config.require("add_cross_attention", false, false, "there is no other sequence to attend to");
    if (config.text("position_embedding_type", "absolute") != "absolute")
      config.problem("position_embedding_type", "is not supported; absolute is");
    // Of the other task of its pretraining, and a second name for the head's bias.
    otherTensors = {"*pooler.dense.*", "cls.seq_relationship.*", "*embeddings.position_ids",
                    "cls.predictions.decoder.bias"};
  }

  StringRef name() const override { return "bert"; }
  SmallVector<StringRef> stems() const override { return {"bert.", ""}; }
  StringRef layerStem() const override { return "encoder.layer."; }
  StringRef embeddingName() const override { return "embeddings.word_embeddings.weight"; }
  SmallVector<StringRef> headNames() const override { return {"cls.predictions.decoder.weight"}; }
  StringRef headPart() const override { return "cls.predictions.transform.dense.weight"; }
  SmallVector<StringRef> headBiasNames() const override {
    return {"cls.predictions.bias", "cls.predictions.decoder.bias"};
  }

  Value afterEmbedding(BlockBuilder &b, Value x) const override {
    Value types = b.param(nameOf("token_type"), {segments, hidden});
    Value table = b.param(nameOf("position"), {places, hidden});
    Value typed = b.add("x_typed", x, b.embed("x_type", types, b.constant("segment", 0)));
    Value placed = b.add("x_placed", typed, b.embed("x_place", table, b.position("position")));
    return b.norm("x_n", "embeddings.LayerNorm", norm, placed);
  }

  Value block(BlockBuilder &b, Value x, int64_t) const override {
    Value a = b.linear("attn", "attention.output.dense", hidden, mix(b, x), /*bias=*/true);
    Value v = b.norm("v", "attention.output.LayerNorm", norm, b.add("attn_sum", a, x));
    return b.norm("y", "output.LayerNorm", norm, b.add("mlp_sum", mlp(b, "mlp", "", v), v));
  }

  Value beforeHead(BlockBuilder &, Value x) const override { return x; }

  Value headInput(BlockBuilder &b, Value x) const override {
    Value u = b.linear("u", "cls.predictions.transform.dense", hidden, x, /*bias=*/true);
    return b.norm("n", "cls.predictions.transform.LayerNorm", norm, b.activation("u_act", act, u));
  }

private:
  static std::string nameOf(StringRef kind) {
    return ("embeddings." + kind + "_embeddings.weight").str();
  }

  Value mix(BlockBuilder &b, Value x) const {
    auto heads = [&](StringRef as, StringRef module) {
      Value row = b.linear((as + "_row").str(), module, hidden, x, /*bias=*/true);
      return b.heads(as, row, attention.heads.dim);
    };
    Value q = heads("q", "attention.self.query"), k = heads("k", "attention.self.key");
    return attention.mix(b, q, k, heads("v_heads", "attention.self.value"));
  }

  int64_t places, segments;
  Norm norm;
  Attention attention;
  PlainMlp mlp;
  xf::ActivationKind act;
};

} // namespace

std::unique_ptr<Family> hf::makeBert(ConfigReader &config) {
  return std::make_unique<Bert>(config);
}
