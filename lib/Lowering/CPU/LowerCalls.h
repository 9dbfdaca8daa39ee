// Calls of the C functions that kernels are linked with (dialects/Kernel/SupportFunctions.h).
#ifndef CTXC_LIB_LOWERING_CPU_LOWERCALLS_H
#define CTXC_LIB_LOWERING_CPU_LOWERCALLS_H

#include "dialects/Kernel/Kernel.h"

namespace ctxc {

/// Calls the function, which is declared in the module of the insertion point if it is not yet.
/// Memory is passed by its address. Returns the address that the function returns, or null.
mlir::Value callSupport(mlir::OpBuilder &b, mlir::Location loc, kernel::SupportFunction function,
                        mlir::ValueRange operands);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_LOWERCALLS_H
