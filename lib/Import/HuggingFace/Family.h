//===- Family.h - what an importer of one family states -------------------===//
//
// A family is its config, read and checked in the constructor, and its
// equations. To add one: a file like Llama.cpp and a line in HuggingFace.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_FAMILY_H
#define CTXC_IMPORT_FAMILY_H

#include "BlockBuilder.h"
#include "ctxc/Checkpoint/ConfigReader.h"

namespace ctxc::hf {

/// Sizes beyond which a config is a mistake or an attack. They keep every
/// product of two of them inside int64.
constexpr int64_t maxLayers = 10000, maxVocabulary = 1 << 24, maxWidth = 1 << 24,
                  maxHeads = 1 << 16;
/// A bank has three dimensions.
constexpr int64_t maxExperts = 1 << 12;

class Family {
public:
  using Value = mlir::Value;
  virtual ~Family() = default;

  virtual llvm::StringRef name() const = 0; ///< of its block in the IR

  /// The prefixes under which the text model may be stored, best first.
  virtual llvm::SmallVector<llvm::StringRef> stems() const = 0;
  virtual llvm::StringRef layerStem() const { return "layers."; }
  virtual llvm::StringRef embeddingName() const { return "embed_tokens.weight"; }
  /// Where the output head may be stored; used where it is not tied.
  virtual llvm::SmallVector<llvm::StringRef> headNames() const { return {"lm_head.weight"}; }
  /// Where its bias may be stored; where empty, beside the head.
  virtual llvm::SmallVector<llvm::StringRef> headBiasNames() const { return {}; }

  /// T(C, x) of layer `layer`, in [0, layers). Layers whose blocks come out alike, and differ at
  /// most in what they give to the block's settings, share one: state what differs as a setting
  /// where the equation stays, and as other ops where it does not.
  virtual Value block(BlockBuilder &b, Value x, int64_t layer) const = 0;
  /// From the table's row to the first layer's input.
  virtual Value afterEmbedding(BlockBuilder &b, Value x) const { return x; }
  /// From the last layer's output to the last hidden state, with which the base model ends.
  virtual Value beforeHead(BlockBuilder &b, Value x) const = 0;
  /// From there to the input of the head's matrix, by tensors that are not the base model's and
  /// whose names `b` takes as they are.
  virtual Value headInput(BlockBuilder &b, Value x) const { return x; }
  /// One of these tensors; empty where there is none.
  virtual llvm::StringRef headPart() const { return ""; }
  /// From the head's output to the logits.
  virtual Value afterHead(BlockBuilder &b, Value logits) const { return logits; }

  int64_t layers = 0, hidden = 0, vocabulary = 0;
  int64_t extraLayers = 0; ///< stored behind the others, without effect on the next token
  int64_t positions = 0; ///< from this position on the equations no longer hold; 0: they always do
  bool tied = false;     ///< the head is the embedding
  bool headBias = false; ///< the head has a bias
  /// Patterns (KeyRules.h) of tensors that its checkpoints hold beside those of the equations.
  std::vector<llvm::StringRef> otherTensors;
};

/// The readers, one for each family; HuggingFace.cpp says which model_type each reads. Null and a
/// problem where the config is of a variant that is not supported.
std::unique_ptr<Family> makeBert(ConfigReader &config);
std::unique_ptr<Family> makeBloom(ConfigReader &config);
std::unique_ptr<Family> makeDeepseekV3(ConfigReader &config);
std::unique_ptr<Family> makeFalcon(ConfigReader &config);
std::unique_ptr<Family> makeFalconH1(ConfigReader &config);
std::unique_ptr<Family> makeGemma(ConfigReader &config);
std::unique_ptr<Family> makeGemma2(ConfigReader &config);
std::unique_ptr<Family> makeGemma3(ConfigReader &config);
std::unique_ptr<Family> makeGlm4(ConfigReader &config);
std::unique_ptr<Family> makeGpt2(ConfigReader &config);
std::unique_ptr<Family> makeGptJ(ConfigReader &config);
std::unique_ptr<Family> makeGptNeo(ConfigReader &config);
std::unique_ptr<Family> makeGptNeoX(ConfigReader &config);
std::unique_ptr<Family> makeGptOss(ConfigReader &config);
std::unique_ptr<Family> makeJamba(ConfigReader &config);
std::unique_ptr<Family> makeLlama(ConfigReader &config);
std::unique_ptr<Family> makeMamba(ConfigReader &config);
std::unique_ptr<Family> makeMistral(ConfigReader &config);
std::unique_ptr<Family> makeMixtral(ConfigReader &config);
std::unique_ptr<Family> makeOlmo(ConfigReader &config);
std::unique_ptr<Family> makeOlmoe(ConfigReader &config);
std::unique_ptr<Family> makeOpt(ConfigReader &config);
std::unique_ptr<Family> makePhi(ConfigReader &config);
std::unique_ptr<Family> makePhi3(ConfigReader &config);
std::unique_ptr<Family> makeQwen2(ConfigReader &config);
std::unique_ptr<Family> makeQwen2Moe(ConfigReader &config);
std::unique_ptr<Family> makeQwen3(ConfigReader &config);
std::unique_ptr<Family> makeQwen3Moe(ConfigReader &config);
std::unique_ptr<Family> makeQwen3Next(ConfigReader &config);
std::unique_ptr<Family> makeSmolLM3(ConfigReader &config);
std::unique_ptr<Family> makeStableLm(ConfigReader &config);

/// The nonlinearity that transformers calls by the value of `key`.
xf::ActivationKind readActivation(ConfigReader &config, llvm::StringRef key,
                                  llvm::StringRef absent);

/// Reads num_attention_heads, num_key_value_heads and head_dim, and checks that
/// they fit each other and the width; a head that rotates has an even dimension.
struct HeadShape {
  int64_t queries, keys, dim;
};
HeadShape readHeads(ConfigReader &config, int64_t hidden, int64_t queries,
                    std::optional<int64_t> keys, std::optional<int64_t> dim, bool rotates = true);

/// Reads the number of heads under `key`; each is an equal part of `hidden`, which `widthKey`
/// names.
HeadShape splitHeads(ConfigReader &config, llvm::StringRef key, int64_t absent,
                     llvm::StringRef widthKey, int64_t hidden);

/// Which layers see a window, and how many positions it lets them see, this one included.
struct SlidingLayers {
  std::vector<bool> sliding;
  int64_t window = 0;

  bool any() const { return llvm::is_contained(sliding, true); }

  /// The setting of layer `layer`; null where no layer has a window.
  mlir::Value of(BlockBuilder &b, int64_t layer) const {
    return any() ? b.layerIndex("window", windowOf(layer)) : mlir::Value();
  }

  /// 0, no window, in full layers.
  int64_t windowOf(int64_t layer) const { return sliding[layer] ? window : 0; }
};
/// Reads layer_types, where absent the layers that `slides` names, and sliding_window.
SlidingLayers readSlidingLayers(ConfigReader &config, int64_t layers,
                                llvm::function_ref<bool(int64_t)> slides, int64_t window);
/// The same where all but every `pattern`-th layer slides.
SlidingLayers readSlidingLayers(ConfigReader &config, int64_t layers, int64_t pattern,
                                int64_t window);

/// The same where no layer has a window unless use_sliding_window, whatever sliding_window says.
SlidingLayers readSwitchedWindows(ConfigReader &config, int64_t layers,
                                  llvm::function_ref<bool(int64_t)> slides);
/// Reads sliding_window as that of all layers; null is none.
SlidingLayers readOneWindow(ConfigReader &config, int64_t layers, std::optional<int64_t> absent);

} // namespace ctxc::hf

#endif // CTXC_IMPORT_FAMILY_H
