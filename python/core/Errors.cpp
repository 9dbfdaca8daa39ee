#include "Core.h"
#include "ctxc/Report/Rules.h"

namespace nb = nanobind;
using namespace ctxc;

/// The rule of a finding, which its message ends with in brackets; else empty.
static llvm::StringRef ruleOf(llvm::StringRef message) {
  auto [rest, rule] = message.rsplit(" [");
  return rule.consume_back("]") && findRule(rule) ? rule : "";
}

nb::dict python::toDict(const ModelDiagnostic &diagnostic) {
  nb::dict result;
  const Place &place = diagnostic.place;
  result["file"] = place.file;
  result["line"] = place.line;
  result["column"] = place.column;
  result["module"] = place.module;
  result["severity"] = stringify(diagnostic.severity).str();
  result["message"] = diagnostic.message;
  result["rule"] = ruleOf(diagnostic.message).str();
  result["source"] = diagnostic.sourceLine;
  nb::list notes;
  for (const ModelDiagnostic &note : diagnostic.notes)
    notes.append(toDict(note));
  result["notes"] = notes;
  return result;
}

/// The class of ctxc._errors for an error.
static const char *classOf(const llvm::Error &error) {
  if (error.isA<VerdictAgainst>())
    return "Refused";
  return "BadInput";
}

void python::raiseError(llvm::Error error, std::vector<ModelDiagnostic> diagnostics) {
  const char *name = classOf(error);
  std::string message;
  nb::list all;
  for (const ModelDiagnostic &each : diagnostics) {
    all.append(toDict(each));
    if (each.severity == mlir::DiagnosticSeverity::Error)
      message += text(each);
  }
  message += llvm::toString(std::move(error));
  message = llvm::StringRef(message).rtrim().str();
  nb::object type = nb::module_::import_("ctxc._errors").attr("raised_as")(name, all);
  PyErr_SetObject(type.ptr(), type(message, all).ptr());
  throw nb::python_error();
}
