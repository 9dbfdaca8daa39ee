// MLIR's language server with ctxc's dialects and those of plugins. An editor starts it, and shows
// the errors of the parser and the verifiers while a block is typed (docs/editors.md).
#include "ctxc/Plugins/DialectPlugins.h"
#include "ctxc/Support/StandardStreams.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Patch/Patch.h"
#include "dialects/XF/XF.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "tools/CommandLine/Programs.h"

static llvm::Error loadPlugins(std::vector<llvm::StringRef> &words,
                               mlir::DialectRegistry &registry) {
  auto files = ctxc::takePluginOptions("--load-dialect-plugin", words);
  if (!files)
    return files.takeError();
  for (llvm::StringRef file : *files)
    if (llvm::Error error = ctxc::loadDialectPlugin(file, registry))
      return error;
  return llvm::Error::success();
}

int ctxc::runCtxcLspServer(int argc, char **argv) {
  ctxc::openStandardStreams();
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<ctxc::xf::XFDialect, ctxc::patch::PatchDialect, ctxc::kernel::KernelDialect>();
  std::vector<llvm::StringRef> words(argv, argv + argc);
  if (llvm::Error error = loadPlugins(words, registry)) {
    llvm::errs() << "ctxc-lsp-server: error: " << llvm::toString(std::move(error)) << "\n";
    return 2;
  }
  std::vector<char *> others; // each is a whole argument of argv
  for (llvm::StringRef word : words)
    others.push_back(const_cast<char *>(word.data()));
  others.push_back(nullptr);
  return failed(mlir::MlirLspServerMain(words.size(), others.data(), registry));
}
