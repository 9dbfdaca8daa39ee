#include "tools/CommandLine/ModelArguments.h"
#include "ctxc/Plugins/DialectPlugins.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Memory.h"
#include "tools/CommandLine/Flags.h"
#include "tools/CommandLine/Shard.h"
#include "tools/CommandLine/Streams.h"
#include "tools/CommandLine/TokenProgress.h"
#include "tools/CommandLine/Values.h"
#include "llvm/Support/FileSystem.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

std::vector<StringRef> driver::storageNames() { return {"f32", "bf16", "f16"}; }

DType driver::storageNamed(StringRef name) {
  return name == "bf16" ? DType::BF16 : name == "f16" ? DType::F16 : DType::F32;
}

std::vector<OptionSpec> driver::planOptions() {
  return {
      {"--no-self-check", "",
       "do not compare what was read of a .pt2 file with the numbers of PyTorch in it\n"
       "(docs/check-your-architecture.md#is-it-read-rightly)"},
      {"--sites",
       "NAME",
       "what may be patched: mlp (default, the paper's), or all: also the parameters\n"
       "between attention and the residual stream (W_o)",
       {"mlp", "all"}},
      {"--objective",
       "NAME",
       "how a plan is chosen: default (the paper's, unless it is fragile in other\n"
       "programs and another is not), paper, fewest-parameters, no-division,\n"
       "least-norm, least-drift (the last two are measured on sample activations)",
       {"default", "paper", "fewest-parameters", "no-division", "least-norm", "least-drift"}},
      {"--plan", "NAMES",
       "patch only these parameters, named as in the blocks and separated by commas;\n"
       "`ctxc check --plans` lists the plans"},
      {"--split",
       "NAME",
       "how a mixture's experts share the change of its output: even (default, the\n"
       "paper's), or least-norm, the smallest patch",
       {"even", "least-norm"}},
  };
}

std::vector<OptionSpec> driver::runOptions() {
  std::vector<OptionSpec> options = {
      {"--update",
       "NAME",
       "how the patch of a post-norm is split between the matrix before the norm\n"
       "and the scale after it: least (default), balanced, naive, stable, scaled",
       {"least", "balanced", "naive", "stable", "scaled"}},
      {"--dtype", "TYPE",
       "storage type of the weights, f32, bf16 or f16; activations and sums are f32.\n"
       "Default: the type in which the checkpoint stores each (f32 for f64)",
       storageNames()},
      {"--round-prompts", "",
       "read a prompt with activations rounded to bfloat16 before products with bfloat16\n"
       "weights, as PyTorch and llama.cpp do: faster, on a processor with avx512_bf16 for\n"
       "16 tokens or more (in AMX's tile registers if there are some and CTXC_AMX=off is\n"
       "not set; attention too), and on NVIDIA's GPUs. Everything after the prompt, and\n"
       "patches, are computed without this rounding"},
      {"--split-prompts", "",
       "read a prompt in AMX's tile registers, with activations and weights split into\n"
       "bfloat16 numbers whose products are exact: faster, and as exact as without, but\n"
       "sums over 16 tokens or more have another order than those of one\n"
       "(docs/measurements.md#prompts-in-tile-registers)"},
      {"--integer-products", "",
       "multiply quantised matrices (not fp8) in integers, with activations rounded to 8\n"
       "bits, with a scale for each 32, as llama.cpp does: faster, less exact (docs/gguf.md)"},
      {"--cache",
       "TYPE",
       "type of the KV cache: f32 (default), or bf16, in half the memory and less exact\n"
       "(docs/measurements.md#the-cache)",
       {"f32", "bf16"}},
      {"--large-pages", "",
       "copy the weights into large pages, which some machines read faster; takes as much\n"
       "more memory as the weights have (docs/measurements.md#large-pages)"},
      {"--start-layer", "L", "leave the layers before layer L (from 0) unpatched"},
      {"--keep", "POSITIONS",
       "positions of the context that the reduced run keeps, such as 0-3,7;\n"
       "default: none"},
      {"--backend",
       "NAME",
       "compiled (default), or reference: float64, slow, to check the other against",
       {"compiled", "reference"}},
      {"--target", "GPU",
       "run on a GPU: cuda, rocm or vulkan (docs/gpu.md); default: on this\nprocessor"},
      {"--threads", "N", "threads of the compiled backend; default: one per core"},
      reads({"--weights", "WEIGHTS", "for an .mlir model: a checkpoint directory, or random:SEED"}),
  };
  llvm::append_range(options, planOptions());
  return options;
}

Expected<WeightSource> driver::weightSource(const Arguments &arguments) {
  WeightSource source;
  StringRef text = arguments.get("--weights", "");
  if (!text.consume_front("random:")) {
    source.checkpoint = text.str();
    return source;
  }
  uint64_t seed;
  if (text.getAsInteger(10, seed))
    return makeError("--weights: found 'random:" + text +
                     "', expected random:SEED with an integer SEED");
  source.seed = seed;
  return source;
}

Expected<std::vector<int64_t>> driver::keptPositions(const Arguments &arguments) {
  auto text = arguments.get("--keep");
  return text ? parsePositions(*text, "--keep") : std::vector<int64_t>();
}

Expected<PromptProducts> driver::promptProducts(const Arguments &arguments) {
  bool isSplit = arguments.has("--split-prompts");
  if (!arguments.has("--round-prompts"))
    return isSplit ? PromptProducts::Split : PromptProducts::Exact;
  if (isSplit)
    return makeError("--split-prompts is exact and --round-prompts is not; leave one of them out");
  return PromptProducts::Rounded;
}

/// Reads --backend and --target. The reference has none of the compiled backend's options.
static Error chooseEngine(const Arguments &arguments, LoadOptions &options) {
  options.gpu = arguments.get("--target", "").str();
  if (arguments.get("--backend", "compiled") == "compiled") {
    options.engine = options.gpu.empty() ? Engine::Compiled : Engine::Gpu;
    return Error::success();
  }
  options.engine = Engine::Reference;
  if (!options.gpu.empty())
    return makeError("--target: the reference backend runs on this processor; leave one of them "
                     "out");
  if (options.threads)
    return makeError("--threads: the reference backend runs on one thread; leave it out, or use "
                     "--backend compiled");
  if (options.prompts == PromptProducts::Rounded)
    return makeError("--round-prompts: the reference backend rounds nothing; leave it out, or use "
                     "--backend compiled");
  return Error::success();
}

Expected<LoadOptions> driver::loadOptions(const Arguments &arguments) {
  LoadOptions options;
  ModelOptions &planning = options.planning;
  planning.update = *patch::symbolizeUpdateKind(arguments.get("--update", "least"));
  planning.scope = arguments.get("--sites", "mlp") == "all" ? SiteScope::All : SiteScope::MLP;
  planning.split =
      arguments.get("--split", "even") == "even" ? xf::Split::Even : xf::Split::LeastNorm;
  planning.objective = *parseObjective(arguments.get("--objective", "default"));
  llvm::SmallVector<StringRef> names;
  arguments.get("--plan", "").split(names, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef name : names)
    planning.parameters.push_back(name.trim().str());
  if (arguments.has("--plan") && names.empty())
    return makeError("--plan: found no name, expected parameters separated by commas");
  if (auto dtype = arguments.get("--dtype"))
    options.storage = storageNamed(*dtype);
  Expected<WeightSource> weights = weightSource(arguments);
  if (!weights)
    return weights.takeError();
  options.weights = *weights;
  options.tokenizer = arguments.get("--tokenizer", "").str();
  auto startLayer = arguments.integer("--start-layer", 0, INT32_MAX, 0);
  if (!startLayer)
    return startLayer.takeError();
  planning.startLayer = *startLayer;
  auto threads = arguments.integer("--threads", 1, 1024, 0);
  if (!threads)
    return threads.takeError();
  options.threads = *threads;
  Expected<PromptProducts> prompts = promptProducts(arguments);
  if (!prompts)
    return prompts.takeError();
  options.prompts = *prompts;
  options.selfCheck = !arguments.has("--no-self-check");
  options.integerProducts = arguments.has("--integer-products");
  options.roundedCache = arguments.get("--cache", "f32") == "bf16";
  options.largePages = arguments.has("--large-pages");
  options.ranks = joinedRanks();
  options.tensorRanks = joinedTensor();
  if (!isServing())
    options.progress = progressOnTerminal();
  if (Error error = chooseEngine(arguments, options))
    return std::move(error);
  return options;
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

/// The dialects that plugins have registered. It is filled before any model is opened, and never
/// destroyed: it refers to code of the plugins, which LLVM unloads at exit.
static mlir::DialectRegistry &mutablePluginDialects() {
  static auto &registry = *new mlir::DialectRegistry();
  return registry;
}

static std::vector<std::string> &mutablePluginFiles() {
  static std::vector<std::string> files;
  return files;
}

llvm::ArrayRef<std::string> driver::pluginFiles() { return mutablePluginFiles(); }

const mlir::DialectRegistry &driver::pluginDialects() { return mutablePluginDialects(); }

Error driver::loadDialectPlugins(std::vector<StringRef> &words) {
  constexpr StringRef option = "--load-dialect-plugin";
  Expected<std::vector<StringRef>> files = takePluginOptions(option, words);
  if (!files)
    return files.takeError();
  for (StringRef file : *files) {
    if (Error error = loadDialectPlugin(file, mutablePluginDialects()))
      return makeError(option + ": " + llvm::toString(std::move(error)));
    mutablePluginFiles().push_back(file.str());
  }
  return Error::success();
}

void driver::printDiagnostic(const ModelDiagnostic &diagnostic) {
  if (!diagnostic.place.isKnown())
    err() << "ctxc: ";
  err() << text(withFlags(diagnostic));
}

Expected<std::unique_ptr<Model>> driver::openModel(StringRef path, LoadOptions options) {
  bool isText = path.ends_with(".mlir") && !llvm::sys::fs::is_directory(path);
  if (isText && options.needWeights && options.weights.isModelsOwn() && !options.storage)
    return makeError(path + ": has no weights; give a checkpoint with --weights DIR, or "
                            "--weights random:SEED");
  if (!options.diagnostics)
    options.diagnostics = isServing() ? [](const ModelDiagnostic &) {} : printDiagnostic;
  options.dialects = &pluginDialects();
  return Model::load(path, std::move(options));
}

Error driver::checkPlanArguments(const Arguments &arguments, Model &model) {
  Expected<bool> updates = model.updatesDiffer();
  if (!updates)
    return updates.takeError();
  if (arguments.has("--update") && !*updates)
    return makeError("--update: applies to blocks that end in a trainable scale after an RMS norm "
                     "(Gemma's post-norms), and no block of " +
                     model.name() + " does; leave it out");
  if (!arguments.has("--split"))
    return Error::success();
  Expected<bool> splits = model.splitsMixtures();
  if (!splits)
    return splits.takeError();
  if (!*splits)
    return makeError("--split: applies to plans that patch the experts of a mixture for its "
                     "output, and no plan of " +
                     model.name() + " does; leave it out");
  return Error::success();
}

Expected<std::unique_ptr<Model>> driver::openToRun(const Arguments &arguments, StringRef path,
                                                   LoadOptions options) {
  // Executors on ranks' GPUs are made together, when it is known that all ranks have the same
  // model.
  const bool meetFirst = options.ranks && options.engine == Engine::Gpu;
  Expected<std::unique_ptr<Model>> model = openModel(path, std::move(options));
  if (!model)
    return model;
  if (Error error = (*model)->checkNumerics())
    return std::move(error);
  if (Error error = checkPlanArguments(arguments, **model))
    return std::move(error);
  if (meetFirst)
    if (Error error = meetRanks(**model))
      return std::move(error);
  if (Expected<Executor &> executor = (*model)->executor(); !executor)
    return executor.takeError();
  // Comes before the weights are read, so that they and the compiler's memory are not held at the
  // same time.
  giveBackMemory();
  if (Expected<std::string> hash = (*model)->hash(); !hash)
    return hash.takeError();
  if (!meetFirst)
    if (Error error = meetRanks(**model))
      return std::move(error);
  return model;
}
