// ctxc patch
#include "Commands.h"
#include "PatchOutput.h"
#include "Prompt.h"
#include "ctxc/Support/Error.h"
#include "llvm/Support/Format.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;

static PatchMetadata metadataOf(const VerifySettings &settings) {
  PatchMetadata metadata;
  metadata.modelHash = settings.modelHash;
  metadata.tokens = settings.request.tokens;
  metadata.position = settings.request.tokens.size() - 1;
  metadata.kept = settings.request.kept;
  metadata.update = settings.update;
  metadata.dtype = settings.dtype;
  return metadata;
}

/// What was written, on one line, and a note where it is not exact.
static Error summarizePatch(Session &session, const PatchStep &step, llvm::StringRef path) {
  auto norms = measure(step.patch, session.executor().layers(), session.norms());
  if (!norms)
    return norms.takeError();
  LayerObligations all;
  for (const LayerObligations &layer : step.obligations) {
    all.harmless += layer.harmless;
    all.harmful += layer.harmful;
  }
  llvm::outs() << path << ": " << step.patch.parameters.size() << " parameters of "
               << session.settings().patchedLayers << " layers; norm of matrices "
               << llvm::format("%.3g", norms->total.matrix) << ", of vectors "
               << llvm::format("%.3g", norms->total.vector) << "\n";
  if (all.harmful)
    llvm::outs() << "note: " << all.harmful
                 << " divisors were zero where a change was needed; the patch is not exact there\n";
  return Error::success();
}

static Expected<int> run(const Arguments &arguments) {
  llvm::StringRef path = arguments.get("-o", "");
  if (Error error = llvm::joinErrors(checkPromptOptions(arguments), checkPatchOutput(arguments)))
    return std::move(error);
  Expected<RunOptions> options = RunOptions::parse(arguments);
  if (!options)
    return options.takeError();
  if (llvm::StringRef(options->weights).starts_with("random:"))
    return makeError("--weights: a patch file names the checkpoint that it was made for, and "
                     "random weights are none; expected --weights DIR");
  auto session = Session::open(arguments.positional(0), std::move(*options));
  if (!session)
    return session.takeError();
  VerifySettings settings = (*session)->settings();
  Expected<std::vector<int64_t>> tokens = promptTokens(arguments, **session);
  if (!tokens)
    return tokens.takeError();
  settings.request.tokens = std::move(*tokens);
  RunTimes times;
  Expected<PatchStep> step = makePatch((*session)->executor(), settings.request, times);
  if (!step)
    return step.takeError();
  if (Error error = writePatchOutput(arguments, **session, step->patch, metadataOf(settings)))
    return std::move(error);
  if (Error error = summarizePatch(**session, *step, path))
    return std::move(error);
  return ExitGood;
}

Command driver::patchCommand() {
  Command command{
      "patch",
      "write the patch of the last token, given the ones before it, to a file",
      {"MODEL"},
      promptOptions(),
      "The file is safetensors: for a parameter NAME either NAME.u and NAME.v, so that\n"
      "stored + u v^T is the patched parameter, or NAME.delta. With it, any program runs the last\n"
      "token alone, at its absolute position (after the kept tokens, run unpatched), and gets the\n"
      "logits of the whole context. Where only matrices are patched, an adapter for other "
      "programs\n"
      "can be written in its place.",
      "  ctxc patch gemma-3-270m --tokens 2,818,5279,529 -o patch.safetensors\n"
      "  ctxc patch gemma-3-270m --prompt @prompt.txt --keep 0-3 -o patch.safetensors\n"
      "  ctxc patch llama --tokens 2,818,5279,529 --format=peft -o adapter\n"
      "  ctxc verify gemma-3-270m --patch patch.safetensors\n"
      "  ctxc apply gemma-3-270m patch.safetensors -o patched-model\n",
      run};
  for (OptionSpec &option : patchOutputOptions())
    command.options.push_back(option);
  for (OptionSpec &option : runOptions())
    command.options.push_back(option);
  return command;
}
