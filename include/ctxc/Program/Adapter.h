//===- Adapter.h - a lasting change of a model's parameters ---------------===//
//
// The result of distilling a context, which other programs can fit as well: low-rank changes of
// matrices, and changes of norms' scales. Unlike a patch, an adapter is not made for one token at
// one position, and it is approximate.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PROGRAM_ADAPTER_H
#define CTXC_PROGRAM_ADAPTER_H

#include "ctxc/Program/Weights.h"
#include "llvm/ADT/StringMap.h"

namespace ctxc {

/// stored + left right is the changed matrix, in its stored orientation.
struct MatrixChange {
  /// Its full name in the checkpoint; of one expert, that of its slice (SliceName.h).
  std::string parameter;
  int64_t rows = 0, columns = 0, rank = 0;
  std::vector<float> left;  ///< rows × rank
  std::vector<float> right; ///< rank × columns
  bool inFirst = false;     ///< stored as (in, out), like GPT-2's Conv1D
};

/// stored + delta is the changed vector.
struct VectorChange {
  std::string parameter;
  std::vector<float> delta;
};

/// What one attention keeps of some tokens: their keys (behind a rotation) and values.
struct KeysAndValues {
  int64_t heads = 0, tokens = 0, keyWidth = 0, valueWidth = 0;
  std::vector<float> keys, values; ///< heads × tokens × width
};

/// Keys and values of no token, which stand in every attention's cache in the place of a context:
/// at the positions from 0 on, and a text begins at the position behind them.
struct VirtualEntries {
  std::vector<KeysAndValues> attentions; ///< in the program's order, with as many tokens each

  int64_t count() const { return attentions.empty() ? 0 : attentions.front().tokens; }
  bool empty() const { return count() == 0; }
  /// How many numbers they are.
  int64_t size() const;
};

struct Adapter {
  std::vector<MatrixChange> matrices; ///< each parameter once
  std::vector<VectorChange> vectors;
  /// The tokens in front of every text: those that the tokenizer puts there, and those that were
  /// kept from the context.
  std::vector<int64_t> prefix;
  /// Where only some tokens of the prefix are seen from behind it: their places, ascending. The
  /// model has then read the whole prefix without the adapter, and what it keeps of the other
  /// tokens (keys and values) is dropped.
  std::vector<int64_t> seen;
  /// What stands before a text in the place of a prefix, which is then empty.
  VirtualEntries entries;

  /// How many tokens of the prefix, or virtual entries, stand before a text.
  int64_t inFront() const {
    return !entries.empty() ? entries.count() : seen.empty() ? prefix.size() : seen.size();
  }
  /// How many numbers it has.
  int64_t size() const;
  int64_t rank() const; ///< the largest of its matrices
};

/// Multiplies all changes by `strength`; 0 removes them. The prefix does not change.
void scale(Adapter &adapter, double strength);

/// Weights with changes, in float32; `original` must outlive it.
class AdaptedWeights : public Weights {
public:
  explicit AdaptedWeights(Weights &original) : original(original) {}

  /// Adds a change; a parameter's earlier change is replaced. Errors: factors whose sizes do not
  /// fit, numbers that are not finite.
  llvm::Error add(MatrixChange change);
  llvm::Error add(VectorChange change);
  llvm::Error add(const Adapter &adapter);

  /// Additional errors: a changed parameter has another shape, or is not stored in float32.
  llvm::Expected<const void *> get(llvm::StringRef name, mlir::RankedTensorType type) override;
  llvm::Expected<std::string> hash() override { return original.hash(); }

private:
  llvm::Expected<const void *> getBank(llvm::StringRef name, mlir::RankedTensorType type);

  Weights &original;
  llvm::StringMap<MatrixChange> matrices;
  llvm::StringMap<VectorChange> vectors;
  llvm::StringMap<std::vector<float>> made;
};

} // namespace ctxc

#endif // CTXC_PROGRAM_ADAPTER_H
