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
class BlockOp;
class ParamOp;
class SettingOp;

/// Whether `type` is a ranked tensor of one or more dimensions, each fixed and not 0, with at most
/// 2^44 entries in all.
bool isSized(mlir::Type type);
/// Checks that each type has a size, and `rank` dimensions if `rank` is not 0; otherwise emits
/// "'op' op is given …". Type inference needs this, because no verifier has seen its operands.
struct Shaped {
  mlir::Type type;
  int64_t rank = 0;
};
mlir::LogicalResult checkShapes(std::optional<mlir::Location> loc, llvm::StringRef op,
                                llvm::ArrayRef<Shaped> operands);
/// Fails, with an error at `op`, if `name` is not printable: it must be UTF-8 without control
/// characters.
mlir::LogicalResult verifyName(mlir::Operation *op, llvm::StringRef name);

/// Whether `parameter` is a stored tensor of which verdicts take almost all numbers, trained or
/// frozen, and no part of the program.
bool isGeneric(mlir::Value parameter);
/// The first constant of `block` whose numbers are not at hand and matter; null if there is none.
/// What an op of no known meaning reads of the context may be anything.
ParamOp findUnknownConstant(BlockOp block);

/// A value of ones: a setting, whose name follows from its shape.
mlir::Value createOnes(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<int64_t> shape);

/// The default methods of the interfaces. The first tells whether a change of the parameter can
/// bring the result to every target: for a matrix, the data must be one vector; for a vector
/// parameter, the data must have its size.
bool coversWholeOutput(mlir::Operation *assignable);
/// The condition that no operand except `index` has a zero entry.
llvm::SmallVector<LinkCondition> nonzeroFactors(mlir::Operation *solvable, unsigned index);
} // namespace ctxc::xf

#include "dialects/XF/XFDialect.h.inc"
#include "dialects/XF/XFEnums.h.inc"
#include "dialects/XF/XFInterfaces.h.inc"
#include "dialects/XF/XFTypeEnums.h.inc"

namespace ctxc::xf {
/// The value of an activation at x.
/// The vector u where `op` is `Wᵀ W u`, of one stored matrix: ⟨u, Wᵀ W u⟩ = ‖W u‖² ≥ 0, whatever
/// the matrix. Null otherwise.
mlir::Value findGramVector(mlir::Operation *op);
double activate(ActivationKind kind, double x);
} // namespace ctxc::xf

#define GET_ATTRDEF_CLASSES
#include "dialects/XF/XFAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/XF/XFTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/XF/XFOps.h.inc"

#endif // CTXC_DIALECTS_XF_XF_H
