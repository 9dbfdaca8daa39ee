// ctxc distil, ctxc evaluate
#include "Commands.h"
#include "DistilTexts.h"
#include "ctxc/Export/LastingAdapter.h"
#include "ctxc/Report/CardReport.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "ctxc/Support/Timer.h"
#include "tools/CommandLine/Streams.h"
#include "tools/CommandLine/Values.h"
#include "llvm/Support/FormatVariadic.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

Error writeFile(StringRef path, const std::string &content) {
  return writeFileAtomically(path, [&](llvm::raw_pwrite_stream &os) {
    os << content;
    return Error::success();
  });
}

std::string jsonText(const Card &card, const CardSettings &settings) {
  return llvm::formatv("{0:2}\n", cardJson(card, settings));
}

Expected<DistilRequest> distilRequest(const Arguments &arguments) {
  DistilRequest request;
  auto rank = arguments.integer("--rank", 0, 1 << 20, request.fit.rank);
  if (!rank)
    return rank.takeError();
  request.fit.rank = *rank;
  request.fit.scales = !arguments.has("--matrices-only");
  StringRef protection = arguments.get("--protection", "0.3");
  if (protection.getAsDouble(request.protection) || !(request.protection >= 0) ||
      request.protection > 1e6)
    return makeError("--protection: found '" + protection + "', expected a number from 0 on");
  return request;
}

/// The value of --keep-share.
Expected<double> keptShare(const Arguments &arguments) {
  double share = 0;
  StringRef text = arguments.get("--keep-share", "0");
  if (text.getAsDouble(share) || !(share >= 0) || share >= 1)
    return makeError("--keep-share: found '" + text + "', expected a number from 0 to below 1");
  return share;
}

/// What both commands begin with.
struct Opened {
  std::unique_ptr<Model> model;
  ContextTexts context;
  int64_t seed;
};

Expected<Opened> open(const Arguments &arguments) {
  Opened opened;
  if (Error error = arguments.integer("--seed", 0, INT64_MAX / 4, 0).moveInto(opened.seed))
    return std::move(error);
  if (Error error = openForAdapters(arguments).moveInto(opened.model))
    return std::move(error);
  if (Error error = readContext(arguments, *opened.model).moveInto(opened.context))
    return std::move(error);
  return std::move(opened);
}

EvaluateRequest aboutOf(const Opened &opened) {
  EvaluateRequest about;
  about.context = opened.context.context;
  about.front = opened.context.front;
  about.seed = opened.seed;
  return about;
}

/// What a card says beside its numbers.
Expected<CardSettings> settingsOf(Opened &opened, const Adapter &adapter) {
  CardSettings settings;
  settings.model = opened.model->name().str();
  settings.contextTokens = opened.context.context.size();
  settings.prefix = adapter.prefix;
  settings.rank = adapter.rank();
  settings.bootstrapSeed = opened.seed;
  if (Error error = opened.model->hash().moveInto(settings.modelHash))
    return std::move(error);
  return settings;
}

Error checkDistilOptions(const Arguments &arguments) {
  if (Error error = checkContextOptions(arguments))
    return error;
  if (Error error = checkTextOptions(arguments))
    return error;
  StringRef directory = arguments.get("-o", "");
  if (llvm::sys::fs::exists(directory))
    return makeError("-o: " + directory + " already exists; name a directory that does not");
  return Error::success();
}

/// Adds the tokens of the context that stay in front.
Error keepTokens(Opened &opened, double share, DistilRequest &request) {
  const ContextTexts &context = opened.context;
  int64_t front = context.front.size(), behind = context.context.size() - front;
  auto kept = opened.model->mostSurprising(context.context, front, int64_t(share * behind));
  if (!kept)
    return kept.takeError();
  llvm::append_range(request.prefix, *kept);
  return Error::success();
}

/// The texts that the model wrote go beside the adapter.
Error addTexts(const DistilRequest &request, const EvaluateRequest &about, Model &model,
               std::vector<AdapterFile> &files) {
  for (auto [name, texts] :
       {std::pair("texts.jsonl", &request.texts), std::pair("held-out.jsonl", &about.texts),
        std::pair("protected.jsonl", &request.unrelated),
        std::pair("unrelated.jsonl", &about.unrelated)}) {
    auto lines = textLines(*texts, model);
    if (!lines)
      return lines.takeError();
    if (!lines->empty())
      files.push_back({name, std::move(*lines)});
  }
  return Error::success();
}

Expected<int> runDistil(const Arguments &arguments) {
  if (Error error = checkDistilOptions(arguments))
    return std::move(error);
  auto request = distilRequest(arguments);
  if (!request)
    return request.takeError();
  Expected<double> keeping = keptShare(arguments);
  if (!keeping)
    return keeping.takeError();
  auto opened = open(arguments);
  if (!opened)
    return opened.takeError();
  Model &model = *opened->model;
  auto texts = distilTexts(arguments, model, opened->context, opened->seed);
  if (!texts)
    return texts.takeError();
  EvaluateRequest about = aboutOf(*opened);
  about.texts = std::move(texts->heldOut);
  about.unrelated = std::move(texts->driftTexts);
  request->context = opened->context.context;
  request->prefix = opened->context.front;
  request->texts = std::move(texts->fitted);
  request->unrelated = std::move(texts->isProtected);
  if (*keeping > 0)
    if (Error error = keepTokens(*opened, *keeping, *request))
      return std::move(error);

  CardSettings::Fit fit;
  Expected<Distilled> made = [&] {
    Timer timer(fit.seconds);
    return model.distil(*request);
  }();
  if (!made)
    return made.takeError();
  auto card = model.evaluate(made->adapter, about);
  if (!card)
    return card.takeError();
  auto settings = settingsOf(*opened, made->adapter);
  if (!settings)
    return settings.takeError();
  fit.texts = request->texts.size();
  fit.tokens = made->tokens;
  fit.protectedTokens = made->protectedTokens;
  fit.seed = opened->seed;
  fit.splitsText = texts->splitsText;
  fit.sampledTokens = texts->sampledTokens;
  fit.sampleSeconds = texts->seconds;
  settings->fit = fit;
  if (*keeping > 0) {
    Adapter alone;
    alone.prefix = made->adapter.prefix;
    auto cardOfKept = model.evaluate(alone, about);
    if (!cardOfKept)
      return cardOfKept.takeError();
    settings->keptShare = cardOfKept->all.share();
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  writeCard(os, *card, *settings);
  std::vector<AdapterFile> files = {{"card.txt", text}, {"card.json", jsonText(*card, *settings)}};
  if (!arguments.has("--text"))
    if (Error error = addTexts(*request, about, model, files))
      return std::move(error);
  StringRef directory = arguments.get("-o", "");
  if (Error error = writeLastingAdapter(directory, made->adapter, *model.checkpoint(), files))
    return std::move(error);
  out() << text << "written to " << printableLine(directory) << "\n";
  return ExitGood;
}

Expected<int> runEvaluate(const Arguments &arguments) {
  if (Error error = checkContextOptions(arguments))
    return std::move(error);
  auto opened = open(arguments);
  if (!opened)
    return opened.takeError();
  Model &model = *opened->model;
  auto adapter =
      readLastingAdapter(arguments.positional(1), *model.checkpoint(), opened->context.front);
  if (!adapter)
    return adapter.takeError();
  EvaluateRequest about = aboutOf(*opened);
  if (Error error = readTexts(arguments, "--text", model).moveInto(about.texts))
    return std::move(error);
  if (arguments.has("--unrelated"))
    if (Error error = readTexts(arguments, "--unrelated", model).moveInto(about.unrelated))
      return std::move(error);
  auto card = model.evaluate(*adapter, about);
  if (!card)
    return card.takeError();
  auto settings = settingsOf(*opened, *adapter);
  if (!settings)
    return settings.takeError();
  writeCard(out(), *card, *settings);
  if (auto json = arguments.get("--json"))
    if (Error error = writeFile(*json, jsonText(*card, *settings)))
      return std::move(error);
  return ExitGood;
}

} // namespace

Command driver::distilCommand() {
  Command command{
      "distil",
      "fit an adapter that stands for a context, for all texts that follow it",
      {"MODEL"},
      contextOptions(),
      "Unlike a patch, which is exact for one token, the adapter lasts, and is approximate. The\n"
      "model reads each text with the context in front and without it, and for each layer the\n"
      "change of attention's output projection and then of the MLP's that makes the second most\n"
      "like the first follows in closed form. DIR gets an adapter for PEFT (and norms' scales, in\n"
      "modules_to_save), and a card, as text and as JSON, that says how good it is on text that "
      "was\n"
      "not fitted.\n"
      "FILE of texts is JSON lines (.jsonl), each with a prompt and an answer, or plain text, in\n"
      "which a line of three or more dashes divides texts. Each text follows the context directly.",
      "  ctxc distil gemma-3-270m --context persona.txt -o persona\n"
      "  ctxc distil gemma-3-270m --context persona.txt --prompts questions.txt -o persona\n"
      "  ctxc distil gemma-3-270m --context persona.txt --text chats.jsonl --rank 4 -o small\n"
      "  ctxc evaluate gemma-3-270m persona --context persona.txt --text other.jsonl\n",
      runDistil};
  const OptionSpec own[] = {
      writesInto({"-o", "DIR", "the directory to write; it must not exist", {}, true}),
      {"--rank", "K", "the rank of each matrix's change; default 16, 0: as it comes"},
      {"--protection", "X",
       "the weight of unrelated texts, relative to the others; default 0.3. Every second one\n"
       "is protected, the others tell the drift"},
      {"--keep-share", "X",
       "keep this share of the context's tokens in front, those that surprise the model most,\n"
       "and fit the rest; default 0"},
      {"--matrices-only", "", "leave norms' scales as they are"}};
  std::vector<OptionSpec> texts = textOptions();
  command.options.insert(command.options.begin(), texts.begin(), texts.end());
  command.options.insert(command.options.begin(), std::begin(own), std::end(own));
  return command;
}

Command driver::evaluateCommand() {
  Command command{"evaluate",
                  "say how good an adapter is in the place of a context",
                  {"MODEL", "DIR"},
                  contextOptions(),
                  "DIR is a LoRA adapter as PEFT writes it, of ctxc or of another program. The "
                  "texts should be\n"
                  "none that it was fitted on.",
                  "  ctxc evaluate gemma-3-270m persona --context persona.txt --text other.jsonl\n",
                  runEvaluate};
  const OptionSpec own[] = {reads({"--text", "FILE", "texts, as for `ctxc distil`", {}, true}),
                            writes({"--json", "FILE", "write the card as JSON, too"})};
  command.options.insert(command.options.begin(), std::begin(own), std::end(own));
  return command;
}
