// ctxc verify
#include "Commands.h"
#include "JointPatch.h"
#include "LogitsFile.h"
#include "Prompt.h"
#include "StoredPatch.h"
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/Shard.h"
#include "tools/CommandLine/Streams.h"
#include "tools/CommandLine/Values.h"
#include "llvm/ADT/StringSet.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

/// What a call of verify asks for, besides RunOptions.
struct VerifyOptions {
  int64_t generate = 1;
  bool materialize = false;
  std::string patchFile, json, trace, logits;
  std::optional<double> tolerance;
  double traceTolerance = 1e-4;
};

/// Reads a number that must be positive and finite.
Expected<double> positive(StringRef option, StringRef text) {
  double value;
  if (text.getAsDouble(value) || !(value > 0) || value > 1e300)
    return makeError(option + ": found '" + text + "', expected a positive number");
  return value;
}

/// Refuses the options that --positions excludes: each position is the last token of a run of its
/// own, and its patch is always applied factored.
Error refuseWithPositions(const Arguments &arguments, StringRef what) {
  Error errors = Error::success();
  for (StringRef option : {"--generate", "--materialize", "--trace"})
    if (arguments.has(option))
      errors = llvm::joinErrors(std::move(errors),
                                makeError(option + ": does not go with " + what +
                                          ", which patches tokens of the prompt, many in one "
                                          "pass"));
  return errors;
}

Expected<VerifyOptions> parseOptions(const Arguments &arguments) {
  VerifyOptions options;
  auto generate = arguments.integer("--generate", 1, 1 << 20, 1);
  if (!generate)
    return generate.takeError();
  options.generate = *generate;
  options.materialize = arguments.has("--materialize");
  if (auto positions = promptPositions(arguments, 2); !positions)
    return positions.takeError();
  if (arguments.has("--positions"))
    if (Error error = refuseWithPositions(arguments, "--positions"))
      return std::move(error);
  options.patchFile = arguments.get("--patch", "");
  if (arguments.has("--position") && options.patchFile.empty())
    return makeError(
        "--position: names one of the patches of --patch FILE, which is not given; for "
        "positions of a prompt give --positions");
  options.json = arguments.get("--json", "");
  options.trace = arguments.get("--trace", "");
  options.logits = arguments.get("--logits", "");
  if (auto text = arguments.get("--tolerance")) {
    auto value = positive("--tolerance", *text);
    if (!value)
      return value.takeError();
    options.tolerance = *value;
  }
  if (auto text = arguments.get("--trace-tolerance")) {
    if (options.trace.empty())
      return makeError("--trace-tolerance: applies to --trace FILE, which is not given");
    auto value = positive("--trace-tolerance", *text);
    if (!value)
      return value.takeError();
    options.traceTolerance = *value;
  }
  return options;
}

/// Refuses the options whose values the file of --patch determines.
Error refuseWithPatch(const Arguments &arguments) {
  Error errors = Error::success();
  for (StringRef option :
       {"--tokens", "--prompt", "--chat", "--system", "--absorb", "--embeddings-at", "--positions",
        "--keep", "--generate", "--update", "--start-layer"})
    if (arguments.has(option))
      errors = llvm::joinErrors(std::move(errors),
                                makeError(option + ": does not go with --patch, whose file has "
                                                   "the tokens, kept positions and update"));
  return errors;
}

/// Fails where a patched parameter is not one that the program applies patches to.
Error checkLoadable(const Program &program, const Patch &patch, StringRef file) {
  llvm::StringSet<> loadable = loadableNames(program);
  Error errors = Error::success();
  for (const ParameterPatch &parameter : patch.parameters)
    if (!loadable.contains(parameter.parameter))
      errors = llvm::joinErrors(std::move(errors),
                                makeError(file + ": parameter " + parameter.parameter +
                                          ": no layer's plan patches it, so that it cannot be "
                                          "verified here"));
  return errors;
}

/// Whether the checkpoint has weights in blocks, which a patch file calls f32: as float32 they
/// would run in another arithmetic than the one that the patch was made in.
bool isQuantised(StringRef path) {
  auto checkpoint = Checkpoint::open(path);
  if (!checkpoint) {
    llvm::consumeError(checkpoint.takeError()); // whoever opens the model says why
    return false;
  }
  return llvm::any_of((*checkpoint)->tensors(),
                      [](const TensorView &view) { return isQuantized(view.dtype); });
}

class VerifyCommand {
public:
  VerifyCommand(const Arguments &arguments, VerifyOptions options)
      : arguments(arguments), options(std::move(options)) {}

  Expected<int> run() {
    if (Error error = open())
      return std::move(error);
    if (arguments.has("--joint"))
      return verifyJoint(arguments, *model, settings);
    if (Error error = makeTrace())
      return std::move(error);
    if (!options.logits.empty())
      settings.request.logits = logits.observer();
    TokenName name = model->tokenName();
    VerifyText text(out(), settings, name);
    Expected<Executor &> executor = model->executor();
    if (!executor)
      return executor.takeError();
    if (Error error = checkRequest(settings.request, *executor, settings.generate))
      return std::move(error);
    text.begin();
    Expected<VerifyResult> result = verifyAll(text);
    if (!result)
      return result.takeError();
    Expected<std::vector<RankFacts>> ranks = model->rankFacts();
    if (!ranks)
      return ranks.takeError();
    settings.ranks = std::move(*ranks);
    text.end(*result, model->times(),
             settings.request.positions.empty() ? generatedText(*model, result->steps) : "");
    if (Error error = write(*result, name))
      return std::move(error);
    return isVerified(summarize(result->steps), settings) ? ExitGood : ExitAgainst;
  }

private:
  Error open() {
    Expected<LoadOptions> loading = loadOptions(arguments);
    if (!loading)
      return loading.takeError();
    if (Error error = keptPositions(arguments).takeError())
      return error;
    if (!options.patchFile.empty())
      if (Error error = readPatch(*loading))
        return error;
    if (options.patchFile.empty())
      if (Error error = checkPromptOptions(arguments))
        return error;
    auto opened = openToRun(arguments, arguments.positional(0), std::move(*loading));
    if (!opened)
      return opened.takeError();
    model = std::move(*opened);
    Expected<VerifySettings> about = model->verifySettings();
    if (!about)
      return about.takeError();
    settings = std::move(*about);
    settings.generate = options.generate;
    settings.patchFile = options.patchFile;
    settings.embeddingsFile = arguments.get("--embeddings", "");
    settings.tolerance = options.tolerance;
    settings.request.materialize = options.materialize;
    if (!options.patchFile.empty())
      return takePatch();
    if (Error error = readPrompt(arguments, *model, settings))
      return error;
    auto positions = promptPositions(arguments, settings.request.tokens.size());
    if (!positions)
      return positions.takeError();
    settings.request.positions = std::move(*positions);
    return Error::success();
  }

  Error readPatch(LoadOptions &loading) {
    if (Error error = refuseWithPatch(arguments))
      return error;
    Expected<PatchSet> opened = PatchSet::open(options.patchFile);
    if (!opened)
      return opened.takeError();
    set = std::move(*opened);
    Expected<std::optional<int64_t>> position = givenPosition(arguments);
    if (!position)
      return position.takeError();
    // Where several are verified, the first one shows what they patch.
    auto first = set->read(position->value_or(set->positions().front()));
    if (!first)
      return first.takeError();
    patch = std::move(first->first);
    isOne = *position || set->positions().size() == 1;
    if (!isOne)
      if (Error error = refuseWithPositions(arguments, "--patch of several positions"))
        return error;
    metadata = isOne ? std::move(first->second) : set->last();
    if (!loading.storage && !arguments.positional(0).ends_with(".mlir") &&
        !isQuantised(arguments.positional(0)))
      loading.storage = storageNamed(metadata.dtype);
    loading.planning.update = *patch::symbolizeUpdateKind(metadata.update);
    return Error::success();
  }

  Error takePatch() {
    if (!model->checkpoint())
      return makeError("--patch: a patch file belongs to a checkpoint, and the weights are random");
    if (Error error = checkAgainst(*model->checkpoint(), patch, metadata))
      return error;
    auto tokens = storedInputs(arguments, metadata);
    if (!tokens)
      return tokens.takeError();
    settings.request.tokens = std::move(*tokens);
    settings.request.kept = metadata.kept;
    if (!isOne)
      settings.request.positions = set->positions().vec();
    if (metadata.factors != DType::F32) {
      bool isBfloat = metadata.factors == DType::BF16;
      settings.patchFactors = isBfloat ? "bf16" : "f16";
      settings.patchRounding = metadata.rounding;
      settings.request.roundoffs.patch = isBfloat ? bfloat16UnitRoundoff : float16UnitRoundoff;
    }
    Expected<const Program &> program = model->program();
    if (!program)
      return program.takeError();
    return checkLoadable(*program, patch, options.patchFile);
  }

  Error makeTrace() {
    if (options.trace.empty())
      return Error::success();
    if (model->options().engine != Engine::Reference) {
      auto second = model->makeExecutor(Engine::Reference);
      if (!second)
        return second.takeError();
      secondExecutor = std::move(*second);
    }
    trace.emplace(options.traceTolerance, settings.backend, secondExecutor.get(), "reference");
    settings.request.trace = &*trace;
    return Error::success();
  }

  Expected<VerifyResult> verifyAll(VerifyText &text) {
    if (options.patchFile.empty())
      return model->verify(settings.request, options.generate,
                           [&](const VerifyStep &step) { text.step(step); });
    if (!isOne)
      return model->verify(
          settings.request,
          [&](int64_t position) -> Expected<Patch> {
            auto stored = set->read(position);
            if (!stored)
              return stored.takeError();
            return std::move(stored->first);
          },
          [&](const VerifyStep &step) { text.step(step); });
    auto result = model->verify(settings.request, patch);
    if (result)
      text.step(result->steps.front());
    return result;
  }

  Error write(const VerifyResult &result, const TokenName &name) {
    if (trace) {
      trace->summarize(out());
      if (Error error = writeFileAtomically(options.trace, [&](llvm::raw_pwrite_stream &os) {
            trace->write(os);
            return Error::success();
          }))
        return error;
    }
    if (!options.logits.empty())
      if (Error error = logits.write(options.logits))
        return error;
    if (options.json.empty())
      return Error::success();
    return writeFileAtomically(options.json, [&](llvm::raw_pwrite_stream &os) {
      os << llvm::formatv("{0:2}\n", verifyJson(result, settings, model->times(), name));
      return Error::success();
    });
  }

  const Arguments &arguments;
  VerifyOptions options;
  std::unique_ptr<Model> model;
  VerifySettings settings;
  std::optional<PatchSet> set; ///< of --patch
  bool isOne = true;           ///< whether one patch of it is verified
  Patch patch;
  PatchMetadata metadata;
  std::unique_ptr<Executor> secondExecutor;
  std::optional<Trace> trace;
  LogitsFile logits;
};

} // namespace

static Expected<int> runVerify(const Arguments &arguments) {
  if (arguments.has("--joint"))
    if (Error error = checkJointRun(arguments, verifyCommand().options))
      return std::move(error);
  if (arguments.has("--go-on") && !arguments.has("--joint"))
    return makeError("--go-on: applies to --joint, which is not given");
  Expected<VerifyOptions> options = parseOptions(arguments);
  if (!options)
    return options.takeError();
  return VerifyCommand(arguments, std::move(*options)).run();
}

Command driver::verifyCommand() {
  Command command{
      "verify",
      "compute patches token by token and verify each in a separate run",
      {"MODEL"},
      promptOptions(),
      "For each generated token: runs the model with the context, computes the patches of all\n"
      "layers, runs the patched model without the context as an ordinary forward that sees\n"
      "nothing of the first run, and compares the logits. The unpatched model without the context\n"
      "is the control. If the patched run and the full run disagree, ctxc records this and goes "
      "on\n"
      "with the full run's token. The exit code is 0 if every token agrees, otherwise 1.\n"
      "With --positions, the tokens are the prompt's own: all their patches are made in one pass,\n"
      "and each is verified in a separate run.\n"
      "With --joint, one patch serves all tokens: it grows by a rank with each, and in the end "
      "its\n"
      "weights alone read the generated text again, from the first token.",
      "  ctxc verify examples/models/gemma3-kjv-1m --prompt 'And David said' --generate 20\n"
      "  ctxc verify gemma-3-270m --prompt @prompt.txt --generate 20 --json report.json\n"
      "  ctxc verify gemma-3-270m --tokens 2,818,5279 --update naive --dtype bf16 --materialize\n"
      "  ctxc verify gemma-3-270m --tokens @tokens.txt --keep 0-3 --backend reference\n"
      "  ctxc verify gemma-3-270m --prompt @prompt.txt --positions all\n"
      "  ctxc verify gemma-3-270m --prompt @prompt.txt --generate 100 --joint\n"
      "  ctxc verify gemma-3-270m-it --chat --system 'Answer in rhyme.' --prompt 'Who are you?' "
      "--absorb system\n"
      "  ctxc verify gemma-3-270m --patch patch.safetensors\n"
      "  ctxc verify gemma-3-270m --patch all.safetensors --position 12\n"
      "  ctxc verify gemma-3-270m --prompt ' Describe it:' --embeddings picture.npy\n"
      "  ctxc verify block.mlir --weights random:1 --tokens 1,2,3 --trace trace.jsonl\n",
      runVerify};
  std::vector<OptionSpec> own = {
      positionsOption(),
      {"--generate", "N",
       "how many tokens to generate and verify, unless the model ends its text before; default 1"},
      {"--joint", "",
       "one patch for all tokens, which grows with each; ctxc check says how many there can be"},
      goOnOption(),
      reads(
          {"--patch", "FILE",
           "check this stored patch instead, or all patches in the file, which names its tokens"}),
      positionOption(),
      {"--materialize", "",
       "add each patch to the weights, round them to their type, and run the ordinary\n"
       "forward on them"},
      {"--tolerance", "X", "a logit that differs by more than X is a mismatch too"},
      writes({"--json", "FILE", "write everything measured as JSON"}),
      writes({"--logits", "FILE",
              "write the logits of all steps as safetensors: full, patched and control,\n"
              "each (steps, vocabulary) in f32"}),
      writes({"--trace", "FILE",
              "write, as JSON lines, each layer's difference between the runs (full,\n"
              "patched, control; compiled, reference), and say where they first diverge"}),
      {"--trace-tolerance", "X",
       "what counts as divergence, relative to a layer's largest output; default 1e-4"}};
  own.push_back(shardOption());
  llvm::append_range(command.options, embeddingsOptions());
  command.options.insert(command.options.end(), own.begin(), own.end());
  for (OptionSpec &option : runOptions())
    command.options.push_back(option);
  return command;
}
