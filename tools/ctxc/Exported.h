// What a Python exports for a check: a model type of transformers, or what a function builds.
#ifndef CTXC_TOOLS_CTXC_EXPORTED_H
#define CTXC_TOOLS_CTXC_EXPORTED_H

#include "ctxc/Support/Unfinished.h"
#include "tools/CommandLine/CommandLine.h"

namespace ctxc::driver {

/// The options --transformers, --watch and --python.
std::vector<OptionSpec> exportOptions();

/// Whether the arguments name what a Python exports.
bool isExported(const Arguments &arguments);

/// An exported program, in a folder that is removed with this object.
class Exported {
public:
  /// Exports what the arguments name, by the Python that --python or CTXC_PYTHON names. An error
  /// where that Python, or what it needs, is not there, or where the model cannot be exported.
  static llvm::Expected<Exported> make(const Arguments &arguments);

  llvm::StringRef path() const { return file; }

private:
  Exported(Unfinished folder);

  Unfinished folder;
  std::string file;
};

/// Exports what the function builds, and again after each save of its files, and calls `check` with
/// each program, until that fails or the Python ends. What cannot be exported is printed.
llvm::Error watchFunction(const Arguments &arguments,
                          llvm::function_ref<llvm::Error(llvm::StringRef path)> check);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_EXPORTED_H
