// ctxc import
#include "Commands.h"
#include "Session.h"
#include "ctxc/Support/AtomicFile.h"

using namespace ctxc;
using namespace ctxc::driver;

static llvm::Expected<int> run(const Arguments &arguments) {
  llvm::StringRef path = arguments.get("-o", "-");
  if (path != "-")
    if (llvm::Error error = checkWritable("-o", path))
      return std::move(error);
  mlir::MLIRContext context(allDialects());
  printDiagnostics(context, arguments.positional(0));
  ImportOptions options;
  options.needWeights = false;
  if (auto dtype = arguments.get("--dtype"))
    options.storage = storageNamed(*dtype);
  auto imported = importModel(arguments.positional(0), context, options);
  if (!imported)
    return imported.takeError();
  for (const std::string &warning : imported->warnings)
    llvm::errs() << "ctxc: warning: " << warning << "\n";
  if (path == "-") {
    printModel(*imported->module, llvm::outs());
    return ExitGood;
  }
  if (llvm::Error error = writeFileAtomically(path, [&](llvm::raw_pwrite_stream &os) {
        printModel(*imported->module, os);
        return llvm::Error::success();
      }))
    return std::move(error);
  return ExitGood;
}

Command driver::importCommand() {
  return {
      "import",
      "write a checkpoint's model as dialect text",
      {"DIR"},
      {{"-o", "FILE", "the .mlir file to write; by default, or as -, to the screen"},
       {"--dtype", "TYPE", "storage type of all parameters; default: as stored", storageNames()}},
      "DIR is a Hugging Face directory; its weights are not needed, config.json will do. The text\n"
      "is what check, compile and verify also take as MODEL, and what ctxc-opt runs passes on.",
      "  ctxc import gemma-3-270m -o model.mlir\n"
      "  ctxc check model.mlir\n"
      "  ctxc verify model.mlir --weights gemma-3-270m --tokens 2,818,5279\n",
      run};
}
