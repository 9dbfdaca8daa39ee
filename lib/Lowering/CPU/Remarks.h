// Remarks about ops that do not get their fast form; MLIR's remark engine calls them missed
// optimisations.
#ifndef CTXC_LIB_LOWERING_CPU_REMARKS_H
#define CTXC_LIB_LOWERING_CPU_REMARKS_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Remarks.h"

namespace ctxc {

/// Emits a remark at `op`, if remarks are enabled, that the op does not get the fast form `form`,
/// and why. Forms are contraction, reduction and rows; on a GPU contraction, vectors and
/// tensor-cores.
inline void missed(mlir::Operation *op, llvm::StringRef form, llvm::StringRef why) {
  mlir::remark::missed(op->getLoc(), mlir::remark::RemarkOpts::name(form).category("ctxc"))
      << mlir::remark::reason("{0}", why.str());
}

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_REMARKS_H
