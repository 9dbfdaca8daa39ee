//===- Decoder.h - Llama's form of a decoder, and what varies in it -------===//
//
//   v = x + A(N₁ x)        N₁, N₂: input_layernorm and post_attention_layernorm
//   y = v + M(N₂ v)
//
// with attention A and an MLP M, in the names that Llama's checkpoints and configs
// made common. A family's own file says which A, M and N these are; one with another formula for
// its block overrides `block`.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_DECODER_H
#define CTXC_IMPORT_DECODER_H

#include "Parts.h"
#include <variant>

namespace ctxc::hf {

class Decoder : public Family {
public:
  /// Values for keys that config.json does not have.
  struct Defaults {
    int64_t layers, hidden, inner, vocabulary, queries;
    std::optional<int64_t> keys, dim; ///< none: as many as queries; hidden / queries
    bool tied = false;
    RopeForm rope = {};
    llvm::StringLiteral act = "silu";
    llvm::StringLiteral actKey = "hidden_act";
  };

  /// Reads sizes, heads, rope, the nonlinearity and tie_word_embeddings. M is a GatedMlp at first.
  Decoder(llvm::StringRef name, ConfigReader &config, const Defaults &absent);

  /// Reads attention_bias, of q, k, v and o.
  void readAttentionBias(ConfigReader &config);
  /// Reads mlp_bias, of a gated MLP.
  void readMlpBias(ConfigReader &config);
  /// Makes M an MLP without a gate, of the size and the function that the config gives.
  void setPlainMlp(bool bias, llvm::StringLiteral up, llvm::StringLiteral down);

  llvm::StringRef name() const override { return blockName; }
  llvm::SmallVector<llvm::StringRef> stems() const override { return {"model.", ""}; }

  Value block(BlockBuilder &b, Value x, int64_t layer) const override;
  Value afterEmbedding(BlockBuilder &b, Value x) const override;
  Value beforeHead(BlockBuilder &b, Value x) const override;
  Value afterHead(BlockBuilder &b, Value logits) const override;

  Norm norm;
  Attention attention;
  std::vector<bool> rotates; ///< by layer; empty where all do
  SlidingLayers windows;
  std::variant<GatedMlp, PlainMlp, GatedExperts> mlp;
  double embeddingFactor = 1;
  std::optional<double> logitCap;
  llvm::StringLiteral finalNorm = "norm";

protected:
  /// A n with what layer `layer` sees and whether it rotates.
  virtual Value attend(BlockBuilder &b, Value n, int64_t layer) const;
  /// M z; a family whose layers differ in M says which layer has which.
  virtual Value feed(BlockBuilder &b, Value z, int64_t layer) const;

  llvm::StringRef blockName;
};

} // namespace ctxc::hf

#endif // CTXC_IMPORT_DECODER_H
