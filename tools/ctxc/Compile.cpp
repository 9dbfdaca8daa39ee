// ctxc compile
#include "Commands.h"
#include "Session.h"
#include "ctxc/Support/AtomicFile.h"

using namespace ctxc;
using namespace ctxc::driver;

static llvm::Error writeText(llvm::StringRef path,
                             llvm::function_ref<void(llvm::raw_ostream &)> print) {
  if (path == "-") {
    print(llvm::outs());
    return llvm::Error::success();
  }
  return writeFileAtomically(path, [&](llvm::raw_pwrite_stream &os) {
    print(os);
    return llvm::Error::success();
  });
}

static llvm::Expected<int> run(const Arguments &arguments) {
  llvm::StringRef path = arguments.get("-o", "");
  llvm::StringRef stage = arguments.get("--emit", "");
  if (path != "-")
    if (llvm::Error error = checkWritable("-o", path))
      return std::move(error);
  auto options = RunOptions::parse(arguments);
  if (!options)
    return options.takeError();
  auto session = Session::plan(arguments.positional(0), std::move(*options), false, stage != "xf");
  if (!session)
    return session.takeError();
  if (llvm::Error error = writeText(path, [&](llvm::raw_ostream &os) {
        printModel((*session)->module(), os);
      }))
    return std::move(error);
  return ExitGood;
}

Command driver::compileCommand() {
  return {"compile",
          "write any stage of the compilation, readable",
          {"MODEL"},
          {{"--emit", "STAGE",
            "xf: the model; patch: with the dual and applied block of every plan",
            {"xf", "patch"},
            true},
           {"-o", "PATH", "the file to write; - for the screen", {}, true},
           {"--update", "NAME", "least (default), balanced, naive, stable, scaled",
            {"least", "balanced", "naive", "stable", "scaled"}},
           {"--dtype", "TYPE", "storage type of the weights; default: as stored",
            {"f32", "bf16"}},
           {"--start-layer", "L", "leave the layers before layer L (from 0) unpatched"}},
          "Weights are not needed.",
          "  ctxc compile gemma-3-270m --emit=patch -o -\n"
          "  ctxc compile block.mlir --emit=xf -o block-again.mlir\n",
          run};
}
