//===- XF.h - the xf dialect: transformer architectures -------------------===//
#ifndef CTXC_DIALECTS_XF_XF_H
#define CTXC_DIALECTS_XF_XF_H

#include "dialects/XF/Facts.h"
#include "dialects/XF/Reach.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace ctxc::xf {
class SettingOp;

/// Whether `type` is a ranked tensor of one or more dimensions, each fixed and not 0, whose entries
/// can be counted.
bool isSized(mlir::Type type);
/// Whether it has a size, and `rank` dimensions where that is not 0. Types are inferred of operands
/// that no verifier has seen. Emits "'op' op is given …" otherwise.
struct Shaped {
  mlir::Type type;
  int64_t rank = 0;
};
mlir::LogicalResult checkShapes(std::optional<mlir::Location> loc, llvm::StringRef op,
                                llvm::ArrayRef<Shaped> operands);
/// Fails, with an error at `op`, where `name` cannot be shown as it is: it must be UTF-8 without
/// control characters.
mlir::LogicalResult verifyName(mlir::Operation *op, llvm::StringRef name);

/// A value of ones, a setting of a name that its shape determines.
mlir::Value createOnes(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<int64_t> shape);

/// Default methods of the interfaces. Whether each vector of the data has a change of its own:
/// a matrix has one vector of data, a vector parameter the data's size.
bool coversWholeOutput(mlir::Operation *assignable);
/// All operands but `index`, without a zero entry.
llvm::SmallVector<LinkCondition> nonzeroFactors(mlir::Operation *solvable, unsigned index);
} // namespace ctxc::xf

#include "dialects/XF/XFDialect.h.inc"
#include "dialects/XF/XFEnums.h.inc"
#include "dialects/XF/XFInterfaces.h.inc"
#include "dialects/XF/XFTypeEnums.h.inc"

namespace ctxc::xf {
/// An activation's value at x.
double activate(ActivationKind kind, double x);
} // namespace ctxc::xf

#define GET_ATTRDEF_CLASSES
#include "dialects/XF/XFAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/XF/XFTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/XF/XFOps.h.inc"

#endif // CTXC_DIALECTS_XF_XF_H
