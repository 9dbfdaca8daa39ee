// ctxc patch
#include "Commands.h"
#include "JointPatch.h"
#include "PatchOutput.h"
#include "Prompt.h"
#include "ctxc/Export/PatchDirectory.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "ctxc/Support/Timer.h"
#include "tools/CommandLine/Shard.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/Support/Format.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;

static void noteHarmful(int64_t divisors) {
  if (divisors)
    out() << "note: " << counted(divisors, "divisor") << (divisors == 1 ? " was" : " were")
          << " zero where a change was needed; the patch is not exact there\n";
}

/// The norms of a patch that is no larger than patches are.
static Expected<PatchNorm> normOf(Model &model, const VerifySettings &settings,
                                  const Patch &patch) {
  Expected<PatchNorms &> known = model.norms();
  if (!known)
    return known.takeError();
  auto norms = measure(patch, settings.layers, *known);
  if (!norms)
    return norms.takeError();
  if (std::string why = whyTooLarge(norms->total); !why.empty())
    return makeError("nothing is written: " + why);
  return norms->total;
}

static void noteKept(const VerifySettings &settings) {
  if (!settings.whyKept.empty())
    out() << "kept in the reduced run: position" << (settings.request.kept.size() == 1 ? " " : "s ")
          << positionsText(settings.request.kept) << whyKeptText(settings, "") << "\n";
}

/// Prints what was written on one line, and a note where the patch is not exact.
static void summarizePatch(const VerifySettings &settings, const PatchStep &step,
                           const PatchNorm &norm, const PatchMetadata &metadata,
                           llvm::StringRef path) {
  LayerObligations all;
  for (const LayerObligations &layer : step.obligations) {
    all.harmless += layer.harmless;
    all.harmful += layer.harmful;
  }
  out() << printableLine(path) << ": " << counted(step.patch.parameters.size(), "parameter")
        << " of " << counted(settings.patchedLayers, "layer") << "; norm of matrices "
        << llvm::format("%.3g", norm.matrix) << ", of vectors " << llvm::format("%.3g", norm.vector)
        << roundingText(metadata.factors, metadata.rounding) << "\n";
  noteKept(settings);
  noteHarmful(all.harmful);
}

/// Says in `metadata` that `patch` is stored in `factors`, and what that takes of it.
static Error setFactors(PatchMetadata &metadata, const Patch &patch, DType factors) {
  Expected<double> rounding = roundingOf(patch, factors);
  if (!rounding)
    return rounding.takeError();
  metadata.factors = factors;
  metadata.rounding = *rounding;
  return Error::success();
}

/// Makes the patches of several positions, and writes each as soon as it is made.
static Expected<int> runEach(const Arguments &arguments, Model &model,
                             const VerifySettings &settings) {
  llvm::StringRef path = arguments.get("-o", "");
  RunTimes times;
  double writing = 0;
  int64_t harmful = 0;
  size_t parameters = 0;
  PatchNorm largest;
  Expected<Executor &> executor = model.executor();
  if (!executor)
    return executor.takeError();
  if (Error error = checkRequest(settings.request, *executor))
    return std::move(error);
  auto makeAll = [&](PatchWriter write) {
    return model.positions(
        settings.request,
        [&](const TokenPatch &given) -> Error {
          Timer timer(writing);
          Expected<Patch> patch = given.patch();
          if (!patch)
            return patch.takeError();
          auto norm = normOf(model, settings, *patch);
          if (!norm)
            return makeError("position " + llvm::Twine(given.position) + ": " +
                             llvm::toString(norm.takeError()));
          largest.matrix = std::max(largest.matrix, norm->matrix);
          largest.vector = std::max(largest.vector, norm->vector);
          parameters = patch->parameters.size();
          for (const LayerObligations &layer : given.obligations)
            harmful += layer.harmful;
          auto metadata = model.metadata(settings.request, given.position);
          return metadata ? write(*patch, *metadata) : metadata.takeError();
        },
        &times);
  };
  double rounding = 0;
  const DType factors = factorsType(arguments);
  if (isOneFile(arguments)) {
    auto last = model.metadata(settings.request, settings.request.positions.back());
    if (!last)
      return last.takeError();
    last->factors = factors;
    Expected<double> written = writePatchSet(path, settings.request.positions, *last, makeAll);
    if (!written)
      return written.takeError();
    rounding = *written;
  } else if (Error error =
                 writePatchDirectory(path, settings.request.tokens.size() - 1, [&](PatchWriter w) {
                   return makeAll([&](const Patch &patch, const PatchMetadata &about) -> Error {
                     PatchMetadata stored = about;
                     if (Error error = setFactors(stored, patch, factors))
                       return error;
                     rounding = std::max(rounding, stored.rounding);
                     return w(patch, stored);
                   });
                 })) {
    return std::move(error);
  }
  out() << printableLine(path) << ": " << counted(settings.request.positions.size(), "patch")
        << (settings.request.positions.size() == 1 ? ", of position " : ", of positions ")
        << positionsText(settings.request.positions) << "\n"
        << "each " << counted(parameters, "parameter") << " of "
        << counted(settings.patchedLayers, "layer") << "; norm of matrices at most "
        << llvm::format("%.3g", largest.matrix) << ", of vectors "
        << llvm::format("%.3g", largest.vector) << roundingText(factors, rounding) << "\n"
        << llvm::format("time: prefill %.2f s, patch %.2f s, write %.2f s\n", times.prefill,
                        times.patch, writing);
  noteKept(settings);
  noteHarmful(harmful);
  return ExitGood;
}

static Expected<int> runPatch(const Arguments &arguments) {
  llvm::StringRef path = arguments.get("-o", "");
  if (Error error = checkJointOptions(arguments, patchCommand().options))
    return std::move(error);
  if (arguments.has("--joint"))
    return runJoint(arguments);
  if (Error error = llvm::joinErrors(checkPromptOptions(arguments), checkPatchOutput(arguments)))
    return std::move(error);
  if (auto positions = promptPositions(arguments, 2); !positions)
    return positions.takeError();
  Expected<LoadOptions> options = loadOptions(arguments);
  if (!options)
    return options.takeError();
  if (Error error = keptPositions(arguments).takeError())
    return std::move(error);
  if (options->weights.seed)
    return makeError("--weights: a patch file names the checkpoint that it was made for, and "
                     "random weights are none; expected --weights DIR");
  auto opened = openToRun(arguments, arguments.positional(0), std::move(*options));
  if (!opened)
    return opened.takeError();
  Model &model = **opened;
  Expected<VerifySettings> settings = model.verifySettings();
  if (!settings)
    return settings.takeError();
  if (Error error = readPrompt(arguments, model, *settings))
    return std::move(error);
  int64_t last = settings->request.tokens.size() - 1;
  auto positions = promptPositions(arguments, last + 1);
  if (!positions)
    return positions.takeError();
  settings->request.positions = std::move(*positions);
  if (arguments.has("--positions"))
    return runEach(arguments, model, *settings);
  StreamSizes sizes;
  settings->request.sizes = &sizes;
  Expected<PatchStep> step = model.patch(settings->request);
  if (!step)
    return step.takeError();
  auto metadata = model.metadata(settings->request, last);
  if (!metadata)
    return metadata.takeError();
  auto norm = normOf(model, *settings, step->patch);
  if (!norm)
    return norm.takeError();
  if (Error error = setFactors(*metadata, step->patch, factorsType(arguments)))
    return std::move(error);
  if (Error error = writePatchOutput(arguments, model, step->patch, *metadata))
    return std::move(error);
  summarizePatch(*settings, *step, *norm, *metadata, path);
  if (std::string why = replayWarning(
          settings->replay, replayErrorIn(settings->replay, *step, sizes, settings->sink));
      !why.empty())
    err() << "ctxc: warning: " << why << "; keep a token in front (--keep 0), or replay in f32\n";
  return ExitGood;
}

Command driver::patchCommand() {
  Command command{
      "patch",
      "write the patch that replaces the tokens before the last one to a file",
      {"MODEL"},
      promptOptions(),
      "The file is in the safetensors format. For a parameter NAME it has either NAME.u and\n"
      "NAME.v, where stored + u v^T is the patched parameter, or NAME.delta. With it, any program\n"
      "can run only the last token, at its absolute position (after the kept tokens, which run\n"
      "unpatched), and gets the logits of the whole context. If only matrices are patched, ctxc\n"
      "can write an adapter for other programs instead (--format).\n"
      "With --positions, the patches of many tokens are made in one pass, each for the tokens\n"
      "before it. They are written to one file each, such as position-0012.safetensors, in a new\n"
      "directory; or to one file, if its name ends in .safetensors, whose tensors have a leading\n"
      "dimension for the positions.\n"
      "With --joint, one patch is exact for all tokens of a text. It is written as a LoRA adapter\n"
      "for PEFT, once the patched model has read the text without the context as the model with\n"
      "it does.",
      "  ctxc patch gemma-3-270m --tokens 2,818,5279,529 -o patch.safetensors\n"
      "  ctxc patch gemma-3-270m --prompt @prompt.txt --keep 0-3 -o patch.safetensors\n"
      "  ctxc patch gemma-3-270m --prompt @prompt.txt --positions all -o patches\n"
      "  ctxc patch gemma-3-270m --prompt @prompt.txt --positions all --factors bf16 -o "
      "all.safetensors\n"
      "  ctxc patch llama --tokens 2,818,5279,529 --format=peft -o adapter\n"
      "  ctxc patch gemma-3-270m --joint --context prompt.txt --text answer.txt -o answer\n"
      "  ctxc verify gemma-3-270m --patch patch.safetensors\n"
      "  ctxc apply gemma-3-270m patch.safetensors -o patched-model\n",
      runPatch};
  llvm::append_range(command.options, embeddingsOptions());
  llvm::append_range(command.options, jointOptions());
  command.options.push_back(positionsOption());
  command.options.push_back(shardOption());
  for (OptionSpec &option : patchOutputOptions())
    command.options.push_back(option);
  for (OptionSpec &option : runOptions())
    command.options.push_back(option);
  return command;
}
