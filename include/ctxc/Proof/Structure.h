//===- Structure.h - what a proof is about: blocks and their bindings ------===//
//
// The distinct structures of a model and how a proof names them and their values. All of it follows
// from the module.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PROOF_STRUCTURE_H
#define CTXC_PROOF_STRUCTURE_H

#include "ctxc/Proof/Proof.h"
#include "dialects/XF/XF.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include <set>

namespace ctxc::proof {

/// A block under one set of bindings and of settings' numbers, and the layers that run it so.
struct Structure {
  xf::BlockOp block;
  bool inputsDepend = false;           ///< on the context, which reaches them past patched layers
  std::set<unsigned> equalInputs = {}; ///< the inputs that do not depend, if others do
  std::set<std::string> frozen = {}, shared = {}; ///< the block's names, as layers bind them
  std::string settings = {};         ///< their numbers, by the block's names, as a text
  std::string facts = {};            ///< the block's facts under the layers' settings and bindings
  std::vector<unsigned> layers = {}; ///< or, without a model, the block's number
  xf::LayerOp layer = {};            ///< the first of them; null without a model
};

/// The structures of `module` from `startLayer` on, in the order of their first layers.
std::vector<Structure> structuresOf(mlir::ModuleOp module, int64_t startLayer);

/// "0-4, 6"
std::string layersText(const Structure &structure);
/// "block 'b', layers 0-4, 6"
std::string titleOf(const Structure &structure);

/// The block's text and the names of its values in it.
class BlockText {
public:
  explicit BlockText(xf::BlockOp block);

  llvm::ArrayRef<std::string> lines() const { return text; }
  size_t count() const { return names.size(); }
  llvm::StringRef name(mlir::Value value) const { return names.find(value)->second; }
  /// Null if there is none.
  mlir::Value lookup(llvm::StringRef name) const { return values.lookup(name); }

private:
  Names text;
  llvm::DenseMap<mlir::Value, std::string> names;
  llvm::StringMap<mlir::Value> values;
};

/// SHA-256 of the text, bindings, settings and source of a structure: "sha256:" and 64 digits.
std::string digestOf(const Structure &structure, const BlockText &text);

/// The id of the rule for an op's lemma `lemma`; the lemma itself if there is no rule.
std::string ruleOfLemma(llvm::StringRef lemma);

} // namespace ctxc::proof

#endif // CTXC_PROOF_STRUCTURE_H
