//===- Evaluation.h - one block evaluated for S tokens, in float64 --------===//
//
// The executable meaning of xf and patch, block by block. Use it to test one
// block, or to give an op of another dialect a meaning; whole models run
// through Reference.h.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_REFERENCE_EVALUATION_H
#define CTXC_REFERENCE_EVALUATION_H

#include "ctxc/Checkpoint/DType.h"
#include "ctxc/Program/Executor.h"
#include "ctxc/Program/Weights.h"
#include "ctxc/Reference/State.h"
#include "dialects/Patch/Patch.h"
#include "dialects/XF/XF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <memory>

namespace ctxc::reference {

/// A stored parameter, which is read and widened piece by piece; or one that is not stored, whose
/// numbers a counter makes as they are read (lib/Reference/CountedMatrix.h).
struct StoredTensor {
  DType dtype = DType::F64;
  const void *data = nullptr; ///< what readDoubles takes
  llvm::SmallVector<int64_t, 2> shape;
  /// The address of each slice along the first dimension, for a bank whose slices are separate
  /// tensors; `data` is null then.
  std::vector<const void *> slices = {};
  /// If there is one, or one for each entry of the first dimension, neither `data` nor `slices` are
  /// needed.
  std::optional<uint64_t> counter = std::nullopt;
  std::vector<uint64_t> counters = {};

  /// A parameter of this shape, with numbers of expectation 0 and, along the last dimension, of
  /// length 1 on average. Parameters of one counter and shape are the same.
  static StoredTensor counted(uint64_t counter, llvm::ArrayRef<int64_t> shape);
  /// Of all its numbers together; of those that a counter makes, the expectation.
  double squaredNorm() const;
  int64_t elements() const;
  /// Entry `index` of the first dimension.
  StoredTensor slice(int64_t index) const;
  /// Elements first, first + 1, … into all of `to`.
  void read(int64_t first, llvm::MutableArrayRef<double> to) const;
};

/// The patch of one parameter as a block writes or reads it: `u` and `v`, or a
/// delta, or `u`, `v` and indices, in the op's orientation; one matrix row for each token.
struct BlockPatch {
  std::string parameter; ///< the block's name
  llvm::SmallVector<Matrix, 3> parts;
};

/// What a block reads and writes beside its SSA values, for one step.
struct Environment {
  Weights &weights;
  /// Gives stored names and settings; null: the block's own names and defaults.
  xf::LayerOp layer;
  llvm::ArrayRef<int64_t> tokens, positions; ///< of the S tokens
  /// The state of each run; the only run of a plain block has the key nullopt.
  std::map<std::optional<xf::Run>, BlockState *> states = {};
  /// What patch.load reads, one matrix row each; a parameter that is missing is unpatched.
  std::vector<BlockPatch> loads = {};
  /// Parameters, by the block's names, that replace those of the weights; of the
  /// parameters' shapes, in any floating type.
  llvm::StringMap<StoredTensor> parameters = {};
  /// Whether xf.round rounds, as in a run of the program; else it leaves numbers as they are.
  bool rounds = false;
  /// Called before each op; its error ends the evaluation.
  llvm::function_ref<llvm::Error()> mayGoOn = nullptr;

  std::vector<BlockPatch> stores = {};            ///< out: what patch.store gave
  std::vector<LayerObligations> obligations = {}; ///< out: counts by obligation index
};

/// The values of one block's evaluation, as an op sees them.
class Evaluation {
public:
  Evaluation(Environment &environment) : environment(environment) {}

  Environment &getEnvironment() const { return environment; }
  int64_t tokenCount() const { return environment.tokens.size(); }

  /// A value as a matrix (S × elements), one row for each token; valid as long as this object. A
  /// stored parameter used as a value is the same for all tokens.
  const Matrix &rows(mlir::Value value) const;
  /// Sets a result, one matrix row for each token.
  void set(mlir::Value value, Matrix rows);

  /// Whether the value has been set.
  bool has(mlir::Value value) const {
    return computed.contains(value) || parameters.contains(value);
  }
  /// Sets a parameter.
  void set(mlir::Value value, StoredTensor parameter);
  /// Whether a value used as a parameter is the same for all tokens: a stored one is; a
  /// computed one (a patched parameter) differs from token to token.
  bool isShared(mlir::Value parameter) const;
  StoredTensor stored(mlir::Value parameter, int64_t token) const;
  /// All of a parameter: (1 × elements) if it is shared, otherwise (S × elements).
  Matrix widened(mlir::Value parameter) const;

  /// The state of the contextual op that is being evaluated.
  OpState &state() { return *currentState; }
  void setState(OpState *state) { currentState = state; }

private:
  Environment &environment;
  llvm::DenseMap<mlir::Value, std::unique_ptr<Matrix>> computed;
  llvm::DenseMap<mlir::Value, StoredTensor> parameters;
  /// Parameters that were used as values.
  mutable llvm::DenseMap<mlir::Value, std::unique_ptr<Matrix>> repeated;
  OpState *currentState = nullptr;
};

/// Evaluates `block` on `inputs`, each (S × elements of the argument), and gives
/// the yielded values; `evaluation` holds the inner ones afterwards. Contextual ops append to the
/// environment's states, even if a later op fails; the caller truncates them. Errors: an op without
/// a meaning here, a parameter that cannot be read, a token id out of range.
llvm::Expected<llvm::SmallVector<Matrix>>
evaluateBlock(xf::BlockOp block, llvm::ArrayRef<Matrix> inputs, Evaluation &evaluation);

/// What float64 holds of what a block computes.
struct Resolution {
  bool large = true; ///< no entry is so large that a change of it is rounded away
  /// None is so small that what it is multiplied by is, nor zero where by its facts that is a null
  /// set: otherwise it may seem that a patch does not reach what it reaches.
  bool small = true;
};
Resolution resolutionOf(xf::BlockOp block, llvm::function_ref<const xf::Facts &(mlir::Value)> facts,
                        const Evaluation &evaluation);

/// "file:line:col: 'op' op message".
llvm::Error errorAt(mlir::Operation *op, const llvm::Twine &message);

} // namespace ctxc::reference

#include "ctxc/Reference/ReferenceInterface.h.inc"

#endif // CTXC_REFERENCE_EVALUATION_H
