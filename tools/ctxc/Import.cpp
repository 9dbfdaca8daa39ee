// ctxc import
#include "ctxc/Import/Import.h"
#include "Commands.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/OwnFile.h"
#include "tools/CommandLine/ModelArguments.h"
#include "tools/CommandLine/Streams.h"
#include "tools/CommandLine/Values.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;
using namespace ctxc::driver;

static llvm::Expected<int> runImport(const Arguments &arguments) {
  llvm::StringRef path = arguments.get("-o", "-");
  LoadOptions options;
  options.needWeights = false;
  if (auto dtype = arguments.get("--dtype"))
    options.storage = storageNamed(*dtype);
  auto startLayer = arguments.integer("--start-layer", 0, INT32_MAX, 0);
  if (!startLayer)
    return startLayer.takeError();
  options.planning.startLayer = *startLayer;
  auto model = openModel(arguments.positional(0), std::move(options));
  if (!model)
    return model.takeError();
  if (path == "-") {
    printModel((*model)->module(), out());
    return ExitGood;
  }
  if (llvm::Error error = writeFileAtomically(path, [&](llvm::raw_pwrite_stream &os) {
        os << "// " << ownMark << " import.\n";
        printModel((*model)->module(), os);
        return llvm::Error::success();
      }))
    return std::move(error);
  return ExitGood;
}

/// Adds `types` to `text`, whose last line has `column` characters, in lines of up to 88.
static void addTypes(std::string &text, size_t column, llvm::ArrayRef<llvm::StringRef> types) {
  llvm::ListSeparator comma(",");
  for (llvm::StringRef type : types) {
    text += llvm::StringRef(comma);
    bool wraps = column + type.size() + 2 > 88;
    text += wraps ? "\n" : " ";
    column = (wraps ? 0 : column + 1) + type.size() + 1;
    text += type;
  }
  text += ".";
}

static const std::string &description() {
  static const std::string text = [] {
    std::string text = "DIR is a Hugging Face directory; config.json is enough, no weights are "
                       "needed. check, compile\n"
                       "and verify also take the written file as MODEL, and ctxc-opt runs passes "
                       "on it.\n\n"
                       "config.json's model_type is one of";
    addTypes(text, 34, supportedModelTypes());
    text += "\n\nBy descriptions (docs/described-types.md; some for checks alone) it may also be";
    addTypes(text, 79, describedModelTypes());
    text += "\n\nor, of models of text and of images or sounds, whose text model is read,";
    addTypes(text, 75, wrapperModelTypes());
    return text;
  }();
  return text;
}

Command driver::importCommand() {
  return {
      "import",
      "write a checkpoint's model as MLIR text in the xf dialect",
      {"DIR"},
      {writes({"-o", "FILE", "the .mlir file to write; default, or -: standard output"}),
       {"--dtype", "TYPE", "storage type of all parameters; default: as stored", storageNames()},
       {"--start-layer", "L", "join no layer before layer L (from 0) with a later one"}},
      description(),
      "  ctxc import gemma-3-270m -o model.mlir\n"
      "  ctxc check model.mlir\n"
      "  ctxc verify model.mlir --weights gemma-3-270m --tokens 2,818,5279\n",
      runImport};
}
