//===- ParseText.h - a module from its text --------------------------------===//
#ifndef CTXC_IMPORT_PARSETEXT_H
#define CTXC_IMPORT_PARSETEXT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/SourceMgr.h"

namespace ctxc {

/// The module that `sources` holds, not verified yet, with the names of its values as locations;
/// null after diagnostics.
mlir::OwningOpRef<mlir::ModuleOp> parseText(const llvm::SourceMgr &sources, llvm::StringRef path,
                                            mlir::MLIRContext &context);

} // namespace ctxc

#endif // CTXC_IMPORT_PARSETEXT_H
