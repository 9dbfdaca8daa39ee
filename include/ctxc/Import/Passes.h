//===- Passes.h - passes on exported PyTorch programs ---------------------===//
#ifndef CTXC_IMPORT_PASSES_H
#define CTXC_IMPORT_PASSES_H

#include "dialects/Graph/Graph.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ctxc {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ctxc/Import/Passes.h.inc"

} // namespace ctxc

#endif // CTXC_IMPORT_PASSES_H
