// How MLIR's diagnostics reach the user: `file:line:col: error: message`, or, in a checkpoint,
// `config.json: module: error: message`. What has no place is of the model as a whole.
#include "Session.h"
#include "ctxc/Report/Place.h"

using namespace ctxc;
using namespace ctxc::driver;

static llvm::StringRef severityName(mlir::DiagnosticSeverity severity) {
  switch (severity) {
  case mlir::DiagnosticSeverity::Error:
    return "error: ";
  case mlir::DiagnosticSeverity::Warning:
    return "warning: ";
  case mlir::DiagnosticSeverity::Note:
    return "note: ";
  case mlir::DiagnosticSeverity::Remark:
    return "remark: ";
  }
  llvm_unreachable("a severity of no known kind");
}

static void print(mlir::Diagnostic &diagnostic, llvm::StringRef otherwise) {
  std::string place = text(placeOf(diagnostic.getLocation()));
  llvm::errs() << (place.empty() ? otherwise : llvm::StringRef(place)) << ": "
               << severityName(diagnostic.getSeverity()) << diagnostic.str() << "\n";
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    print(note, otherwise);
}

void driver::printDiagnostics(mlir::MLIRContext &context, llvm::StringRef model) {
  context.getDiagEngine().registerHandler([model = model.str()](mlir::Diagnostic &diagnostic) {
    print(diagnostic, model);
    return mlir::success();
  });
}
