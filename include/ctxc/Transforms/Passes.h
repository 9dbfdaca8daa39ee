//===- Passes.h - the transforms as passes, for ctxc-opt ------------------===//
//
// Each pass calls the planner where necessary, and a function of BuildPatch.h.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TRANSFORMS_PASSES_H
#define CTXC_TRANSFORMS_PASSES_H

#include "dialects/Patch/Patch.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ctxc {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ctxc/Transforms/Passes.h.inc"

} // namespace ctxc

#endif // CTXC_TRANSFORMS_PASSES_H
