//===- Names.h - names of the values that are made for a patch ------------===//
#ifndef CTXC_LIB_TRANSFORMS_NAMES_H
#define CTXC_LIB_TRANSFORMS_NAMES_H

#include "dialects/Patch/Patch.h"
#include "mlir/IR/Builders.h"

namespace ctxc {

/// A named location with `suffix`; others as they are. A block printed with names
/// then reads like the equations:
///
///   y_C      the full run's y              y_T      the target of y
///   y_0      y without the patch           y_uv     the patch of y's matrix
///   y_delta  the patch of y's vector       m_patched   m + Δm
inline mlir::Location renamed(mlir::Location loc, llvm::StringRef suffix) {
  auto name = llvm::dyn_cast<mlir::NameLoc>(loc);
  if (!name)
    return loc;
  auto text = mlir::StringAttr::get(loc.getContext(), name.getName().strref() + suffix);
  return mlir::NameLoc::get(text, name.getChildLoc());
}

/// p + Δp
inline mlir::Value applyDelta(mlir::OpBuilder &b, mlir::Value parameter, mlir::Value delta) {
  return patch::ApplyDeltaOp::create(b, renamed(parameter.getLoc(), "_patched"), delta.getType(),
                                     parameter, delta);
}

} // namespace ctxc

#endif // CTXC_LIB_TRANSFORMS_NAMES_H
