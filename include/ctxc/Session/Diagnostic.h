//===- Diagnostic.h - what a model's work has to say, handed to its caller ---===//
#ifndef CTXC_SESSION_DIAGNOSTIC_H
#define CTXC_SESSION_DIAGNOSTIC_H

#include "ctxc/Report/Place.h"
#include "mlir/IR/Diagnostics.h"
#include <functional>
#include <string>
#include <vector>

namespace ctxc {

/// A message about a model, at its place. The library prints none of them.
struct ModelDiagnostic {
  /// Where it is: a line of an .mlir file, or a module of a checkpoint; the model's name where it
  /// is about the model as a whole. Unknown where the importer warns: its message names a file.
  Place place;
  mlir::DiagnosticSeverity severity = mlir::DiagnosticSeverity::Error;
  std::string message;
  /// The line of the .mlir file at `place`, while that file is read; else empty.
  std::string sourceLine;
  std::vector<ModelDiagnostic> notes;
};

/// Takes diagnostics in order, while the work goes on, in the thread that called the model.
using DiagnosticHandler = std::function<void(const ModelDiagnostic &)>;

/// An MLIR diagnostic with its notes. One without a place is of `otherwise` as a whole.
ModelDiagnostic toModelDiagnostic(mlir::Diagnostic &diagnostic, llvm::StringRef otherwise);

/// "error", "warning", "note" or "remark".
llvm::StringRef stringify(mlir::DiagnosticSeverity severity);

/// "block.mlir:3:8: error: found …", then the source line with a caret where there is one, then the
/// notes; each line ends in a newline.
std::string text(const ModelDiagnostic &diagnostic);

} // namespace ctxc

#endif // CTXC_SESSION_DIAGNOSTIC_H
