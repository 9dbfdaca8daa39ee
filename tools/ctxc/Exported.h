// A model type of transformers, exported for a check.
#ifndef CTXC_TOOLS_CTXC_EXPORTEDTYPE_H
#define CTXC_TOOLS_CTXC_EXPORTEDTYPE_H

#include "tools/CommandLine/CommandLine.h"

namespace ctxc::driver {

/// The options --transformers and --python.
std::vector<OptionSpec> exportedTypeOptions();

/// A small model of a type, in a file that is removed with this object.
class ExportedType {
public:
  /// Exports the type that --transformers names, by the Python that --python or CTXC_PYTHON names.
  /// An error where that Python, or what it needs, is not there.
  static llvm::Expected<ExportedType> make(const Arguments &arguments);
  ExportedType(ExportedType &&other)
      : folder(std::move(other.folder)), file(std::move(other.file)) {
    other.folder.clear();
  }
  ~ExportedType();

  llvm::StringRef path() const { return file; }

private:
  ExportedType(std::string folder, llvm::StringRef type);

  std::string folder, file;
};

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_EXPORTEDTYPE_H
