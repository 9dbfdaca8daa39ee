//===- FunctionRun.h - one run of a graph.function -------------------------===//
//
// A value that does not depend on what the model reads is one of the tokens' positions: its entry
// for a token is the one at the token's position, whatever other tokens are in the run. A call that
// makes such a value, as a slice of a table or a running sum of ones, counts from the first
// position on. So these values are computed for all positions up to the last one of the run, and of
// their entries those at the run's positions are taken where they meet values of the run's tokens:
//
//   table[:T]      computed for positions 0 … 7     entry 7      of a run of the token at 7 alone
//   x · table[:T]  computed for the token at 7
//
// A run of all positions needs none of this.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LIB_REFERENCE_GRAPH_FUNCTIONRUN_H
#define CTXC_LIB_REFERENCE_GRAPH_FUNCTIONRUN_H

#include "Calls.h"
#include "ctxc/Reference/RunFunction.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace ctxc::reference {

class FunctionRun {
public:
  FunctionRun(graph::FunctionOp function, llvm::ArrayRef<int64_t> positions);

  /// The result's rows, one for each token; one row where no axis is the tokens'.
  llvm::Expected<Matrix> run(llvm::ArrayRef<Matrix> operands);
  /// An error where PyTorch may give another result as well.
  llvm::Error checkSettled() const;

private:
  using Arrays = llvm::DenseMap<mlir::Value, Array>;

  void findFixed();
  llvm::Error computeFixed();
  std::optional<Array> atPositions(mlir::Value value);
  bool countsTokens(mlir::Operation *op);
  Array operandOf(mlir::Operation *op, mlir::Value value, Arrays &in);
  std::optional<Shape> shapeOf(mlir::Value value) const;
  llvm::Expected<Array> fromRows(const Matrix &rows, mlir::Value value, int64_t axis);
  llvm::Error step(mlir::Operation &op, Arrays &values);
  llvm::Error call(graph::CallOp op, Arrays &values);
  llvm::Error set(mlir::Value value, Array array, Arrays &values);

  graph::FunctionOp function;
  llvm::SmallVector<int64_t> positions;
  Tokens tokens;
  Arrays values;                           ///< as if the run's tokens were all there are
  llvm::DenseSet<mlir::Operation *> fixed; ///< ops that read positions and parameters alone
  Arrays ofPositions;                      ///< what they make, for all positions
  Arrays taken;                            ///< of these the entries at the run's
  graph::CallOp open;                      ///< the first call that left its result open, and why
  std::string why;
};

/// The number of tokens that torch.export has fixed; 0 where the function takes any.
int64_t fixedTokens(graph::FunctionOp function);
/// That there is another number of them.
llvm::Error wrongCount(graph::FunctionOp function, int64_t count, const llvm::Twine &why);

} // namespace ctxc::reference

#endif // CTXC_LIB_REFERENCE_GRAPH_FUNCTIONRUN_H
