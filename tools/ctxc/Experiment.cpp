// ctxc experiment: reads the command line, runs an experiment of lib/Experiments, and has its
// records drawn.
#include "Commands.h"
#include "DrawRecords.h"
#include "MemoryNeed.h"
#include "ctxc/Experiments/Lab.h"
#include "ctxc/Lowering/CpuTarget.h"
#include "ctxc/Program/ModelEnds.h"
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Support/Suggestion.h"
#include "tools/CommandLine/ModelArguments.h"
#include "tools/CommandLine/Streams.h"
#include "tools/CommandLine/Values.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/StringSaver.h"
#include "llvm/TargetParser/Host.h"
#include <chrono>
#include <thread>

using namespace ctxc;
using namespace ctxc::driver;
using namespace ctxc::experiments;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::json::Array;
using llvm::json::Object;

namespace {

/// The names in a list separated by commas, each one of `choices`.
Expected<std::vector<std::string>> namesOf(const Arguments &arguments, StringRef option,
                                           llvm::ArrayRef<StringRef> choices) {
  llvm::SmallVector<StringRef> words;
  arguments.get(option, "").split(words, ',');
  std::vector<std::string> names;
  for (StringRef word : words) {
    word = word.trim();
    if (!llvm::is_contained(choices, word))
      return makeError(option + ": found '" + word + "', expected some of " +
                       llvm::join(choices, ", ") + ", separated by commas" +
                       suggestion(word, choices));
    if (!llvm::is_contained(names, word))
      names.push_back(word.str());
  }
  return names;
}

/// "--judge"
StringRef flagOf(const ExperimentOption &option) {
  static llvm::BumpPtrAllocator memory;
  static llvm::UniqueStringSaver flags(memory);
  return flags.save("--" + option.name);
}

class ExperimentCommand {
public:
  explicit ExperimentCommand(const Arguments &arguments) : arguments(arguments) {}

  Expected<int> run() {
    using Clock = std::chrono::steady_clock;
    Clock::time_point begin = Clock::now();
    if (Error error = find())
      return std::move(error);
    for (const ExperimentOption &option : experiment->options)
      if (auto value = arguments.get(flagOf(option)))
        options[option.name] = value->str();
    if (experiment->check)
      if (Error error = experiment->check(options))
        return std::move(error);
    if (Error error = openModel())
      return std::move(error);
    if (Error error = chooseWays())
      return std::move(error);
    if (Error error = readPrompts())
      return std::move(error);
    for (const Prompt &prompt : prompts)
      model->warnOfLength(prompt.tokens.size() + generate);
    if (Error error = checkMemory())
      return std::move(error);
    auto records = Records::open(directory, settings(), about());
    if (!records)
      return records.takeError();
    if ((*records)->found())
      err() << printableLine((*records)->path()) << ": goes on after "
            << counted((*records)->found(), "record") << "\n";

    Progress progress(llvm::errs(), llvm::sys::Process::StandardErrIsDisplayed());
    Lab lab{*model,  **records,      progress,           directory, prompts, generate,       dtypes,
            updates, /*options=*/{}, model->tokenName(), hash,      layers,  isBidirectional};
    lab.options = options;
    Error error = experiment->run(lab);
    progress.finish();
    if (error)
      return std::move(error);
    double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    size_t added = (*records)->size() - (*records)->found();
    if (added)
      if (Error error = (*records)->note(Object{{"seconds", seconds}, {"records", added}}))
        return std::move(error);
    out() << printableLine((*records)->path()) << ": " << counted((*records)->size(), "record")
          << ", " << added << " of them new, in " << llvm::formatv("{0:F1}", seconds) << " s\n";
    if (Error error =
            drawRecords(directory, arguments.get("--python", ""), arguments.has("--force")))
      return std::move(error);
    return ExitGood;
  }

private:
  /// Finds the experiment, and checks that no option is given that only other experiments have.
  Error find() {
    StringRef name = arguments.positional(0);
    experiment = findExperiment(name);
    std::vector<StringRef> names;
    for (const Experiment &each : experiments::experiments())
      names.push_back(each.name);
    if (!experiment)
      return makeError("unknown experiment '" + name + "', expected one of " +
                       llvm::join(names, ", ") + suggestion(name, names));
    for (const Experiment &other : experiments::experiments())
      for (const ExperimentOption &option : other.options)
        if (arguments.has(flagOf(option)) && !has(*experiment, option.name))
          return makeError(flagOf(option) + ": applies to the experiment " + other.name +
                           ", and not to " + name);
    directory = arguments.get("-o", "").str();
    return Error::success();
  }

  static bool has(const Experiment &experiment, StringRef option) {
    return llvm::any_of(experiment.options,
                        [&](const ExperimentOption &own) { return own.name == option; });
  }

  /// Plans the model. Weights are not read yet, except to compute their hash.
  Error openModel() {
    LoadOptions options;
    options.needWeights = false;
    Expected<WeightSource> weights = weightSource(arguments);
    if (!weights)
      return weights.takeError();
    options.weights = *weights;
    auto threads = arguments.integer("--threads", 1, 1024, 0);
    if (!threads)
      return threads.takeError();
    options.threads = *threads;
    StringRef path = arguments.positional(1);
    bool isText = path.ends_with(".mlir");
    if (isText && options.weights.isModelsOwn())
      return makeError(path + ": has no weights; give a checkpoint with --weights DIR, or "
                              "--weights random:SEED");
    auto opened = driver::openModel(path, std::move(options));
    if (!opened)
      return opened.takeError();
    model = std::move(*opened);
    Expected<const Program &> program = model->program();
    if (!program)
      return program.takeError();
    if (program->steps.empty())
      return makeError(path + ": has blocks and no xf.model; expected a model, to run it");
    layers = program->layers;
    vocabulary = idsOf(*program);
    if (isHeadless(*program))
      return makeError(path + ": has no head; expected a model that predicts tokens, since "
                              "experiments compare what it predicts");
    isBidirectional = ctxc::isBidirectional(*program);
    Expected<bool> differ = model->updatesDiffer();
    if (!differ)
      return differ.takeError();
    updatesDiffer = *differ;
    // The types of an .mlir file's weights, and of quantised weights, cannot be chosen.
    auto isInBlocks = [](const TensorView &tensor) { return isQuantized(tensor.dtype); };
    hasTypes =
        !isText && model->checkpoint() && llvm::none_of(model->checkpoint()->tensors(), isInBlocks);
    if (isText) {
      hash = arguments.get("--weights", "").str();
      return Error::success();
    }
    Expected<std::string> identity = model->hash();
    if (!identity)
      return identity.takeError();
    hash = *identity;
    return Error::success();
  }

  /// Chooses types and updates: those asked for, or else those of the experiment that the model
  /// allows.
  Error chooseWays() {
    auto all =
        arguments.integer("--generate", 1, 1 << 20, isBidirectional ? 1 : experiment->generate);
    if (!all)
      return all.takeError();
    generate = *all;
    if (isBidirectional && generate > 1)
      return makeError("--generate: the model is bidirectional: a token more would change the runs "
                       "of those before it; expected 1");
    if (!hasTypes && arguments.has("--dtypes"))
      return makeError("--dtypes: " + arguments.positional(1) +
                       " gives each parameter's type itself; leave it out");
    if (!updatesDiffer && arguments.has("--updates"))
      return makeError("--updates: applies to blocks that end in a trainable scale after an RMS "
                       "norm (Gemma's post-norms), and no block of " +
                       arguments.positional(1) + " does; leave it out");
    for (StringRef dtype : experiment->dtypes)
      dtypes.push_back(dtype.str());
    for (StringRef update : experiment->updates)
      updates.push_back(update.str());
    if (arguments.has("--dtypes")) {
      auto names = namesOf(arguments, "--dtypes", storageNames());
      if (!names)
        return names.takeError();
      dtypes = std::move(*names);
    }
    if (arguments.has("--updates")) {
      auto names = namesOf(arguments, "--updates", updateOption().choices);
      if (!names)
        return names.takeError();
      updates = std::move(*names);
    }
    if (!hasTypes)
      dtypes = {""};
    if (!updatesDiffer)
      updates = {"least"};
    return Error::success();
  }

  /// Reads one prompt from each line: text, or token ids where the model has no tokenizer.
  Error readPrompts() {
    if (!experiment->takesPrompts) {
      if (arguments.has("--prompts"))
        return makeError("--prompts: the experiment " + experiment->name +
                         " has inputs of its own; leave it out");
      return Error::success();
    }
    std::vector<std::string> lines;
    std::string where = "--prompts: ";
    if (auto file = arguments.get("--prompts")) {
      where += *file;
      where += ": ";
      auto text = readSmallFile(*file, 64 << 20);
      if (!text)
        return text.takeError();
      llvm::SmallVector<StringRef> split;
      StringRef(*text).split(split, '\n');
      for (StringRef line : split)
        if (!line.trim().empty())
          lines.push_back(line.trim().str());
      if (lines.empty())
        return makeError(*file + ": has no prompt, expected one a line");
    } else if (model->hasTokenizer()) {
      for (StringRef prompt : paperPrompts())
        lines.push_back(prompt.str());
    } else {
      for (const std::vector<int64_t> &ids : madeUpPrompts(vocabulary))
        lines.push_back(
            llvm::join(llvm::map_range(ids, [](int64_t id) { return std::to_string(id); }), ","));
    }
    for (const std::string &line : lines) {
      auto tokens = model->hasTokenizer() ? model->tokenize(line)
                                          : parseIntegers(line, StringRef(where).drop_back(2));
      if (!tokens)
        return tokens.takeError();
      for (int64_t token : *tokens)
        if (token < 0 || token >= vocabulary)
          return makeError(where + "token " + llvm::Twine(token) + ", expected ids from 0 to " +
                           llvm::Twine(vocabulary - 1));
      if (tokens->size() < 2)
        return makeError(where + "'" + line +
                         "' is fewer than two tokens, a context and the "
                         "last token, which is run after it");
      prompts.push_back({line, std::move(*tokens)});
    }
    return keepTokens();
  }

  /// As the other commands do without --keep.
  Error keepTokens() {
    for (Prompt &prompt : prompts) {
      Expected<KeptTokens> kept = model->keptByDefault(toInputs(prompt.tokens));
      if (!kept)
        return kept.takeError();
      prompt.kept = std::move(kept->positions);
      if (!kept->why.empty() && &prompt == &prompts.front())
        out() << "kept in reduced runs: position" << (prompt.kept.size() == 1 ? " " : "s ")
              << positionsText(prompt.kept) << ", since " << kept->why << "\n";
    }
    return Error::success();
  }

  Error checkMemory() {
    auto limit = arguments.integer("--memory", 1, 1 << 30, 0);
    if (!limit)
      return limit.takeError();
    return driver::checkMemory(*model, dtypes, *limit ? uint64_t(*limit) << 20 : machineMemory());
  }

  Object settings() const {
    Array texts;
    for (const Prompt &prompt : prompts) {
      Object text{{"text", prompt.text}, {"tokens", Array(prompt.tokens)}};
      if (!prompt.kept.empty())
        text["kept"] = Array(prompt.kept);
      texts.push_back(std::move(text));
    }
    Object own;
    for (const auto &[name, value] : options)
      own["--" + name.str()] = value;
    return Object{{"experiment", experiment->name},
                  {"model", arguments.positional(1)},
                  {"hash", hash},
                  {"layers", layers},
                  {"vocabulary", vocabulary},
                  {"prompts", std::move(texts)},
                  {"generate", generate},
                  {"dtypes", Array(dtypes)},
                  {"updates", Array(updates)},
                  {"options", std::move(own)}};
  }

  Object about() const {
    std::string command =
        ("ctxc experiment " + experiment->name + " " + arguments.positional(1)).str();
    for (StringRef option :
         {"--prompts", "--generate", "--dtypes", "--updates", "--weights", "--threads"})
      if (auto value = arguments.get(option))
        command += (" " + option + " " + *value).str();
    for (const ExperimentOption &option : experiment->options)
      if (auto value = arguments.get(flagOf(option)))
        command += (" " + flagOf(option) + " " + *value).str();
    command += " -o " + directory;
    int64_t threads = *arguments.integer("--threads", 1, 1024, 0);
    return Object{{"paper", experiment->paper},
                  {"summary", experiment->summary},
                  {"command", command},
                  {"machine", Object{{"processor", llvm::sys::getHostCPUName()},
                                     {"cores", int64_t(std::thread::hardware_concurrency())},
                                     {"threads", threads},
                                     {"memory", int64_t(machineMemory())}}},
                  {"versions", Object{{"ctxc", CTXC_VERSION}, {"llvm", LLVM_VERSION_STRING}}}};
  }

  const Arguments &arguments;
  const Experiment *experiment = nullptr;
  OptionValues options; ///< the experiment's own
  std::string directory;
  std::unique_ptr<Model> model;
  std::string hash;
  int64_t layers = 0, vocabulary = 0;
  bool isBidirectional = false, updatesDiffer = false, hasTypes = false;
  std::vector<Prompt> prompts;
  std::vector<std::string> dtypes, updates;
  int64_t generate = 0;
};

} // namespace

static Expected<int> runExperiment(const Arguments &arguments) {
  return ExperimentCommand(arguments).run();
}

/// The list of experiments, with the paper's figures.
static StringRef description() {
  static const std::string text = [] {
    std::string text =
        "Runs one of the paper's experiments, or one of ctxc's own, on MODEL. ctxc writes the "
        "data\n"
        "to records.jsonl in DIR: the settings and the machine in the first line, then an object\n"
        "for each token and setting. tools/plot_experiment.py draws them: an SVG and a PNG for\n"
        "each figure, and index.html with all of them. The same command continues an interrupted\n"
        "run.\n"
        "The paper's five prompts are the default; if MODEL has no tokenizer, five made-up\n"
        "prompts of 12 token ids.\n\nexperiments:\n";
    llvm::raw_string_ostream os(text);
    for (const Experiment &experiment : experiments::experiments()) {
      os << "  " << llvm::left_justify(experiment.name, 14);
      llvm::SmallVector<StringRef> lines;
      experiment.summary.split(lines, '\n');
      for (StringRef line : lines)
        os.indent(line.data() == lines[0].data() ? 0 : 16) << line << "\n";
      os.indent(16) << "(" << experiment.paper << ")\n";
    }
    text.pop_back();
    return text;
  }();
  return text;
}

Command driver::experimentCommand() {
  static const std::string updates = "one or more of " + llvm::join(updateOption().choices, ", ");
  Command command{
      "experiment",
      "run the paper's experiments: data, plots and a page",
      {"NAME", "MODEL"},
      {writesInto({"-o", "DIR", "directory of data, plots and page, for one experiment",
                   /*choices=*/{}, /*required=*/true}),
       reads({"--prompts", "FILE",
              "a prompt on each line; token ids separated by commas if MODEL has no tokenizer"}),
       {"--generate", "N", "tokens to generate for each prompt; each experiment has a default"},
       {"--dtypes", "TYPES", "one or more of f32, bf16 and f16, separated by commas"},
       {"--updates", "NAMES", updates},
       {"--threads", "N", "threads of the kernels; default: one per core"},
       reads(
           {"--weights", "WEIGHTS", "for an .mlir model: a checkpoint directory, or random:SEED"}),
       reads({"--python", "PYTHON",
              "a Python with matplotlib, which draws the records; default: $CTXC_PYTHON; without "
              "both, nothing is drawn"}),
       {"--memory", "MIB", "memory that the run may use; default: what the machine has"}},
      description(),
      "  ctxc experiment generation examples/models/gemma3-kjv-1m -o build/kjv-generation\n"
      "  ctxc experiment generation gemma-3-270m --generate 20 -o build/generation\n",
      runExperiment};
  for (const Experiment &experiment : experiments::experiments())
    for (const ExperimentOption &option : experiment.options)
      if (llvm::none_of(command.options,
                        [&](const OptionSpec &known) { return known.name == flagOf(option); }))
        command.options.push_back(isPathWord(option.value)
                                      ? reads({flagOf(option), option.value, option.help})
                                      : OptionSpec{flagOf(option), option.value, option.help});
  return command;
}
