#include "ctxc/Import/Import.h"
#include "HuggingFace/HuggingFace.h"
#include "ctxc/Support/Error.h"
#include "dialects/XF/XF.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"

using namespace llvm;
using namespace ctxc;

/// importModel for a file *.mlir.
static Expected<ImportedModel> importText(StringRef path, mlir::MLIRContext &context) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return makeError(path + ": cannot be read: " + buffer.getError().message());
  auto sources = std::make_shared<SourceMgr>();
  sources->AddNewSourceBuffer(std::move(*buffer), SMLoc());
  mlir::SourceMgrDiagnosticHandler printer(*sources, &context);
  ImportedModel imported;
  imported.module = mlir::parseSourceFile<mlir::ModuleOp>(sources, mlir::ParserConfig(&context));
  if (!imported.module)
    return makeError(path + ": is not a valid module; see the messages above");
  auto models = imported.module->getOps<xf::ModelOp>();
  int64_t count = std::distance(models.begin(), models.end());
  if (count > 1)
    return makeError(path + ": has " + Twine(count) + " xf.model ops; expected at most one");
  if (count == 0 && imported.module->getOps<xf::BlockOp>().empty())
    return makeError(path + ": has neither an xf.model nor an xf.block");
  return imported;
}

Expected<ImportedModel> ctxc::importModel(StringRef path, mlir::MLIRContext &context,
                                          const ImportOptions &options) {
  context.loadDialect<xf::XFDialect>();
  if (options.storage && *options.storage != DType::F32 && *options.storage != DType::BF16 &&
      *options.storage != DType::F16)
    return makeError(nameOf(*options.storage) + " is no storage type of weights; F32, BF16 and "
                                                "F16 are");
  if (sys::fs::is_directory(path))
    return hf::importDirectory(path, context, options);
  if (!sys::fs::exists(path))
    return makeError(path + ": no such file or directory; expected a Hugging Face directory or "
                            "an .mlir file");
  if (path.ends_with(".mlir"))
    return importText(path, context);
  return makeError(path + ": is not a model that can be read; expected a Hugging Face directory "
                          "(config.json, model.safetensors or its index) or an .mlir file");
}

void ctxc::printModel(mlir::ModuleOp module, raw_ostream &os) {
  module.print(os, mlir::OpPrintingFlags().printNameLocAsPrefix());
}
