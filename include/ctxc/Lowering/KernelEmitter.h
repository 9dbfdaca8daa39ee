//===- KernelEmitter.h - how one op becomes linalg ------------------------===//
//
// The state of lowering one block: the tensor over rows that each value of the block has become,
// and the shapes of linalg ops that kernels consist of. Whoever implements
// LinalgLoweringOpInterface reads operands with lookup or data, builds ops, and binds the result;
// for most ops this is one call of elementwise.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LOWERING_KERNELEMITTER_H
#define CTXC_LOWERING_KERNELEMITTER_H

#include "ctxc/Lowering/Kernel.h"
#include "dialects/Patch/Patch.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace ctxc {

class KernelEmitter {
public:
  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

  KernelEmitter(xf::BlockOp block, mlir::ModuleOp module, llvm::StringRef name, StateLayout layout);

  /// Lowers the whole block.
  mlir::FailureOr<mlir::func::FuncOp> run();

  mlir::OpBuilder builder;
  mlir::Location loc;

  /// The tensor of a block value: S × shape for a value that each token has, or just the shape for
  /// a parameter or a setting.
  mlir::Value lookup(mlir::Value value) const { return values.lookup(value); }
  /// The value as S × shape in any case: a parameter or a setting that is used as a value is the
  /// same in every row, widened to float32.
  mlir::Value data(mlir::Value value);
  void bind(mlir::Value value, mlir::Value tensor) { values[value] = tensor; }
  /// Whether the tensor of the block's value has rows.
  bool hasRows(mlir::Value value) const;

  /// S, and how many tokens of a run are visible.
  mlir::Value rows() const { return rowCount; }
  mlir::Value visible(std::optional<xf::Run> run);

  // Arguments -------------------------------------------------------------
  mlir::Value positions() const { return positionTensor; }
  mlir::Value tokens() const { return tokenTensor; }
  /// The tensor of a parameter. The tensor of a quantised parameter has type float32, but only a
  /// contraction, which decodes it, and callers of `quantized` may read it.
  mlir::Value param(llvm::StringRef name);
  /// The op that stands for a quantised tensor, whose operand is the memory that ctxc_decode reads;
  /// null for any other value.
  static kernel::QuantizedOp quantized(mlir::Value tensorOrMemref);
  /// A float32 matrix that only a contraction may read, and whose contents `memory` stores in the
  /// type `stored`.
  mlir::Value quantizedMatrix(mlir::Value memory, mlir::RankedTensorType stored);
  /// Whether a parameter is passed to the kernel as a table of the addresses of its slices.
  static bool isBank(xf::ParamOp param);
  mlir::Value setting(llvm::StringRef name);
  /// The state tensors of the contextual op `op`, and their memrefs.
  llvm::SmallVector<mlir::Value> states(mlir::Operation *op);
  /// The tensor of a state's memref.
  mlir::Value readState(mlir::Value memref, bool writable = false);
  /// Replaces the last S rows of a state by `fresh`, and returns all its rows.
  mlir::Value extendState(mlir::Value memref, mlir::Value fresh, mlir::Value visible);
  /// What the recurrence `op` carries to the first row and on from the last: memrefs. `after` is
  /// null in the reduced run, where each row is a sequence of its own.
  mlir::Value before(mlir::Operation *op);
  mlir::Value after(mlir::Operation *op);
  mlir::Value slots(std::optional<xf::Run> run);
  mlir::Value argument(KernelArgKind kind, llvm::StringRef name, int64_t index);
  mlir::Value ofRun(KernelArgKind kind, int64_t run);

  // Building ----------------------------------------------------------------
  mlir::Value constant(double x);
  mlir::Value index(int64_t i);
  /// An empty tensor of S × `factor` rows of `shape`; of float32, unless `element` is given.
  mlir::Value emptyRows(llvm::ArrayRef<int64_t> shape, int64_t factor = 1, mlir::Type element = {});
  mlir::Value filled(mlir::Value empty, double x);
  /// Elementwise over S × shape. An operand with fewer dimensions is indexed by the last ones; one
  /// without rows is the same in every row; one with a single element is the same everywhere.
  mlir::Value elementwise(llvm::ArrayRef<int64_t> shape, mlir::ValueRange operands,
                          llvm::ArrayRef<bool> operandHasRows, Body body);
  /// Elementwise over block values.
  mlir::Value elementwise(mlir::Value result, mlir::ValueRange blockOperands, Body body);
  /// Reduces the last dimension of S × shape by `body(accumulator, element)`.
  mlir::Value reduceLast(mlir::Value tensor, double init, Body body);
  /// Sum over the last dimension of the product of two tensors of one shape.
  mlir::Value dotLast(mlir::Value a, mlir::Value b);
  /// Elementwise over `tensor` and over `reduced`, whose shapes lack the last dimension of
  /// `tensor`.
  mlir::Value mapWithReduced(mlir::Value tensor, mlir::ValueRange reduced, Body body);
  /// W x for each row, where x is rows × (…, in); W as it is stored.
  mlir::Value linear(mlir::Value weight, mlir::Value x, bool transposed);
  /// The matrix of each selected expert times x: rows × (slots, in), or rows × (in) for all slots.
  /// There are `factor` × S rows. An error at `op` where the bank is not a parameter.
  mlir::FailureOr<mlir::Value> expertLinear(mlir::Operation *op, mlir::Value bank,
                                            mlir::Value selected, mlir::Value x, bool transposed,
                                            int64_t factor = 1);
  /// A linalg.generic.
  mlir::Value generic(mlir::Value init, mlir::ValueRange ins, llvm::ArrayRef<mlir::AffineMap> maps,
                      llvm::ArrayRef<mlir::utils::IteratorType> iterators, Body body);
  /// `count × S` rows, from row `from × S` on.
  mlir::Value takeRows(mlir::Value tensor, int64_t from, llvm::ArrayRef<int64_t> shape);
  mlir::Value putRows(mlir::Value into, mlir::Value tensor, int64_t from);
  /// Widens x to float32, inside the body of an op.
  static mlir::Value widen(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x);
  /// The memory of a tensor, for ops that work on memory.
  mlir::Value read(mlir::Value tensor);
  /// Writes a tensor to an argument's memory.
  void store(mlir::Value tensor, mlir::Value memref);

  xf::BlockOp block;
  mlir::func::FuncOp kernel;

private:
  void addArguments();
  void addStates();
  void addPatchParts();
  void addArgument(KernelArgKind kind, mlir::MemRefType type, llvm::StringRef name = "",
                   int64_t index = 0, int64_t run = 0);

  /// A state's memory, its groups where they lie.
  mlir::Value withGroups(mlir::Value argument, const KernelArg &state);

  mlir::ModuleOp module;
  std::string name;
  StateLayout layout;
  int64_t nextRead = 0; ///< numbers the reads
  llvm::DenseMap<mlir::Value, mlir::Value> values;
  llvm::SmallVector<KernelArg> args;
  llvm::DenseMap<mlir::Operation *, int64_t> firstState;
  mlir::Value rowCount, positionTensor, tokenTensor;
};

/// Writes the predicted replay error of a dual block's output.
void emitReplayPrediction(KernelEmitter &emitter);

/// 0 for the run or the full run, 1 for the reduced run.
int64_t runIndex(std::optional<xf::Run> run);

} // namespace ctxc

#include "ctxc/Lowering/LoweringInterface.h.inc"

#endif // CTXC_LOWERING_KERNELEMITTER_H
