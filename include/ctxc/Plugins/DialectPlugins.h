//===- DialectPlugins.h - dialects of other projects, loaded at run time --===//
//
// MLIR's dialect plugins for tools that do not go through MlirOptMain. A plugin
// is a shared library with the entry point mlirGetDialectPluginInfo
// (mlir/Tools/Plugins/DialectPlugin.h). It has no copy of ctxc's libraries: it uses their symbols,
// and with them the ids of types and interfaces, from the tool that loads it (ctxc_open_to_plugins
// in cmake/CtxcTools.cmake).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PLUGINS_DIALECTPLUGINS_H
#define CTXC_PLUGINS_DIALECTPLUGINS_H

#include "mlir/IR/DialectRegistry.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace ctxc {

/// Loads the plugin `file` and lets it register its dialects and interfaces in
/// `registry`. Errors name the file: it does not exist, is no shared library, needs a
/// symbol that this program does not have (it was built against another ctxc), is
/// no dialect plugin, or is one for another version of MLIR's plugin interface.
llvm::Error loadDialectPlugin(llvm::StringRef file, mlir::DialectRegistry &registry);

/// Removes every `OPTION=FILE` and `OPTION FILE` from `words`, up to a `--`, and returns the files.
llvm::Expected<std::vector<llvm::StringRef>> takePluginOptions(llvm::StringRef option,
                                                               std::vector<llvm::StringRef> &words);

} // namespace ctxc

#endif // CTXC_PLUGINS_DIALECTPLUGINS_H
