#ifndef CTXC_LIB_LOWERING_RUNPIPELINE_H
#define CTXC_LIB_LOWERING_RUNPIPELINE_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace ctxc {

/// Runs the passes that `build` adds on a module, and verifies what they make of it. It is verified
/// after each pass only where CMake's CTXC_VERIFY_EACH says so: that is a third of a kernel's way
/// to the LLVM dialect. ctxc-opt, which the tests of the passes run, always does it.
mlir::LogicalResult runPipeline(mlir::ModuleOp module,
                                llvm::function_ref<void(mlir::OpPassManager &)> build);

} // namespace ctxc

#endif
