// Integer products of many vectors (IntegerContraction.h): panels of W, with rows in lanes.
#ifndef CTXC_LIB_LOWERING_CPU_INTEGERPANEL_H
#define CTXC_LIB_LOWERING_CPU_INTEGERPANEL_H

#include "lib/Lowering/CPU/ByteBlock.h"
#include "lib/Lowering/CPU/QuantizedRows.h"
#include "lib/Lowering/CPU/RowContraction.h"

namespace ctxc {

/// Emits rows `begin` to `end` of W for many vectors.
void emitIntegerMany(mlir::OpBuilder &b, mlir::Location loc, const Contraction &contraction,
                     const RowOperands &operands, mlir::Value vectors, mlir::Value begin,
                     mlir::Value end);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_INTEGERPANEL_H
