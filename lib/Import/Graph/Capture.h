//===- Capture.h - parts of a program as functions, by which ops are run ---===//
#ifndef CTXC_IMPORT_CAPTURE_H
#define CTXC_IMPORT_CAPTURE_H

#include "ctxc/Analysis/TokenAxes.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace ctxc::pt2 {

/// The stored tensor that `value` is, of a type that xf's parameters have; null where it is none.
graph::StoredOp parameterOf(mlir::Value value);

class Capture {
public:
  /// Writes functions into `module`; those of the same text are one.
  Capture(mlir::ModuleOp module, graph::ProgramOp program, const TokenAxes &axes);

  struct Function {
    mlir::FlatSymbolRefAttr name;
    /// What it is a function of: the values given, then stored tensors.
    llvm::SmallVector<mlir::Value> arguments;
  };
  /// The function that computes `result` from `arguments`, named after the module at `path`. None
  /// where it needs numbers that the file does not have.
  std::optional<Function> capture(mlir::Value result, llvm::ArrayRef<mlir::Value> arguments,
                                  llvm::StringRef path);

  /// The function of that name.
  graph::FunctionOp functionOf(mlir::FlatSymbolRefAttr name);

private:
  bool collect(mlir::Value result, Function &function);
  void fill(graph::FunctionOp op, mlir::Value result, llvm::ArrayRef<mlir::Value> arguments);
  int64_t axisOf(mlir::Value value) const;

  mlir::ModuleOp module;
  graph::ProgramOp program;
  const TokenAxes &axes;
  bool counted;
  llvm::DenseSet<mlir::Operation *> needed;       ///< ops of the function that is being written
  llvm::StringMap<mlir::FlatSymbolRefAttr> known; ///< by text
  llvm::StringMap<unsigned> names;
};

/// Erases the functions of ops that were erased.
void eraseUnusedFunctions(mlir::ModuleOp module);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_CAPTURE_H
