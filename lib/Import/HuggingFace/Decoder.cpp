#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

Decoder::Decoder(StringRef name, ConfigReader &config, const Defaults &absent) : blockName(name) {
  layers = config.integer("num_hidden_layers", absent.layers, 1, maxLayers);
  hidden = config.integer("hidden_size", absent.hidden, 1, maxWidth);
  vocabulary = config.integer("vocab_size", absent.vocabulary, 1, maxVocabulary);
  tied = config.flag("tie_word_embeddings", absent.tied);
  attention.heads = readHeads(config, hidden, absent.queries, absent.keys, absent.dim);
  attention.rope = readRope(config, attention.heads.dim, absent.rope);
  positions = attention.rope->positions;
  int64_t inner = config.integer("intermediate_size", absent.inner, 1, maxWidth);
  mlp = GatedMlp{inner, readActivation(config, absent.actKey, absent.act)};
}

void Decoder::readAttentionBias(ConfigReader &config) {
  attention.qkvBias = attention.outBias = config.flag("attention_bias", false);
}

void Decoder::readMlpBias(ConfigReader &config) {
  std::get<GatedMlp>(mlp).bias = config.flag("mlp_bias", false);
}

void Decoder::setPlainMlp(bool bias, StringLiteral up, StringLiteral down) {
  const auto &gated = std::get<GatedMlp>(mlp);
  mlp = PlainMlp{gated.inner, gated.act, bias, up, down};
}

mlir::Value Decoder::attend(BlockBuilder &b, mlir::Value n, int64_t layer) const {
  Attention own = attention;
  if (!rotates.empty() && !rotates[layer])
    own.rope.reset();
  return own(b, "attn", "self_attn", n, windows.of(b, layer));
}

mlir::Value Decoder::feed(BlockBuilder &b, mlir::Value z, int64_t) const {
  return std::visit([&](const auto &mlp) { return mlp(b, "mlp", "mlp", z); }, mlp);
}

mlir::Value Decoder::block(BlockBuilder &b, mlir::Value x, int64_t layer) const {
  mlir::Value n = b.norm("n", "input_layernorm", norm, x);
  mlir::Value a = attend(b, n, layer);
  mlir::Value mid = b.add("mid", x, a);
  mlir::Value z = b.norm("z", "post_attention_layernorm", norm, mid);
  return b.add("y", mid, feed(b, z, layer));
}

mlir::Value Decoder::afterEmbedding(BlockBuilder &b, mlir::Value x) const {
  return embeddingFactor == 1 ? x : b.times("x_scaled", x, embeddingFactor);
}

mlir::Value Decoder::beforeHead(BlockBuilder &b, mlir::Value x) const {
  return b.norm("n", finalNorm, norm, x);
}

mlir::Value Decoder::afterHead(BlockBuilder &b, mlir::Value logits) const {
  return logitCap ? b.softcap("capped", logits, *logitCap) : logits;
}
