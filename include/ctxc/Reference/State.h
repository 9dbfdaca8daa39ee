//===- State.h - what contextual ops remember of earlier tokens -----------===//
//
// For each tensor that an op remembers, one entry for each token, so that a step can be
// undone by dropping its tokens' entries: attention keeps its keys and values, a
// convolution its inputs, a scan its results.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_REFERENCE_STATE_H
#define CTXC_REFERENCE_STATE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <Eigen/Core>
#include <deque>
#include <vector>

namespace ctxc::reference {

/// A value for S tokens: S matrix rows of the value's elements, in row-major order.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The state of one contextual op in one run.
class OpState {
public:
  /// How many tokens it holds.
  int64_t size() const { return positions.size(); }

  /// The absolute position of each token.
  llvm::ArrayRef<int64_t> getPositions() const { return positions; }

  /// The numbers that tensor `index` has for token `token`.
  llvm::ArrayRef<double> row(unsigned index, int64_t token) const;

  /// Adds a step's tokens: their positions, and one matrix of S rows for each
  /// remembered tensor. A tensor keeps its number and width from step to step.
  void append(llvm::ArrayRef<int64_t> stepPositions, llvm::ArrayRef<const Matrix *> step);

  /// Forgets all but the first `tokens`.
  void truncate(int64_t tokens);

private:
  struct Tensor {
    int64_t width = 0;
    std::vector<double> rows;
  };
  std::vector<int64_t> positions;
  llvm::SmallVector<Tensor, 2> tensors;
};

/// The state of one block's contextual ops in one run, by their order in the block: the n-th
/// contextual op of a run is the same one in a block, its dual and its applied block.
class BlockState {
public:
  OpState &op(unsigned ordinal);
  void truncate(int64_t tokens);

private:
  std::deque<OpState> ops; // references to its members survive growth
};

} // namespace ctxc::reference

#endif // CTXC_REFERENCE_STATE_H
