#include "ctxc/Session/Diagnostic.h"
#include "ctxc/Support/ForeignText.h"
#include "llvm/Support/raw_ostream.h"

using namespace ctxc;
using llvm::StringRef;

ModelDiagnostic ctxc::toModelDiagnostic(mlir::Diagnostic &from, llvm::StringRef otherwise) {
  constexpr auto isNote = mlir::DiagnosticSeverity::Note;
  ModelDiagnostic to{placeOf(from.getLocation()), from.getSeverity(), from.str(), "", {}};
  if (!to.place.isKnown())
    to.place.file = otherwise.str();
  if (to.severity != isNote)
    for (Place &caller : callersOf(from.getLocation()))
      to.notes.push_back({std::move(caller), isNote, "called here", "", {}});
  for (mlir::Diagnostic &note : from.getNotes())
    to.notes.push_back(toModelDiagnostic(note, otherwise));
  return to;
}

llvm::StringRef ctxc::stringify(mlir::DiagnosticSeverity severity) {
  switch (severity) {
  case mlir::DiagnosticSeverity::Error:
    return "error";
  case mlir::DiagnosticSeverity::Warning:
    return "warning";
  case mlir::DiagnosticSeverity::Note:
    return "note";
  case mlir::DiagnosticSeverity::Remark:
    return "remark";
  }
  llvm_unreachable("a severity of no known kind");
}

static void print(const ModelDiagnostic &diagnostic, llvm::raw_ostream &os) {
  std::string place = text(diagnostic.place);
  if (!place.empty())
    os << printableLine(place) << ": ";
  // MLIR shows an op as it prints it, in lines, and escapes the names there itself.
  StringRef message = diagnostic.message;
  bool isOp = message.starts_with("see current operation: ");
  os << stringify(diagnostic.severity) << ": "
     << (isOp ? printable(message) : printableLine(message)) << "\n";
  if (!diagnostic.sourceLine.empty()) {
    os << printable(diagnostic.sourceLine) << "\n";
    if (diagnostic.place.column)
      os.indent(diagnostic.place.column - 1)
          << "^" << std::string(std::max(diagnostic.place.width, 1u) - 1, '~') << "\n";
  }
  if (diagnostic.place.line && !diagnostic.place.module.empty() &&
      diagnostic.severity != mlir::DiagnosticSeverity::Note)
    os << "in module " << printableLine(diagnostic.place.module) << "\n";
  for (const ModelDiagnostic &note : diagnostic.notes)
    print(note, os);
}

std::string ctxc::text(const ModelDiagnostic &diagnostic) {
  std::string lines;
  llvm::raw_string_ostream os(lines);
  print(diagnostic, os);
  return lines;
}
