#include "ctxc/Import/Import.h"
#include "Graph/RaiseModel.h"
#include "Graph/ReadFile.h"
#include "Graph/ReadProgram.h"
#include "HuggingFace/HuggingFace.h"
#include "ParseText.h"
#include "ctxc/Checkpoint/HubCache.h"
#include "ctxc/Program/ModelEnds.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "ctxc/Support/InputFile.h"
#include "dialects/XF/XF.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"

using namespace llvm;
using namespace ctxc;

namespace {

/// Far above any model that is written out.
constexpr uint64_t largestText = 1 << 30;

/// importModel for a file *.mlir.
Expected<ImportedModel> importText(StringRef path, mlir::MLIRContext &context) {
  Expected<std::string> text = readSmallFile(path, largestText);
  if (!text)
    return text.takeError();
  if (Error error = checkNesting(*text, path))
    return std::move(error);
  SourceMgr sources;
  sources.AddNewSourceBuffer(MemoryBuffer::getMemBufferCopy(*text, path), SMLoc());
  ImportedModel imported;
  imported.module = parseText(sources, path, context);
  if (!imported.module || failed(mlir::verify(*imported.module)))
    return makeError(path + ": is not a valid module; see the messages above");
  auto models = imported.module->getOps<xf::ModelOp>();
  int64_t count = std::distance(models.begin(), models.end());
  if (count > 1)
    return makeError(path + ": has " + Twine(count) + " xf.model ops; expected at most one");
  if (count == 0 && imported.module->getOps<xf::BlockOp>().empty())
    return makeError(path + ": has neither an xf.model nor an xf.block");
  return imported;
}

int64_t widthOf(mlir::Value value) {
  return cast<mlir::RankedTensorType>(value.getType()).getNumElements();
}

/// Whether the program of a model gives its last hidden state: behind its layers nothing multiplies
/// by a matrix, and a token has as many numbers as in the layers, which are not as many as there
/// are tokens.
bool endsWithState(xf::ModelOp model) {
  mlir::Block &body = model.getBody().front();
  mlir::Value result = body.getTerminator()->getOperand(0);
  bool isBehind = false, fits = false;
  for (mlir::Operation &op : body) {
    if (auto embed = dyn_cast<xf::EmbedOp>(op))
      if (isa_and_nonnull<xf::TokenOp>(embed.getId().getDefiningOp()) &&
          cast<mlir::RankedTensorType>(embed.getTable().getType()).getDimSize(0) == widthOf(result))
        return false;
    if (auto layer = dyn_cast<xf::LayerOp>(op)) {
      isBehind = true;
      fits = widthOf(layer.getResult(0)) == widthOf(result);
    } else if (isBehind && !isa<xf::YieldOp, xf::ParamOp, xf::NormalizeOp, xf::ScaleOp, xf::BiasOp,
                                xf::TimesOp, xf::ReshapeOp>(op)) {
      return false;
    }
  }
  return fits;
}

/// importModel for the program of a file.
Expected<ImportedModel> importProgram(StringRef path, mlir::MLIRContext &context, bool needWeights,
                                      pt2::Payloads payloads, Expected<pt2::Program> program) {
  if (!program)
    return program.takeError();
  graph::ProgramOp op = *program->module->getOps<graph::ProgramOp>().begin();
  auto numbers = [&](graph::StoredOp stored) -> std::optional<std::vector<double>> {
    if (!stored.getFixed() || !payloads.has(stored.getName()))
      return std::nullopt;
    auto read = payloads.numbers(stored.getName());
    if (!read) {
      consumeError(read.takeError());
      return std::nullopt;
    }
    return std::move(*read);
  };
  StringSet<> joined;
  auto module = pt2::raiseProgram(op, numbers, &joined);
  if (!module)
    return makeError(path + ": " + toString(module.takeError()));
  ImportedModel imported;
  imported.module = std::move(*module);
  imported.sourceLines = std::move(program->lines);
  imported.parts = std::move(program->parts);
  bool isModel = !imported.module->getOps<xf::ModelOp>().empty();
  if (isModel && endsWithState(*imported.module->getOps<xf::ModelOp>().begin()))
    (*imported.module->getOps<xf::ModelOp>().begin())
        ->setAttr(headlessName, mlir::UnitAttr::get(&context));
  size_t results = op.getBody().front().getTerminator()->getNumOperands();
  std::string taken = std::move(program->taken);
  if (taken.empty() && results > 1)
    taken = "of its " + std::to_string(results) + " results the first is taken for the logits";
  if (isModel && !taken.empty())
    imported.warnings.push_back((path + ": " + taken).str());
  // What such a layer's own module gives is not what the layer does.
  for (SourceRun &run : program->source.runs)
    erase_if(run.layers,
             [&](const SourceRun::Layer &layer) { return joined.contains(layer.path); });
  imported.source = std::move(program->source);
  for (auto stored : op.getBody().getOps<graph::StoredOp>())
    if (stored->hasAttr(graph::StoredOp::inProgram))
      imported.inProgram.push_back(stored.getName().str());
  if (!needWeights)
    return imported;
  StringSet<> fixed;
  bool isWhole = true;
  for (auto stored : op.getBody().getOps<graph::StoredOp>()) {
    if (stored.getFixed())
      fixed.insert(stored.getName());
    else
      isWhole &= payloads.has(stored.getName());
  }
  auto read = [&](std::unique_ptr<Checkpoint> &to, bool all) -> Error {
    auto tensors = payloads.checkpoint([&](StringRef name) { return all || fixed.contains(name); });
    if (!tensors)
      return tensors.takeError();
    to = std::move(*tensors);
    return Error::success();
  };
  if (Error error = read(imported.constants, /*all=*/false))
    return std::move(error);
  if (isWhole)
    if (Error error = read(imported.checkpoint, /*all=*/true))
      return std::move(error);
  if (imported.source->why.empty()) {
    Expected<std::string> digest = payloads.digest();
    if (!digest)
      return digest.takeError();
    imported.weightsDigest = std::move(*digest);
  }
  imported.memory = payloads.memory();
  return imported;
}

Expected<ImportedModel> importFile(StringRef path, mlir::MLIRContext &context, bool needWeights) {
  if (path.ends_with(".pt2")) {
    Expected<pt2::Archive> archive = pt2::Archive::open(path);
    if (!archive)
      return archive.takeError();
    Expected<pt2::Payloads> payloads = pt2::Payloads::read(*archive);
    if (!payloads)
      return payloads.takeError();
    auto program = pt2::readProgram(*archive, *payloads, context);
    return importProgram(path, context, needWeights, std::move(*payloads), std::move(program));
  }
  auto file = SafetensorsFile::open(path);
  if (!file)
    return file.takeError();
  std::shared_ptr<const SafetensorsFile> shared = std::move(*file);
  pt2::Payloads payloads = pt2::Payloads::of(shared);
  auto program = pt2::readFile(*shared, payloads, context);
  return importProgram(path, context, needWeights, std::move(payloads), std::move(program));
}

/// Loads the dialect, and checks the options of every import.
Error begin(mlir::MLIRContext &context, const ImportOptions &options) {
  context.loadDialect<xf::XFDialect, graph::GraphDialect>();
  if (options.storage && *options.storage != DType::F32 && *options.storage != DType::BF16 &&
      *options.storage != DType::F16)
    return makeError(nameOf(*options.storage) + " is no storage type of weights; F32, BF16 and "
                                                "F16 are");
  return Error::success();
}

} // namespace

Expected<ImportedModel> ctxc::importCheckpoint(std::unique_ptr<Checkpoint> checkpoint,
                                               mlir::MLIRContext &context,
                                               const ImportOptions &options) {
  if (Error error = begin(context, options))
    return std::move(error);
  return hf::importOpened(std::move(checkpoint), context, options);
}

Expected<ImportedModel> ctxc::importModel(StringRef path, mlir::MLIRContext &context,
                                          const ImportOptions &options) {
  if (Error error = begin(context, options))
    return std::move(error);
  if (sys::fs::is_directory(path))
    return hf::importDirectory(path, context, options);
  if (!sys::fs::exists(path))
    return makeError(path +
                     ": no such file or directory; expected a Hugging Face directory, "
                     "a .gguf, .ctxc, .pt2 or .mlir file" +
                     hubHint(path));
  if (path.ends_with(".mlir"))
    return importText(path, context);
  if (isProgramFile(path))
    return importFile(path, context, options.needWeights);
  if (path.ends_with(".gguf"))
    return hf::importDirectory(path, context, options);
  return makeError(
      path + ": is not a model that can be read; expected a Hugging Face directory "
             "(config.json, model.safetensors or its index), a .gguf, .ctxc, .pt2 or .mlir file");
}

bool ctxc::isProgramFile(StringRef path) {
  return path.ends_with(".ctxc") || path.ends_with(".pt2");
}

void ctxc::printModel(mlir::ModuleOp module, raw_ostream &os) {
  module.print(os, mlir::OpPrintingFlags().printNameLocAsPrefix());
}
