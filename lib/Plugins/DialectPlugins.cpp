#include "ctxc/Plugins/DialectPlugins.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

using namespace ctxc;
using llvm::StringRef;

llvm::Error ctxc::loadDialectPlugin(StringRef file, mlir::DialectRegistry &registry) {
  if (!llvm::sys::fs::exists(file))
    return makeError(file +
                     ": no such file; expected a shared library that holds a dialect plugin");
  // The system's loader searches other folders for a name without a folder.
  llvm::SmallString<256> path(file);
  if (std::error_code error = llvm::sys::fs::make_absolute(path))
    return makeError(file + ": " + error.message());
  // The loader would wait for a FIFO's writer.
  if (llvm::Error error = checkRegularFile(path))
    return error;
  llvm::Expected<mlir::DialectPlugin> plugin = mlir::DialectPlugin::load(path.str().str());
  if (!plugin) {
    std::string message = llvm::toString(plugin.takeError());
    if (StringRef(message).contains("undefined symbol: ctxc_plugin_abi_"))
      return makeError(file +
                       ": was built against another ctxc; build it again against the package of "
                       "this one");
    return makeError(file + ": is no dialect plugin for this program: " + message);
  }
  plugin->registerDialectRegistryCallbacks(registry);
  return llvm::Error::success();
}

llvm::Expected<std::vector<StringRef>> ctxc::takePluginOptions(StringRef option,
                                                               std::vector<StringRef> &words) {
  std::vector<StringRef> files, others;
  for (size_t i = 0; i < words.size(); ++i) {
    StringRef file = words[i];
    if (file == "--") {
      others.insert(others.end(), words.begin() + i, words.end());
      break;
    }
    if (!file.consume_front(option) || !(file.empty() || file.starts_with("="))) {
      others.push_back(words[i]);
      continue;
    }
    if (!file.consume_front("=") && i + 1 < words.size())
      file = words[++i];
    if (file.empty())
      return makeError(option + ": expected FILE after it");
    files.push_back(file);
  }
  words = std::move(others);
  return files;
}
