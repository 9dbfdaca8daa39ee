// How MLIR's diagnostics reach the user: `file:line:col: error: message`, the
// names that values were given (locations of the importer) left out.
#include "Session.h"
#include "mlir/IR/Location.h"

using namespace ctxc;
using namespace ctxc::driver;

/// The first place in a file within `location`, and nothing where there is none.
static std::string placeOf(mlir::Location location) {
  std::string place;
  location->walk([&](mlir::Location inner) {
    auto file = llvm::dyn_cast<mlir::FileLineColLoc>(inner);
    if (!file)
      return mlir::WalkResult::advance();
    llvm::raw_string_ostream(place) << file.getFilename().getValue() << ":" << file.getLine() << ":"
                                    << file.getColumn() << ": ";
    return mlir::WalkResult::interrupt();
  });
  if (!place.empty())
    return place;
  if (auto name = location->findInstanceOf<mlir::NameLoc>())
    return name.getName().str() + ": ";
  return "";
}

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

static void print(mlir::Diagnostic &diagnostic) {
  llvm::errs() << placeOf(diagnostic.getLocation()) << severityName(diagnostic.getSeverity())
               << diagnostic.str() << "\n";
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    print(note);
}

void driver::printDiagnostics(mlir::MLIRContext &context) {
  context.getDiagEngine().registerHandler([](mlir::Diagnostic &diagnostic) {
    print(diagnostic);
    return mlir::success();
  });
}
