//===- Diagnostic.h - messages about a model, passed to the caller --------===//
#ifndef CTXC_SESSION_DIAGNOSTIC_H
#define CTXC_SESSION_DIAGNOSTIC_H

#include "ctxc/Report/Place.h"
#include "mlir/IR/Diagnostics.h"
#include <functional>
#include <string>
#include <vector>

namespace ctxc {

/// A message about a model, with its place. The library prints no messages.
struct ModelDiagnostic {
  /// Where the problem is: a line of an .mlir file, or a module of a checkpoint; the model's name
  /// if the message is about the whole model. Unknown for the importer's warnings, whose messages
  /// name a file.
  Place place;
  mlir::DiagnosticSeverity severity = mlir::DiagnosticSeverity::Error;
  std::string message;
  /// The line of the .mlir file at `place`, while that file is read; otherwise empty.
  std::string sourceLine;
  std::vector<ModelDiagnostic> notes;
};

/// Takes diagnostics in order, as they occur, in the thread that called the model.
using DiagnosticHandler = std::function<void(const ModelDiagnostic &)>;

/// An MLIR diagnostic with its notes, before which stand those of the calls that lead to it. If its
/// location is unknown, `otherwise` is used as the file.
ModelDiagnostic toModelDiagnostic(mlir::Diagnostic &diagnostic, llvm::StringRef otherwise);

/// "error", "warning", "note" or "remark".
llvm::StringRef stringify(mlir::DiagnosticSeverity severity);

/// "block.mlir:3:8: error: found …", then the source line, if known, with a caret, then the module
/// of a program, then the notes; each line ends in a newline.
std::string text(const ModelDiagnostic &diagnostic);

} // namespace ctxc

#endif // CTXC_SESSION_DIAGNOSTIC_H
