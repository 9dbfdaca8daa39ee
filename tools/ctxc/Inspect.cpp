// ctxc inspect
#include "ctxc/Inspect/Inspect.h"
#include "Commands.h"
#include "JointPatch.h"
#include "Prompt.h"
#include "ctxc/InspectPage/InspectPage.h"
#include "ctxc/Report/InspectReport.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/Streams.h"
#include "tools/CommandLine/Values.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

/// The context is divided into more parts than these only on request (each token a part).
static constexpr size_t mostParts = 64;

namespace {

/// What a call asks for, besides RunOptions and the prompt.
struct InspectOptions {
  int64_t generate = 0;
  std::optional<int64_t> subject;
  int64_t nearest = 5;
  std::string by, json, html;
};

Expected<InspectOptions> parseOptions(const Arguments &arguments) {
  InspectOptions options;
  auto generate = arguments.integer("--generate", 0, 1 << 20, 0);
  auto subject = arguments.integer("--token", 0, INT32_MAX, 0);
  auto nearest = arguments.integer("--top", 1, 100, 5);
  if (Error errors = llvm::joinErrors(llvm::joinErrors(generate.takeError(), subject.takeError()),
                                      nearest.takeError()))
    return std::move(errors);
  options.generate = *generate;
  if (arguments.has("--token"))
    options.subject = *subject;
  options.nearest = *nearest;
  options.by = arguments.get("--by", "");
  options.json = arguments.get("--json", "");
  options.html = arguments.get("--html", "");
  return options;
}

/// Divides the context into the parts that the options ask for; by default into tokens, or into
/// sentences where it is long.
Error chooseParts(const InspectOptions &options, bool hasNames, const TokenName &name,
                  InspectRequest &request) {
  if (options.by == "sentence" && !hasNames)
    return makeError("--by sentence: the model has no tokenizer that would tell where one ends; "
                     "expected --by token");
  request.text = [&](int64_t token) { return name.bytes(token); };
  request.parts = options.by == "token" ? SIZE_MAX : mostParts;
  request.grain = options.by == "sentence" ? Grain::Sentence : Grain::Token;
  size_t context = request.subject.value_or(request.run.tokens.size() - 1);
  if (!options.by.empty() || context <= mostParts || !hasNames)
    return Error::success();
  std::vector<std::string> texts;
  for (const Input &input : llvm::ArrayRef(request.run.tokens).take_front(context))
    texts.push_back(name.bytes(input.token()));
  if (cutContext(texts, Grain::Sentence, mostParts).size() > 1)
    request.grain = Grain::Sentence;
  return Error::success();
}

Error writeOutputs(const InspectOptions &options, const Inspection &inspection,
                   const InspectSettings &settings, const TokenName &name) {
  auto write = [](const std::string &path,
                  llvm::function_ref<void(llvm::raw_ostream &)> content) -> Error {
    if (path.empty())
      return Error::success();
    return writeFileAtomically(path, [&](llvm::raw_pwrite_stream &os) {
      content(os);
      return Error::success();
    });
  };
  if (Error error = write(options.json, [&](llvm::raw_ostream &os) {
        os << llvm::formatv("{0:2}\n", inspectionJson(inspection, settings, name));
      }))
    return error;
  return write(options.html,
               [&](llvm::raw_ostream &os) { writeInspectPage(os, inspection, settings, name); });
}

Expected<int> runInspect(const Arguments &arguments) {
  if (Error error = checkPromptOptions(arguments))
    return std::move(error);
  if (arguments.has("--joint"))
    if (Error error = checkJointRun(arguments, inspectCommand().options))
      return std::move(error);
  Expected<InspectOptions> options = parseOptions(arguments);
  if (!options)
    return options.takeError();
  Expected<LoadOptions> loading = loadOptions(arguments);
  if (!loading)
    return loading.takeError();
  if (Error error = keptPositions(arguments).takeError())
    return std::move(error);
  auto opened = openToRun(arguments, arguments.positional(0), std::move(*loading));
  if (!opened)
    return opened.takeError();
  Model &model = **opened;
  Expected<VerifySettings> about = model.verifySettings();
  if (!about)
    return about.takeError();
  InspectSettings settings;
  settings.run = std::move(*about);
  settings.times = model.times();
  if (Error error = readPrompt(arguments, model, settings.run))
    return std::move(error);
  if (arguments.has("--joint")) {
    settings.run.generate = options->generate + 1;
    return inspectJoint(arguments, model, settings.run);
  }

  InspectRequest request;
  request.run = settings.run.request;
  request.generate = options->generate;
  request.subject = options->subject;
  request.nearest = options->nearest;
  TokenName name = model.tokenName();
  Expected<Tokenizer &> tokenizer = model.tokenizer();
  settings.hasNames = bool(tokenizer);
  if (!tokenizer)
    llvm::consumeError(tokenizer.takeError()); // tokens are then shown by their ids
  if (Error error = chooseParts(*options, settings.hasNames, name, request))
    return std::move(error);
  settings.grain = request.grain;
  Expected<Inspection> inspection = model.inspect(std::move(request));
  if (!inspection)
    return inspection.takeError();
  if (Error error = writeOutputs(*options, *inspection, settings, name))
    return std::move(error);
  printInspection(out(), *inspection, settings, name);
  return ExitGood;
}

} // namespace

Command driver::inspectCommand() {
  Command command{
      "inspect",
      "show what a context did to a token's weights, layer by layer",
      {"MODEL"},
      promptOptions(),
      "Makes the patch of each token, and examines one patch, by default the last token's:\n"
      "  - norms by layer and parameter, and relative to the parameter itself;\n"
      "  - cosines between each token's patch and the patch of the token before;\n"
      "  - what each layer's patch writes into the residual stream (the difference between the\n"
      "    layer's output with the whole patch and with unpatched output-side parameters; in a\n"
      "    block that ends with its output-side matrix, it has the direction of the patch's u),\n"
      "    and which tokens it points to, read through the model's own final norm, scale and head\n"
      "    (the logit lens);\n"
      "  - where it came from: the patch that the token would have if one token or sentence of\n"
      "    the context had never been read, with all others at their positions.\n"
      "docs/inspect.md says what each number means.\n"
      "With --joint, one patch serves the last token and all that are generated: shows how many\n"
      "directions it needs in each layer, and which tokens need which.",
      "  ctxc inspect examples/models/gemma3-kjv-1m --prompt 'And Joshua the son of Nun'\n"
      "  ctxc inspect gemma-3-270m --prompt @prompt.txt --generate 20 --token 30\n"
      "  ctxc inspect gemma-3-270m --prompt @prompt.txt --by sentence --html inspection.html\n",
      runInspect};
  std::vector<OptionSpec> own = {
      {"--token", "K",
       "examine the patch of the token at position K, 1 or more; default: the last\n"
       "of the prompt"},
      {"--generate", "N", "let the full run generate up to N tokens, and show their patches too"},
      {"--joint", "", "one patch for the last token of the prompt and those that are generated"},
      {"--by",
       "PART",
       "leave out one token, or one sentence, of the context at a time; default: a token,\n"
       "or a sentence if there are more than 64 tokens; more than 64 sentences are joined",
       {"token", "sentence"}},
      {"--top", "N", "how many tokens to name at each end of a direction; default 5"},
      writes({"--json", "FILE", "write everything found as JSON"}),
      writes({"--html", "FILE", "write a page of pictures; it needs no network"})};
  command.options.insert(command.options.end(), own.begin(), own.end());
  for (OptionSpec &option : runOptions())
    command.options.push_back(option);
  return command;
}
