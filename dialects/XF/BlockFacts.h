//===- BlockFacts.h - the facts of all values of a block -------------------===//
//
// One forward pass over FactsOpInterface, under a layer's settings and bindings, which also finds
// what no op can know by itself: which values are the same (equal ops on equal operands), what
// cancels in a sum, and whether its terms are independent. A sum is written as Σ c_i a_i + k, over
// values a_i that are not sums. It is zero:
//
//   nothing is left      the sum is k
//   c a + k              where a is −k/c
//   all a_i analytic     on a null set, since they are different functions
//   otherwise            on a null set, if some a_i is moved by a stored parameter that no other
//                        reads; where that one is zero, what the others leave decides
//
// and anything else counts as zero on an open set. A value that depends only on settings is either
// zero or not: only its interval says which.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_DIALECTS_XF_BLOCKFACTS_H
#define CTXC_DIALECTS_XF_BLOCKFACTS_H

#include "dialects/XF/XF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

namespace ctxc::xf {

/// The stored tensors behind `param` in `layer`: one, or those of a bank. If `layer` is null, the
/// names are the block's own.
llvm::SmallVector<std::string> storedTensors(ParamOp param, LayerOp layer);

/// Which parameters of a block are the same in a layer: those that share a stored tensor, although
/// the block has different names for them.
class Identities {
public:
  Identities() = default;
  Identities(BlockOp block, LayerOp layer);

  /// The first of the block's names for the parameter that `name` stands for, or `name` itself.
  llvm::StringRef operator[](llvm::StringRef name) const;
  bool areOne(llvm::StringRef a, llvm::StringRef b) const { return (*this)[a] == (*this)[b]; }
  /// Names of parameters that have an earlier name, with that name.
  const llvm::StringMap<std::string> &aliases() const { return first; }

private:
  llvm::StringMap<std::string> first;
};

/// The numbers of all settings of `block` in `layer`, or its own where `layer` is null, as a text:
/// layers with equal texts compute the same function of their activations and parameters.
std::string settingValues(BlockOp block, LayerOp layer);

class BlockFacts {
public:
  explicit BlockFacts(BlockOp block, LayerOp layer = {});

  const Facts &operator[](mlir::Value value) const { return table.find(value)->second; }
  const Identities &identities() const { return names; }
  /// Whether the result of the contextual op `op` may differ with the context, given what is known
  /// about its operands (ContextReadingOpInterface) and its result.
  bool readsContext(mlir::Operation *op) const { return !blind.contains(op); }

  /// All facts that may differ from layer to layer of one block, as a text. Layers with equal texts
  /// have equal facts, and may still differ in the numbers of their settings (settingValues).
  std::string signature() const;

private:
  friend class FactsPass;
  BlockOp block;
  Identities names;
  llvm::DenseMap<mlir::Value, Facts> table;
  llvm::DenseSet<mlir::Operation *> blind; ///< contextual ops that do not read the context
};

/// That all entries underflow at once happens to so few alone.
inline constexpr int64_t few = 4;
/// Where `obligation` on `value`, whose facts are `facts`, can fail.
Zeros failureOf(Obligation obligation, mlir::Value value, const Facts &facts);
/// Why a patch or a link of a chain cannot divide by the value that `obligation` is about: "entries
/// that are zero on an open set of activations (…)". Empty if it can, perhaps under a condition
/// that is checked in each run.
std::string unreliableDivisor(Obligation obligation, const Facts &facts);

} // namespace ctxc::xf

#endif // CTXC_DIALECTS_XF_BLOCKFACTS_H
