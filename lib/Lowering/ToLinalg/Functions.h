#ifndef CTXC_LIB_LOWERING_TOLINALG_FUNCTIONS_H
#define CTXC_LIB_LOWERING_TOLINALG_FUNCTIONS_H

namespace mlir {
class MLIRContext;
}

namespace ctxc {
/// The lowerings of functions that are applied entry by entry.
void registerFunctionLowerings(mlir::MLIRContext &context);
} // namespace ctxc

#endif // CTXC_LIB_LOWERING_TOLINALG_FUNCTIONS_H
