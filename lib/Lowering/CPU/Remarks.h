// What does not take its fast form says so: a remark at its op, of those that MLIR calls missed.
#ifndef CTXC_LIB_LOWERING_CPU_REMARKS_H
#define CTXC_LIB_LOWERING_CPU_REMARKS_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Remarks.h"

namespace ctxc {

/// Says at the op, where somebody asked for remarks, that it goes without `form` (contraction,
/// attention, reduction or rows; on a GPU contraction, vectors or tensor-cores), and why.
inline void missed(mlir::Operation *op, llvm::StringRef form, llvm::StringRef why) {
  mlir::remark::missed(op->getLoc(), mlir::remark::RemarkOpts::name(form).category("ctxc"))
      << mlir::remark::reason("{0}", why.str());
}

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_REMARKS_H
