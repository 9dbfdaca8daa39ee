// Questions about values of a program that do not depend on what is made of them.
#ifndef CTXC_IMPORT_GRAPHVALUES_H
#define CTXC_IMPORT_GRAPHVALUES_H

#include "dialects/Graph/Graph.h"
#include "dialects/XF/XF.h"
#include <functional>
#include <vector>

namespace ctxc::pt2 {

/// The numbers of a stored tensor that no patch changes; none where they are not known.
using Numbers = std::function<std::optional<std::vector<double>>(graph::StoredOp)>;
/// Those that stand in the program.
std::optional<std::vector<double>> writtenNumbers(graph::StoredOp stored);

inline mlir::Type elementOf(mlir::Value value) {
  return mlir::cast<graph::SymbolicType>(value.getType()).getElementType();
}

inline llvm::ArrayRef<mlir::Attribute> sizesOf(mlir::Value value) {
  return mlir::cast<graph::SymbolicType>(value.getType()).getSizes();
}

/// Whether `setting` is a matrix that a value is multiplied with.
bool isMatrix(xf::SettingOp setting);

/// The type with the fewest digits in which `program` computes: float32, or a narrower one.
mlir::FloatType arithmeticOf(graph::ProgramOp program);

/// The call of op `base` that makes `value`; null where another op does.
graph::CallOp callOf(mlir::Value value, llvm::StringRef base);

/// `value` before ops that keep its numbers in their places: copies, also to another floating type.
mlir::Value beforeCopies(mlir::Value value);

/// The last op that computes `value`, and does not only move numbers; null where none does.
graph::CallOp computedBy(mlir::Value value);

/// The argument `name` as a number, also where it is an integer.
std::optional<double> numberOf(graph::CallOp call, llvm::StringRef name);
std::optional<int64_t> integerOf(graph::CallOp call, llvm::StringRef name);

/// The two sides of a call of `self` and `other`: tensors, or a number on the right.
struct Sides {
  mlir::Value left, right; ///< right is null where it is a number
  std::optional<double> number;
};
/// None where the call has other arguments beside them that change its meaning (alpha, rounding).
std::optional<Sides> sidesOf(graph::CallOp call);

/// A call with a tensor and a number, whichever is first: the tensor; null where it has none.
mlir::Value besideNumber(graph::CallOp call, double number);

/// Whether the call goes along the last axis alone, and keeps it as one of one entry.
bool keepsLast(graph::CallOp call);

/// Of transpose, permute and t: where each axis of the result comes from; empty where it is not
/// known.
llvm::SmallVector<int64_t> orderOf(graph::CallOp call);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_GRAPHVALUES_H
