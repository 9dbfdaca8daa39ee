#include "Session.h"
#include "Timer.h"
#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Lowering/KernelEmitter.h"
#include "ctxc/Plugins/DialectPlugins.h"
#include "ctxc/Reference/Evaluation.h"
#include "ctxc/Reference/Reference.h"
#include "ctxc/Runtime/CompiledExecutor.h"
#include "ctxc/Runtime/GPU/GpuExecutor.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Memory.h"
#include "ctxc/Verify/ProgramNorms.h"
#include "dialects/Patch/Patch.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

char VerdictAgainst::ID = 0;

/// What plugins registered; filled before any context is made. Never destroyed: it holds code
/// of the plugins, which LLVM unloads at exit.
static mlir::DialectRegistry &pluginDialects() {
  static auto &registry = *new mlir::DialectRegistry();
  return registry;
}

Error driver::loadDialectPlugins(std::vector<StringRef> &words) {
  Expected<std::vector<StringRef>> files = takeDialectPluginOptions(words);
  if (!files)
    return files.takeError();
  for (StringRef file : *files)
    if (Error error = loadDialectPlugin(file, pluginDialects()))
      return error;
  return Error::success();
}

mlir::DialectRegistry driver::allDialects() {
  mlir::DialectRegistry registry;
  registerCodegenDialects(registry);
  registerReferenceModels(registry);
  pluginDialects().appendTo(registry);
  return registry;
}

Expected<std::unique_ptr<Session>> Session::plan(StringRef model, RunOptions options, Use use) {
  std::unique_ptr<Session> session(new Session());
  session->options = std::move(options);
  session->path = model.str();
  if (Error error = session->import(/*needWeights=*/use == Use::Run))
    return std::move(error);
  if (use == Use::Compile || use == Use::Run)
    if (Error error = session->checkNumerics())
      return std::move(error);
  if (use != Use::Read)
    if (Error error = session->planBlocks())
      return std::move(error);
  return session;
}

Expected<std::unique_ptr<Session>> Session::open(StringRef model, RunOptions options,
                                                 Session *sharing) {
  auto session = plan(model, std::move(options), Use::Run);
  if (!session)
    return session;
  if ((*session)->program.steps.empty())
    return makeError(model + ": has blocks and no xf.model; expected a model, to run it");
  if (sharing)
    (*session)->weights = sharing->weights;
  else if (Error error = (*session)->loadWeights())
    return std::move(error);
  {
    Timer timer((*session)->setup.compile);
    auto executor = (*session)->makeExecutor((*session)->options.backend);
    if (!executor)
      return executor.takeError();
    (*session)->mainExecutor = std::move(*executor);
    giveBackMemory();
  }
  // After the compilation, so that its memory and all of the weights are not there at once.
  if (sharing)
    (*session)->modelHash = sharing->modelHash;
  else if (Error error = (*session)->identifyWeights())
    return std::move(error);
  (*session)->parameterNorms = programNorms((*session)->program, *(*session)->weights);
  return session;
}

std::vector<StringRef> driver::storageNames() { return {"f32", "bf16", "f16"}; }

DType driver::storageNamed(StringRef name) {
  return name == "bf16" ? DType::BF16 : name == "f16" ? DType::F16 : DType::F32;
}

/// bf16 or f16 where all `types` are that, else f32, which holds them all.
static std::string commonType(llvm::ArrayRef<DType> types) {
  for (StringRef name : {"bf16", "f16"})
    if (!types.empty() && llvm::all_of(types, [&](DType t) { return t == storageNamed(name); }))
      return name.str();
  return "f32";
}

std::string driver::storedType(const Checkpoint &checkpoint) {
  llvm::SmallVector<DType> types;
  for (const TensorView &tensor : checkpoint.tensors()) {
    if (isQuantized(tensor.dtype))
      return "";
    if (isFloating(tensor.dtype))
      types.push_back(tensor.dtype);
  }
  return commonType(types);
}

/// The common type of all parameters of the module.
static std::string writtenType(mlir::ModuleOp module) {
  llvm::SmallVector<DType> types;
  module.walk([&](xf::ParamOp param) {
    auto type = llvm::cast<mlir::RankedTensorType>(param.getType());
    types.push_back(storageOf(type.getElementType()));
  });
  return commonType(types);
}

Error Session::import(bool needWeights) {
  Timer timer(setup.import);
  context = std::make_unique<mlir::MLIRContext>(allDialects());
  context->loadAllAvailableDialects();
  printDiagnostics(*context, path);
  bool isText = StringRef(path).ends_with(".mlir") && !llvm::sys::fs::is_directory(path);
  if (isText && !options.dtype.empty())
    return makeError("--dtype: applies to Hugging Face directories; " + path +
                     " gives each parameter's type itself");
  if (!isText && !options.weights.empty())
    return makeError("--weights: applies to .mlir models; a directory has weights of its own");
  if (isText && needWeights && options.weights.empty())
    return makeError(path + ": has no weights; give a checkpoint with --weights DIR, or "
                            "--weights random:SEED");
  if (!isText && options.dtype.empty() && needWeights) {
    Expected<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::open(path);
    if (!checkpoint)
      return checkpoint.takeError();
    options.dtype = storedType(**checkpoint);
  }
  ImportOptions importOptions;
  importOptions.needWeights = needWeights;
  if (!options.dtype.empty())
    importOptions.storage = storageNamed(options.dtype);
  Expected<ImportedModel> result = importModel(path, *context, importOptions);
  if (!result)
    return result.takeError();
  imported = std::move(*result);
  for (const std::string &warning : imported.warnings)
    if (!options.quiet)
      llvm::errs() << "ctxc: warning: " << warning << "\n";
  if (options.dtype.empty())
    options.dtype = writtenType(*imported.module);
  if (options.roundedPrompts && options.dtype != "bf16")
    return makeError("--round-prompts: found weights in " + options.dtype +
                     ", expected bf16: activations are rounded as the weights are");
  return Error::success();
}

/// An op that neither the reference nor a kernel computes is there for the analyses alone.
Error Session::checkNumerics() {
  if (module().getOps<xf::ModelOp>().empty())
    return Error::success(); // nothing runs
  llvm::StringSet<> told;
  module().walk([&](xf::BlockOp block) {
    for (mlir::Operation &op : block.getBody().front().without_terminator()) {
      if (llvm::isa<reference::ReferenceOpInterface, LinalgLoweringOpInterface>(op))
        continue;
      auto opaque = llvm::dyn_cast<xf::OpaqueContextualOp>(op);
      std::string kind = opaque ? (" \"" + opaque.getName() + "\"").str() : "";
      if (told.insert(op.getName().getStringRef().str() + kind).second)
        mlir::emitError(op.getLoc())
            << "'" << op.getName() << "'" << kind
            << " has no numerics: it is known to the analyses, and nothing computes it";
    }
  });
  if (told.empty())
    return Error::success();
  return makeError(path + ": cannot be run: it has ops without numerics; see the messages above. "
                          "'ctxc check' needs none, and tells which parameters can take the "
                          "context");
}

Error Session::loadWeights() {
  Timer timer(setup.import);
  StringRef source = options.weights;
  if (source.consume_front("random:")) {
    uint64_t seed;
    if (source.getAsInteger(10, seed))
      return makeError("--weights: found 'random:" + source +
                       "', expected random:SEED with an "
                       "integer SEED");
    ownWeights = randomWeights(seed);
  } else if (!source.empty()) {
    Expected<std::unique_ptr<Checkpoint>> opened = Checkpoint::open(source);
    if (!opened)
      return opened.takeError();
    weightsCheckpoint = std::move(*opened);
  }
  if (!ownWeights)
    ownWeights = checkpointWeights(*checkpoint());
  weights = ownWeights.get();
  return Error::success();
}

Error Session::identifyWeights() {
  Timer timer(setup.import);
  Checkpoint *from = checkpoint();
  if (!from || StringRef(options.weights).starts_with("random:")) {
    modelHash = weights->hash();
    return Error::success();
  }
  Expected<std::string> hash = from->hash();
  if (!hash)
    return hash.takeError();
  modelHash = *hash;
  return Error::success();
}

Expected<std::unique_ptr<Executor>> Session::makeExecutor(StringRef backend) {
  if (backend == "reference")
    return createReferenceExecutor(program, *weights);
  if (!options.gpu.empty()) {
    auto device = Device::open(options.gpu);
    if (!device)
      return makeError("--target: " + llvm::toString(device.takeError()));
    GpuOptions gpu;
    gpu.roundedPrompts = options.roundedPrompts;
    return createGpuExecutor(program, *weights, std::move(*device), gpu);
  }
  return createCompiledExecutor(program, *weights, {int(options.threads), options.roundedPrompts});
}

Expected<Tokenizer *> Session::tokenizer() {
  if (!pieces) {
    if (!imported.checkpoint)
      return makeError(path + ": has no tokenizer; give token ids with --tokens");
    auto opened = Tokenizer::open(path);
    if (!opened)
      return opened.takeError();
    pieces = std::move(*opened);
  }
  giveBackMemory(); // before it takes some again
  return pieces.get();
}

void Session::restTokenizer() {
  if (!pieces)
    return;
  pieces->rest();
  giveBackMemory();
}

TokenName Session::tokenName() {
  if (imported.checkpoint && imported.checkpoint->tokenizerPath()) {
    Expected<Tokenizer *> opened = tokenizer();
    if (opened)
      return [pieces = *opened](int64_t id) { return id < 0 ? "(row)" : pieces->piece(id); };
    llvm::errs() << "ctxc: warning: " << llvm::toString(opened.takeError()) << "\n";
  }
  return [](int64_t id) { return id < 0 ? "(row)" : std::to_string(id); };
}

VerifySettings Session::settings() const {
  VerifySettings settings;
  settings.model = path;
  settings.modelHash = modelHash;
  settings.layers = program.layers;
  settings.vocabulary = program.vocabulary;
  settings.update = options.update;
  settings.dtype = options.dtype;
  settings.backend = options.gpu.empty() ? options.backend : options.gpu;
  settings.plan = planText;
  settings.patchedLayers = patchedLayers;
  settings.updateApplies = hasNormUpdate;
  settings.threads = options.threads;
  settings.request.startLayer = options.startLayer;
  settings.request.kept = options.kept;
  return settings;
}
