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

std::vector<StringRef> driver::storageNames() { return rowOf(Option::Storage).choices; }

DType driver::storageNamed(StringRef name) {
  for (const auto &each : namesOf<std::optional<DType>>())
    if (each.name == name)
      return *each.value;
  return DType::F32;
}

/// The rows of Options.def that have a flag.
static std::vector<OptionSpec> rowsOf(decltype(OptionText::Run) commands) {
  std::vector<OptionSpec> options;
  for (const OptionText &text : optionTexts()) {
    if (text.commands != commands || text.flag == "--")
      continue;
    OptionSpec option{text.flag, text.value, text.help, text.choices};
    options.push_back(isPathWord(text.value) ? reads(option) : option);
  }
  return options;
}

std::vector<OptionSpec> driver::planOptions() { return rowsOf(OptionText::Plan); }

std::vector<OptionSpec> driver::runOptions() {
  std::vector<OptionSpec> options = rowsOf(OptionText::Run);
  llvm::append_range(options, planOptions());
  return options;
}

OptionSpec driver::updateOption() {
  static const std::string names = listOfNames<patch::UpdateKind>();
  return {"--update", "NAME", names, rowOf(Option::Update).choices};
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

Expected<std::optional<std::vector<int64_t>>> driver::keptPositions(const Arguments &arguments) {
  auto text = arguments.get("--keep");
  if (!text)
    return std::nullopt;
  if (*text == "none")
    return std::vector<int64_t>();
  Expected<std::vector<int64_t>> positions = parsePositions(*text, "--keep");
  if (!positions)
    return positions.takeError();
  return std::move(*positions);
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

/// Reads an option of Options.def into its field. `chosen` is the value that makes a bool true.
template <typename T>
static Error read(const Arguments &arguments, StringRef flag, T &field, StringRef chosen) {
  auto text = arguments.get(flag);
  if (!text)
    return Error::success();
  if constexpr (std::is_same_v<T, bool>) {
    field = (*text == chosen) != flag.starts_with("--no-");
  } else if constexpr (hasNames<T>) {
    for (const Named<T> &each : namesOf<T>())
      if (each.name == *text)
        field = each.value;
  } else if constexpr (std::is_same_v<T, std::string>) {
    field = text->str();
  } else if constexpr (std::is_integral_v<T>) {
    auto number = arguments.integer(flag, 0, INT32_MAX, field);
    if (!number)
      return number.takeError();
    field = *number;
  } else if constexpr (std::is_same_v<T, WeightSource>) {
    Expected<WeightSource> weights = weightSource(arguments);
    if (!weights)
      return weights.takeError();
    field = *weights;
  } else if constexpr (!std::is_same_v<T, std::optional<uint64_t>>) {
    llvm::SmallVector<StringRef> names;
    text->split(names, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    for (StringRef name : names)
      field.push_back(name.trim().str());
    if (names.empty())
      return makeError(flag + ": found no name, expected parameters separated by commas");
  }
  return Error::success();
}

static StringRef lastOf() { return ""; }
static StringRef lastOf(StringRef, StringRef last) { return last; }

Expected<LoadOptions> driver::loadOptions(const Arguments &arguments) {
  LoadOptions options;
  if (auto threads = arguments.integer("--threads", 1, 1024, 1); !threads)
    return threads.takeError();
#define CTXC_OPTION(NAME, WORDS, COMMANDS, FIELD, FLAG, VALUE, NAMES, ...)                         \
  if (Error error = read(arguments, "--" FLAG, options.FIELD, lastOf NAMES))                       \
    return std::move(error);
#include "ctxc/Session/Options.def"
  options.tokenizer = arguments.get("--tokenizer", "").str();
  Expected<PromptProducts> prompts = promptProducts(arguments);
  if (!prompts)
    return prompts.takeError();
  options.prompts = *prompts;
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
  Expected<bool> updates = arguments.has("--update") ? model.updatesDiffer() : true;
  if (!updates)
    return updates.takeError();
  if (!*updates)
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
  if (!arguments.has("--joint")) // whose kernels are others
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
