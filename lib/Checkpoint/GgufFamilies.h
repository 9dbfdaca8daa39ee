//===- GgufFamilies.h - what llama.cpp calls the families' tensors and keys ===//
//
// A row for each form that an architecture's files have. Reading one needs the table alone, and for
// some a function that says which keys of the metadata are which keys of config.json.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LIB_CHECKPOINT_GGUFFAMILIES_H
#define CTXC_LIB_CHECKPOINT_GGUFFAMILIES_H

#include "GgufKeys.h"
#include "ctxc/Checkpoint/GgufModel.h"

namespace ctxc {

/// A name of llama.cpp's and the one that transformers gives to the same.
using GgufName = std::pair<llvm::StringLiteral, llvm::StringLiteral>;

/// What a family's own function adds to a config that has what all families have.
struct GgufConfig {
  const GgufFile &file;
  GgufKeys &keys;
  llvm::json::Object &config;
  int64_t layers, hidden, heads, headSize;

  /// Whether layer 0 has the tensor `name`, such as "attn_q.bias".
  bool has(llvm::StringRef name) const { return file.find(("blk.0." + name).str()); }
  /// config[`to`] is the metadata's number `from`, where it is there.
  void number(llvm::StringRef from, llvm::StringRef to);
  /// config[`to`] is the factor `from`, for which 0 stands where there is none: `absent`.
  void factor(llvm::StringRef from, llvm::StringRef to, double absent = 1);
  /// The key `from`, which must be there.
  void needed(llvm::StringRef from, llvm::StringRef to) { config[to] = keys.needed(from); }
  /// Gives config[`from`] the name `to`.
  void rename(llvm::StringRef from, llvm::StringRef to);
};

struct GgufFamily {
  llvm::StringLiteral name, modelType;
  /// A tensor that files of this form have; empty where all have it. The first form that fits
  /// counts.
  llvm::StringLiteral sign = "";
  StorageConventions conventions = {};
  /// Names of the model's tensors, and of a layer's without "blk.N.", both without ".weight" and
  /// ".bias" but where a layer's has another end. They go before those that most families have.
  llvm::ArrayRef<GgufName> model = {}, layer = {};
  llvm::StringLiteral layers = "model.layers."; ///< what leads a layer's
  llvm::StringLiteral epsilon = "rms_norm_eps"; ///< the norms' ε in config.json; empty: 1e-5
  bool rotatesPart = false;                     ///< config.json says how much of a head is rotated
  void (*complete)(GgufConfig &) = nullptr;
};

/// The form of `file`'s architecture; null where none is known.
const GgufFamily *findGgufFamily(const GgufFile &file);
/// The names of all architectures, as a message lists them.
std::string ggufArchitectures();

/// What transformers calls tensor `name`; the same where it has no other name.
std::string nameOfGguf(llvm::StringRef name, const GgufFamily &family);

} // namespace ctxc

#endif // CTXC_LIB_CHECKPOINT_GGUFFAMILIES_H
