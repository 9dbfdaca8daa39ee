// LLVM's archives were built with Polly, which Debian packages apart. lld would ask for it to optimise bitcode, of which
// ctxc gives it none: a Polly that adds nothing is enough.
#include "llvm/Plugins/PassPlugin.h"

llvm::PassPluginLibraryInfo getPollyPluginInfo();

llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "Polly", "none", [](llvm::PassBuilder &) {}};
}
