// Blocks that the float64 reference can run, in the place of blocks that it cannot.
#ifndef CTXC_LIB_EVIDENCE_STANDIN_H
#define CTXC_LIB_EVIDENCE_STANDIN_H

#include "ctxc/Analysis/Sites.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace ctxc {

/// `block` in a module of its own: what the layer freezes and sets as part of its text, and each
/// stored tensor under one name.
mlir::OwningOpRef<mlir::ModuleOp> standAlone(xf::BlockOp block, const Bindings &bindings,
                                             xf::LayerOp layer);

/// Whether a bank has a member that another parameter of the block is, too: `standAlone` cannot say
/// that.
bool sharesBankMembers(xf::BlockOp block, xf::LayerOp layer);

/// Puts an attention over all that it reads in the place of each contextual op without a meaning in
/// the reference: its result then varies with its token and with the tokens before, as a contextual
/// op's does in general. What cannot be replaced is left. The reference's models must be
/// registered.
void replaceUnknownContext(xf::BlockOp block);

} // namespace ctxc

#endif // CTXC_LIB_EVIDENCE_STANDIN_H
