// How a model is read, and how diagnostics reach its caller.
#include "ctxc/Session/Model.h"
#include "Use.h"
#include "ctxc/Checkpoint/HubCache.h"
#include "ctxc/Gradient/Registration.h"
#include "ctxc/Import/Import.h"
#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Lowering/KernelEmitter.h"
#include "ctxc/Reference/Reference.h"
#include "ctxc/Shard/Split.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Support/Timer.h"
#include "ctxc/Transforms/DropOutputs.h"
#include "ctxc/Transforms/FoldLayers.h"
#include "ctxc/Transforms/PermuteParts.h"
#include "ctxc/Transforms/WrittenForms.h"
#include "dialects/Graph/Graph.h"
#include "dialects/Kernel/IntegerProducts.h"
#include "llvm/Support/FileSystem.h"

using namespace ctxc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

/// The caller's tensors in memory, kept for reopen.
struct Model::InMemory {
  std::string config;
  std::vector<MemoryTensor> tensors;
};

void ctxc::registerModelDialects(mlir::DialectRegistry &dialects) {
  registerCodegenDialects(dialects);
  registerReferenceModels(dialects);
  registerGradientModels(dialects);
  shard::registerSplitModels(dialects);
}

Model::Model(std::string path, LoadOptions options)
    : path(std::move(path)), settings(std::move(options)), shared(std::make_shared<Shared>()) {
  registerModelDialects(dialects);
  if (settings.dialects)
    settings.dialects->appendTo(dialects);
}

Model::~Model() = default;

Expected<std::unique_ptr<Model>> Model::load(StringRef path, LoadOptions options) {
  std::unique_ptr<Model> model(new Model(findModel(path), std::move(options)));
  if (Error error = model->import())
    return model->withDiagnostics(std::move(error));
  return model;
}

Expected<std::unique_ptr<Model>> Model::load(StringRef name, StringRef config,
                                             llvm::ArrayRef<MemoryTensor> tensors,
                                             LoadOptions options) {
  std::unique_ptr<Model> model(new Model(name.str(), std::move(options)));
  model->inMemory = std::make_shared<const InMemory>(InMemory{config.str(), tensors.vec()});
  if (Error error = model->import())
    return model->withDiagnostics(std::move(error));
  return model;
}

Expected<std::unique_ptr<Model>> Model::reopen(LoadOptions options) const {
  if (!options.diagnostics)
    options.diagnostics = settings.diagnostics;
  std::unique_ptr<Model> model(new Model(path, std::move(options)));
  if (!model->settings.dialects)
    dialects.appendTo(model->dialects);
  model->inMemory = inMemory;
  model->isReopened = true;
  model->whyNotCompared = whyNotCompared;
  if (Error error = model->import())
    return model->withDiagnostics(std::move(error));
  if (model->settings.weights == settings.weights)
    model->shared = shared;
  return model;
}

bool Model::isText() const {
  bool isNamedSo = StringRef(path).ends_with(".mlir") || isProgramFile(path);
  return !inMemory && isNamedSo && !llvm::sys::fs::is_directory(path);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

std::optional<DType> ctxc::storedType(const Checkpoint &checkpoint) {
  std::optional<DType> common;
  bool isMixed = false;
  for (const TensorView &tensor : checkpoint.tensors()) {
    if (isQuantized(tensor.dtype))
      return std::nullopt;
    if (tensor.dtype == DType::F64) // is rounded
      return DType::F32;
    if (!isFloating(tensor.dtype))
      continue;
    isMixed |= common && *common != tensor.dtype;
    common = tensor.dtype;
  }
  return isMixed ? std::nullopt : std::optional(common.value_or(DType::F32));
}

static llvm::SmallVector<DType> matrixTypes(mlir::ModuleOp module) {
  llvm::SmallVector<DType> types;
  module.walk([&](xf::ParamOp param) {
    auto type = llvm::cast<mlir::RankedTensorType>(param.getType());
    if (type.getRank() > 1)
      types.push_back(storageOf(type.getElementType()));
  });
  return types;
}

/// The type of all matrices of the module, or F32 where they differ; vectors are often in F32
/// beside narrower matrices.
static DType writtenType(mlir::ModuleOp module) {
  llvm::SmallVector<DType> types = matrixTypes(module);
  return !types.empty() && llvm::all_equal(types) && !isQuantized(types[0]) ? types[0] : DType::F32;
}

/// Whether a model can be run with products in integers.
static Error checkIntegerProducts(mlir::ModuleOp module, Engine engine) {
  if (engine == Engine::Gpu)
    return llvm::make_error<OptionError>(Option::IntegerProducts,
                                         "GPUs multiply in float32; leave one of them out");
  auto found = module.walk([](xf::ParamOp param) {
    return kernel::multipliesInIntegers(param.getType()) ? mlir::WalkResult::interrupt()
                                                         : mlir::WalkResult::advance();
  });
  if (found.wasInterrupted())
    return Error::success();
  return llvm::make_error<OptionError>(
      Option::IntegerProducts, "found no matrix that is stored in blocks of integers; expected a "
                               "quantised GGUF file, or a checkpoint in mxfp4");
}

/// A checkpoint that keeps the memory of its tensors.
static std::shared_ptr<Checkpoint> withMemory(std::unique_ptr<Checkpoint> checkpoint,
                                              std::shared_ptr<const void> memory) {
  return {checkpoint.release(), [memory](Checkpoint *owned) { delete owned; }};
}

mlir::Operation *ctxc::opWithoutKernels(mlir::ModuleOp module, bool isProgram) {
  mlir::Operation *part = nullptr;
  module.walk([&](mlir::Operation *op) {
    if (!part && !llvm::isa<LinalgLoweringOpInterface>(op) &&
        (graph::FunctionOp::ofOp(op) || (isProgram && llvm::isa<xf::ContextualOpInterface>(op))))
      part = op;
  });
  return part;
}

/// What has no kernels is run by the reference alone, which has all ops.
static Error chooseEngine(mlir::ModuleOp module, bool isProgram, LoadOptions &settings) {
  if (!settings.needWeights || settings.engine == Engine::Reference ||
      !opWithoutKernels(module, isProgram))
    return Error::success();
  if (settings.engine == Engine::Gpu)
    return llvm::make_error<OptionError>(
        Option::Engine, "found ops of a PyTorch program, for which there are no kernels; expected "
                        "the reference engine, in float64");
  settings.engine = Engine::Reference;
  return Error::success();
}

/// Whether a model can be run with keys and values in bfloat16.
static Error checkRoundedCache(mlir::ModuleOp module, Engine engine) {
  if (engine == Engine::Gpu)
    return llvm::make_error<OptionError>(Option::RoundedCache,
                                         "GPUs keep keys and values in f32; leave one of them out");
  auto found = module.walk([](xf::AttentionOp) { return mlir::WalkResult::interrupt(); });
  if (found.wasInterrupted())
    return Error::success();
  return llvm::make_error<OptionError>(Option::RoundedCache,
                                       "found no attention, whose keys and values it is about");
}

Error Model::import() {
  Timer timer(setup.import);
  mlirContext = std::make_unique<mlir::MLIRContext>(dialects);
  mlirContext->loadAllAvailableDialects();
  mlirContext->getDiagEngine().registerHandler([this](mlir::Diagnostic &diagnostic) {
    ModelDiagnostic converted = toModelDiagnostic(diagnostic, path);
    addSourceLines(converted);
    handle(std::move(converted));
    return mlir::success();
  });
  if (isText() && settings.storage)
    return llvm::make_error<OptionError>(Option::Storage,
                                         "applies to Hugging Face directories; " + path +
                                             " gives each parameter's type itself");
  if (!isText() && !settings.weights.isModelsOwn())
    return llvm::make_error<OptionError>(Option::Weights, "applies to .mlir models; a directory "
                                                          "has weights of its own");
  bool isProgram = isText() && isProgramFile(path);
  auto lacksWeights = [&](const llvm::Twine &wayOut) {
    return makeError(path +
                     ": has no weights; expected a checkpoint for them, or a seed of random "
                     "ones" +
                     wayOut);
  };
  if (isText() && !isProgram && settings.needWeights && settings.weights.isModelsOwn())
    return lacksWeights("");
  Expected<ImportedModel> result = importModule();
  isReading = false;
  if (!result)
    return result.takeError();
  imported = std::move(result->module);
  sourceLines = std::move(result->sourceLines);
  dropUnreadOutputs(*imported);
  permuteParts(*imported);
  recognizeForms(*imported);
  for (FoldedLayers &folded : foldLayers(*imported, settings.planning.startLayer))
    mlir::emitRemark(folded.layer.getLoc(),
                     "layers " + formatRanges(folded.before) +
                         " are judged and patched as one, layer " + llvm::Twine(folded.after) +
                         ": of them the last alone has parameters outside of its contextual part");
  modelCheckpoint = withMemory(std::move(result->checkpoint), result->memory);
  shared->constants = withMemory(std::move(result->constants), result->memory);
  shared->inProgram = std::move(result->inProgram);
  shared->parts = std::move(result->parts);
  if (Error error = chooseEngine(*imported, isProgram, settings))
    return error;
  weightCheckpoint = modelCheckpoint;
  if (Error error = compareWithSource(*result))
    return error;
  if (isProgram && settings.needWeights && settings.weights.isModelsOwn() && !modelCheckpoint)
    return lacksWeights(", or a program that was exported with them");
  for (std::string &warning : result->warnings)
    handle({Place(), mlir::DiagnosticSeverity::Warning, std::move(warning), "", {}});
  storageType = settings.storage.value_or(writtenType(*imported));
  if (settings.prompts == PromptProducts::Split && settings.engine != Engine::Compiled)
    return llvm::make_error<OptionError>(
        Option::SplitPrompts,
        "is for kernels of the processor, and changes no other engine; leave it out");
  if (settings.prompts == PromptProducts::Rounded &&
      !llvm::is_contained(matrixTypes(*imported), DType::BF16))
    return llvm::make_error<OptionError>(Option::RoundedPrompts,
                                         "found weights in " + storage() +
                                             ", expected bf16: activations are rounded as the "
                                             "weights are");
  if (settings.integerProducts)
    if (Error error = checkIntegerProducts(*imported, settings.engine))
      return error;
  if (settings.roundedCache)
    if (Error error = checkRoundedCache(*imported, settings.engine))
      return error;
  if (settings.largePages && settings.engine != Engine::Compiled)
    return llvm::make_error<OptionError>(Option::LargePages,
                                         "is about weights that kernels of the processor read; "
                                         "leave it out");
  if (settings.weights.checkpoint.empty())
    return Error::success();
  Expected<std::unique_ptr<Checkpoint>> opened = Checkpoint::open(settings.weights.checkpoint);
  if (!opened)
    return opened.takeError();
  weightCheckpoint = std::move(*opened);
  return Error::success();
}

Expected<ImportedModel> Model::importModule() {
  ImportOptions options;
  options.needWeights = settings.needWeights;
  options.storage = settings.storage;
  isReading = isText();
  bool opensFirst = inMemory || (settings.needWeights && !settings.storage && !isText());
  if (!opensFirst)
    return importModel(path, *mlirContext, options);
  auto checkpoint = inMemory ? Checkpoint::fromMemory(path, inMemory->config, inMemory->tensors)
                             : Checkpoint::open(path);
  if (!checkpoint)
    return withoutWeights(checkpoint.takeError());
  if (!settings.storage && settings.needWeights)
    settings.storage = options.storage = storedType(**checkpoint);
  return importCheckpoint(std::move(*checkpoint), *mlirContext, options);
}

/// `missing`, or what is wrong with a config.json alone that no weights could run.
Error Model::withoutWeights(Error missing) {
  ImportOptions options;
  options.needWeights = false;
  Expected<ImportedModel> alone = importModel(path, *mlirContext, options);
  if (!alone) {
    llvm::consumeError(alone.takeError());
    return missing;
  }
  Error unknown = checkNumerics(*alone->module);
  if (!unknown)
    return missing;
  llvm::consumeError(std::move(missing));
  return unknown;
}

llvm::StringRef Model::storage() const {
  return storageType == DType::BF16 ? "bf16" : storageType == DType::F16 ? "f16" : "f32";
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

std::string Model::lineOf(const Place &place) {
  if (auto quoted = sourceLines.find({place.file, place.line}); quoted != sourceLines.end())
    return quoted->second;
  if (!isReading || place.file != path || !place.line)
    return "";
  if (!readText) {
    Expected<std::string> text = readSmallFile(path, 1 << 30);
    readText = text ? std::move(*text) : "";
    llvm::consumeError(text.takeError()); // the message is shown without the line
  }
  StringRef rest = *readText, line;
  for (unsigned i = 0; i < place.line; ++i)
    std::tie(line, rest) = rest.split('\n');
  return line.rtrim('\r').str();
}

void Model::addSourceLines(ModelDiagnostic &diagnostic) {
  diagnostic.sourceLine = lineOf(diagnostic.place);
  for (ModelDiagnostic &note : diagnostic.notes)
    addSourceLines(note);
}

void Model::handle(ModelDiagnostic diagnostic) {
  if (settings.diagnostics)
    settings.diagnostics(diagnostic);
  else
    collected.push_back(std::move(diagnostic));
}

std::vector<ModelDiagnostic> Model::takeDiagnostics() { return std::exchange(collected, {}); }

std::string Model::takeErrorTexts() {
  std::string texts;
  llvm::erase_if(collected, [&](const ModelDiagnostic &diagnostic) {
    bool isError = diagnostic.severity == mlir::DiagnosticSeverity::Error;
    if (isError)
      texts += text(diagnostic);
    return isError;
  });
  return texts;
}

Error Model::withDiagnostics(Error error) {
  std::string texts = takeErrorTexts();
  if (!error || texts.empty())
    return error;
  return llvm::joinErrors(makeError(StringRef(texts).rtrim()), std::move(error));
}

Expected<Model::Use> Model::use() {
  std::thread::id self = std::this_thread::get_id(), nobody;
  if (user != self && !user.compare_exchange_strong(nobody, self))
    return makeError(path + ": is in use by another thread; expected one thread at a time, or a "
                            "model for each (reopen shares the weights)");
  ++depth;
  return Use(*this);
}
