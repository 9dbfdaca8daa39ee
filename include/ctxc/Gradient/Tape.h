//===- Tape.h - a block's values for many tokens, and their gradients -----===//
//
// Reverse-mode differentiation of one block, op by op, in float32: first its values are computed
// from its inputs, then the gradient of a number is pulled back from its outputs. Compiled kernels
// do not keep the values inside a block, so they are computed again here, when the gradient of the
// block is needed.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_GRADIENT_TAPE_H
#define CTXC_GRADIENT_TAPE_H

#include "ctxc/Program/Adapter.h"
#include "ctxc/Program/ParallelFor.h"
#include "dialects/XF/XF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include <Eigen/Core>
#include <functional>

namespace ctxc::gradient {

/// A value for R tokens: a row of the value's elements for each.
using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The tokens of some sequences, one after the other.
struct TapeTokens {
  struct Sequence {
    int64_t first = 0, count = 0; ///< its rows; none: it stands for the tape's entries
    std::optional<size_t> after;  ///< the earlier sequence whose tokens it sees before its own
  };
  std::vector<int32_t> ids, positions;
  std::vector<Sequence> sequences;
};

class Tape {
public:
  /// All arguments must outlive the result. `layer` gives stored names and settings; null: the
  /// block's own names and defaults.
  Tape(Weights &weights, xf::LayerOp layer, const TapeTokens &tokens, const ParallelFor &threads)
      : weights(weights), layer(layer), tokens(tokens), threads(threads) {}

  /// Makes `linear` compute only the entries `entries` of its product (R × K, row after row): its
  /// result, and the results of elementwise ops that follow, then have width K.
  void choose(xf::LinearOp linear, llvm::ArrayRef<int32_t> entries) { chosen[linear] = entries; }
  /// Makes pullBack compute the gradient of a scale or a bias, by its stored name.
  void requestGradient(llvm::StringRef parameter) { wanted[parameter]; }

  /// What pullBack tells of a product with a stored matrix: the matrix' stored name, and row by row
  /// the vectors that were multiplied and the gradients of their products.
  using ProductCall = std::function<void(llvm::StringRef matrix, Eigen::Ref<const Rows> data,
                                         Eigen::Ref<const Rows> ofProduct)>;
  /// Makes pullBack tell of every product, but for those of which entries were chosen.
  void tellProducts(ProductCall call) { ofProducts = std::move(call); }

  /// Makes evaluate add to `reads`, for each row, how much attention's queries read of it: the
  /// weight of its key times the length of its value, of each query's sum over all rows, summed
  /// over the heads and over the queries of sequences that continue another one.
  void countReads(Eigen::VectorXd &reads) { ofReads = &reads; }
  Eigen::VectorXd *getReads() const { return ofReads; }

  /// What the block's attention sees in the place of a sequence without rows, at the positions from
  /// 0 on; must outlive the tape.
  void setEntries(const KeysAndValues &seen);
  const KeysAndValues *getEntries() const { return entries; }
  /// After pullBack: the gradients of the entries' keys and values, of the same shapes.
  const KeysAndValues &ofEntries() const { return entryGradients; }

  /// Computes the values of `block` from its arguments', row after row. Errors: an op without a
  /// gradient; a parameter that is not stored in float32. With `last`, it ends with that op.
  llvm::Error evaluate(xf::BlockOp block, llvm::ArrayRef<const std::vector<float> *> inputs,
                       mlir::Operation *last = nullptr);
  /// Computes only what pullBack needs: no product that is only an output.
  llvm::Error evaluateInside(xf::BlockOp block, llvm::ArrayRef<const std::vector<float> *> inputs) {
    needsOutputs = false;
    return evaluate(block, inputs);
  }
  const Rows &output(unsigned i) const;
  /// Pulls the gradients of the outputs back; null: zero.
  llvm::Error pullBack(llvm::ArrayRef<const Rows *> ofOutputs);
  /// After pullBack: the gradient of argument `i`; null: zero.
  const Rows *ofInput(unsigned i) const;
  /// After pullBack: the gradients of this block's requested parameters, summed over the tokens.
  const llvm::StringMap<Eigen::VectorXd> &ofParameters() const { return wanted; }

  // For the ops' implementations.
  int64_t count() const { return tokens.ids.size(); }
  const TapeTokens &getTokens() const { return tokens; }
  /// The value of a setting; null if there is none.
  mlir::Attribute settingOf(xf::SettingOp op);
  const ParallelFor &getThreads() const { return threads; }
  /// A value's rows; a parameter or a setting is the same in all of them.
  const Rows &rows(mlir::Value value) const { return values.find(value)->second; }
  void set(mlir::Value value, Rows rows) { values[value] = std::move(rows); }
  /// Whether a value itself is needed, and not only its gradient.
  bool isNeeded(mlir::Value value) const;
  /// Whether a value depends on the block's arguments.
  bool isActive(mlir::Value value) const { return active.contains(value); }
  /// The gradient of an op's result; zero if no later op reads it.
  const Rows &gradient(mlir::Value result);
  void add(mlir::Value operand, const Rows &rows);
  /// The numbers of a stored parameter. Errors: it is not one, or not in float32.
  llvm::Expected<const float *> parameter(mlir::Operation *reader, mlir::Value value) const;
  KeysAndValues &sumOfEntries() { return entryGradients; }
  /// The sum for the gradient of a parameter; null if it was not requested.
  Eigen::VectorXd *sumOf(mlir::Value parameter);
  /// Calls what tellProducts was given.
  void tellProduct(mlir::Value matrix, Eigen::Ref<const Rows> data,
                   Eigen::Ref<const Rows> ofProduct) const;
  /// If `value` is a product of which only some entries were computed, or follows one: these
  /// entries.
  llvm::ArrayRef<int32_t> chosenEntries(mlir::Value value) const;

private:
  std::string nameOf(xf::ParamOp param) const;

  Weights &weights;
  mutable xf::LayerOp layer;
  const TapeTokens &tokens;
  const ParallelFor &threads;
  mutable xf::BlockOp block; // its accessors are not const
  Eigen::VectorXd *ofReads = nullptr;
  const KeysAndValues *entries = nullptr;
  KeysAndValues entryGradients;
  bool needsOutputs = true;
  llvm::DenseMap<mlir::Value, Rows> values, gradients;
  llvm::DenseSet<mlir::Value> active;
  llvm::DenseMap<mlir::Operation *, llvm::ArrayRef<int32_t>> chosen;
  llvm::StringMap<Eigen::VectorXd> wanted;
  ProductCall ofProducts;
};

/// body(begin, end) over ranges of `count` rows, in the tape's threads.
template <typename Body> void overRows(const Tape &tape, int64_t count, Body body) {
  tape.getThreads()(count, [&](int64_t begin, int64_t end) { body(begin, end); });
}

} // namespace ctxc::gradient

#include "ctxc/Gradient/GradientInterface.h.inc"

#endif // CTXC_GRADIENT_TAPE_H
