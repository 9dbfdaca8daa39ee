//===- PatchNames.h - names of the values that are made for a patch -------===//
#ifndef CTXC_DIALECTS_PATCH_PATCHNAMES_H
#define CTXC_DIALECTS_PATCH_PATCHNAMES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

namespace ctxc {

/// A named location with `suffix` appended; other locations are returned unchanged. A block printed
/// with names then reads like the equations:
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

} // namespace ctxc

#endif // CTXC_DIALECTS_PATCH_PATCHNAMES_H
