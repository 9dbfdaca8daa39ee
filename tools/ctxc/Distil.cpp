// ctxc distil
#include "AdapterVerdict.h"
#include "CardParts.h"
#include "Commands.h"
#include "DistilEntries.h"
#include "DistilTexts.h"
#include "KeptTokens.h"
#include "Objective.h"
#include "OpenedContext.h"
#include "SeveralContexts.h"
#include "ctxc/Export/LastingAdapter.h"
#include "ctxc/Import/Import.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "ctxc/Support/Timer.h"
#include "tools/CommandLine/Streams.h"
#include "tools/CommandLine/TokenProgress.h"
#include "tools/CommandLine/Values.h"
#include <ctime>

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

/// Conversations are answers of many kinds to questions of many kinds: a stronger penalty recovers
/// more of those that were not fitted (docs/distil-measurements.md).
constexpr double ridgeOfConversations = 0.1;

/// Sets `number` to the value of an option, where it is given.
Error numberFromZero(const Arguments &arguments, StringRef option, double &number) {
  auto text = arguments.get(option);
  if (!text)
    return Error::success();
  double given = -1;
  if (text->getAsDouble(given) || !(given >= 0) || given > 1e6)
    return makeError(option + ": found '" + *text + "', expected a number from 0 on");
  number = given;
  return Error::success();
}

Expected<DistilRequest> distilRequest(const Arguments &arguments) {
  DistilRequest request;
  auto rank = arguments.integer("--rank", 0, 1 << 20, request.fit.rank);
  if (!rank)
    return rank.takeError();
  request.fit.rank = *rank;
  request.fitted = progressOnTerminal("matrices");
  request.stepped = progressOnTerminal("steps");
  if (Error error = arguments.integer("--refine", 0, 10000, 0).moveInto(request.fit.passes))
    return std::move(error);
  if (Error error =
          arguments.integer("--refine-others", 0, 1 << 20, 0).moveInto(request.fit.otherRank))
    return std::move(error);
  if (request.fit.otherRank > 0 && request.fit.passes == 0)
    return makeError("--refine-others: nothing is refined; expected --refine with it");
  if (request.fit.otherRank > 0 && arguments.has("--keep-cache"))
    return makeError("--refine-others: with --keep-cache the matrices that make keys and values "
                     "cannot change; expected one of both");
  request.fit.scales = !arguments.has("--matrices-only") && !arguments.has("--gguf");
  if (Error error = numberFromZero(arguments, "--protection", request.protection))
    return std::move(error);
  if (arguments.has("--chat"))
    request.fit.lambda = ridgeOfConversations;
  if (Error error = numberFromZero(arguments, "--ridge", request.fit.lambda))
    return std::move(error);
  return request;
}

Error checkDistilOptions(const Arguments &arguments) {
  if (Error error = checkEntriesOptions(arguments))
    return error;
  if (isProgramFile(arguments.positional(0)))
    for (StringRef option : {"--gguf", "--keep-cache", "--prefix-cache"})
      if (arguments.has(option))
        return makeError(option + ": an exported program has no cache, and llama.cpp has no names "
                                  "for its parameters; leave it out");
  if (arguments.has("--contexts")) {
    if (Error error = checkSeveralOptions(arguments))
      return error;
  } else if (Error error = checkContextOptions(arguments)) {
    return error;
  }
  if (Error error = checkTextOptions(arguments))
    return error;
  StringRef directory = arguments.get("-o", "");
  if (llvm::sys::fs::exists(directory))
    return makeError("-o: " + directory + " already exists; name a directory that does not");
  return Error::success();
}

/// Everything that `ctxc distil` fits and judges by.
struct Task {
  DistilRequest request;
  EvaluateRequest about;
  CardSettings::Fit fit;
};

/// Whether something of the context stays in front.
bool keepsTokens(const Task &task) { return task.request.prefix.size() > task.about.front.size(); }

/// The texts that the model wrote go beside the adapter.
Error addTexts(const DistilRequest &request, const EvaluateRequest &about, Model &model,
               std::vector<AdapterFile> &files) {
  for (auto [name, texts] :
       {std::pair("texts.jsonl", &request.texts), std::pair("choosing.jsonl", &request.choosing),
        std::pair("held-out.jsonl", &about.texts), std::pair("protected.jsonl", &request.unrelated),
        std::pair("unrelated.jsonl", &about.unrelated)}) {
    auto lines = textLines(*texts, model);
    if (!lines)
      return lines.takeError();
    if (!lines->empty())
      files.push_back({name, std::move(*lines)});
  }
  return Error::success();
}

/// What the kept tokens of an adapter recover by themselves.
Expected<double> shareOfKept(Model &model, const Adapter &adapter, const EvaluateRequest &about) {
  Adapter alone;
  alone.prefix = adapter.prefix;
  alone.seen = adapter.seen;
  auto card = model.evaluate(alone, about);
  if (!card)
    return card.takeError();
  return card->all.share();
}

Expected<Task> taskOf(const Arguments &arguments, Opened &opened, DistilRequest request,
                      const KeepOptions &kept) {
  Task task{std::move(request), aboutOf(opened), {}};
  task.request.context = opened.context.context;
  task.request.prefix = opened.context.front;
  task.request.front = opened.context.front;
  if (Error error = keepFile(kept, opened, task.request))
    return std::move(error);
  auto texts = distilTexts(arguments, *opened.model, opened.context, opened.seed);
  if (!texts)
    return texts.takeError();
  task.fit.texts = texts->fitted.size();
  if (task.request.fit.passes > 0)
    task.request.choosing = takeFifth(texts->fitted);
  task.fit.choosingTexts = task.request.choosing.size();
  task.fit.seed = opened.seed;
  task.fit.splitsText = texts->splitsText;
  task.fit.sampledTokens = texts->sampledTokens;
  task.fit.writtenPrompts = texts->writtenPrompts;
  task.fit.prompts = texts->prompts;
  task.fit.sampleSeconds = texts->seconds;
  task.about.texts = std::move(texts->heldOut);
  task.about.unrelated = std::move(texts->driftTexts);
  task.request.texts = std::move(texts->fitted);
  task.request.unrelated = std::move(texts->isProtected);
  if (Error error = keepTokens(kept, opened, task.request))
    return std::move(error);
  if (Error error = warnOfEqualTokens(opened, task.request))
    return std::move(error);
  return std::move(task);
}

/// The card's settings, with what the options ask for.
Expected<CardSettings> settingsOf(const Arguments &arguments, Opened &opened, const Task &task,
                                  const Adapter &adapter, const Card &card) {
  auto settings = settingsOf(opened, adapter);
  if (!settings)
    return settings.takeError();
  settings->fit = task.fit;
  if (Error error = addFailureTexts(*opened.model, task.about, card, *settings))
    return std::move(error);
  if (keepsTokens(task))
    if (Error error = shareOfKept(*opened.model, adapter, task.about).moveInto(settings->keptShare))
      return std::move(error);
  if (arguments.has("--curve"))
    if (Error error = curveOf(*opened.model, task.request, task.about,
                              pointOf(task.request.fit.rank, task.fit.tokens, card))
                          .moveInto(settings->curve))
      return std::move(error);
  if (arguments.has("--html") || opened.context.chat)
    if (Error error =
            exampleTexts(*opened.model, adapter, task.about, opened.context.chat != nullptr)
                .moveInto(settings->examples))
      return std::move(error);
  return settings;
}

/// The card of what was fitted. Of a refined adapter and of what the passes began with, the better
/// one stays: a refinement never ends worse than it began.
Expected<Card> judged(Model &model, Distilled &made, double strength, Task &task) {
  scale(made.adapter, strength);
  auto card = model.evaluate(made.adapter, task.about);
  if (!card || made.passes == 0 || !made.closedForm)
    return card;
  scale(*made.closedForm, strength);
  auto before = model.evaluate(*made.closedForm, task.about);
  if (!before || before->all.klAdapted >= card->all.klAdapted)
    return before ? std::move(card) : std::move(before);
  made.adapter = std::move(*made.closedForm);
  task.fit.dropsPasses = true;
  return before;
}

/// The card, the texts that the model wrote, and the adapter in other formats.
Expected<std::vector<AdapterFile>> filesOf(const Arguments &arguments, Model &model,
                                           const Task &task, const Adapter &adapter,
                                           const Card &card, const CardSettings &settings) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeCard(os, card, settings);
  std::vector<AdapterFile> files = {{"card.txt", text}, {"card.json", jsonText(card, settings)}};
  if (arguments.has("--html"))
    files.push_back({"card.html", pageText("ctxc distil", card, settings)});
  if (arguments.has("--gguf")) {
    auto bytes = lastingGguf(adapter, *model.checkpoint());
    if (!bytes)
      return bytes.takeError();
    files.push_back({"adapter.gguf", std::move(*bytes)});
  }
  if (keepsTokens(task) && model.hasTokenizer()) {
    auto tokenizer = model.tokenizer();
    if (!tokenizer)
      return tokenizer.takeError();
    auto kept =
        tokenizer->decode(llvm::ArrayRef(adapter.prefix).drop_front(task.about.front.size()));
    if (!kept)
      return kept.takeError();
    files.push_back({"prefix.txt", std::move(*kept)});
  }
  if (!arguments.has("--text"))
    if (Error error = addTexts(task.request, task.about, model, files))
      return std::move(error);
  return files;
}

Expected<int> runDistil(const Arguments &arguments) {
  if (Error error = checkDistilOptions(arguments))
    return std::move(error);
  auto objective = objectiveOf(arguments);
  if (!objective)
    return objective.takeError();
  auto request = distilRequest(arguments);
  if (!request)
    return request.takeError();
  if (arguments.has("--contexts"))
    return distilSeveral(arguments, std::move(*request));
  auto kept = keepOptions(arguments);
  if (!kept)
    return kept.takeError();
  auto opened = openContext(arguments);
  if (!opened)
    return opened.takeError();
  Model &model = *opened->model;
  auto form = chooseForm(arguments, model); // before anything is fitted
  if (!form)
    return form.takeError();
  if (arguments.has("--gguf"))
    if (Error error = lastingGguf(Adapter(), *model.checkpoint()).takeError())
      return std::move(error);
  auto task = taskOf(arguments, *opened, std::move(*request), *kept);
  if (!task)
    return task.takeError();
  auto strength = strengthOf(arguments);
  if (!strength)
    return strength.takeError();
  if (Error error = model.checkRoomToEvaluate(task->about)) // before anything is fitted
    return std::move(error);
  const std::clock_t start = std::clock();
  auto fitted = [&]() -> Expected<Fitted> {
    Timer timer(task->fit.seconds);
    if (form->count)
      return fitEntries(*form->count, model, task->request);
    return fitFor(*objective, model, task->request, task->about);
  }();
  if (!fitted)
    return fitted.takeError();
  task->fit.processorSeconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  Distilled *made = &fitted->made;
  task->fit.tokens = made->tokens;
  task->fit.protectedTokens = made->protectedTokens;
  task->fit.mostPasses = task->request.fit.passes;
  task->fit.passes = made->passes;
  task->fit.divergenceBefore = made->divergenceBefore;
  task->fit.divergenceAfter = made->divergenceAfter;
  auto card = judged(model, *made, *strength, *task);
  if (!card)
    return card.takeError();
  auto settings = settingsOf(arguments, *opened, *task, made->adapter, *card);
  if (!settings)
    return settings.takeError();
  settings->strength = *strength;
  settings->objective = arguments.get("--objective", "recover");
  if (*objective == DistilObjective::Recover)
    settings->objective.clear();
  settings->tradeOff = std::move(fitted->tried);
  settings->entriesTried = std::move(fitted->entriesTried);
  settings->whyWeights = std::move(form->whyNot);
  auto refuses = isRefused(arguments, *opened, {made->adapter, *card, *settings, task->about},
                           task->request.texts);
  if (!refuses)
    return refuses.takeError();
  if (*refuses)
    return ExitAgainst;
  auto files = filesOf(arguments, model, *task, made->adapter, *card, *settings);
  if (!files)
    return files.takeError();
  std::vector<KeysAndValues> cache;
  if (kept->writesCache)
    if (Error error = model.prefixCache(made->adapter).moveInto(cache))
      return std::move(error);
  StringRef directory = arguments.get("-o", "");
  if (Error error =
          writeLastingAdapter(directory, made->adapter, *model.checkpoint(), *files, cache))
    return std::move(error);
  out() << files->front().content << "written to " << printableLine(directory) << "\n";
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
      "model reads each text with the context in front and without it, and the second run is\n"
      "brought as close as possible to the first: by virtual entries of the KV cache, which stand\n"
      "in the context's place, or by changes of each layer's attention output projection and MLP\n"
      "output. ctxc writes to DIR an adapter for PEFT (prefix tuning, or LoRA with norms' scales\n"
      "in modules_to_save) or, for an exported program, changes by its parameters' names; and a\n"
      "card, as text and as JSON, that says how good the adapter is on text that was not fitted.\n"
      "A FILE of texts has JSON lines (.jsonl), each with a prompt and an answer, or plain text,\n"
      "in which lines of three or more dashes separate the texts. Each text follows the context\n"
      "directly.",
      "  ctxc distil gemma-3-270m --context persona.txt -o persona\n"
      "  ctxc distil gemma-3-270m --context persona.txt --prompts questions.txt -o persona\n"
      "  ctxc distil gemma-3-270m --context persona.txt --text chats.jsonl --rank 4 -o small\n"
      "  ctxc distil gemma-3-270m --contexts both.jsonl -o both\n"
      "  ctxc evaluate gemma-3-270m persona --context persona.txt --text other.jsonl\n",
      runDistil};
  const OptionSpec own[] = {
      writesInto({"-o", "DIR", "the directory to write; it must not exist", {}, true}),
      entriesOption(),
      {"--rank", "K", "the rank of each matrix's change; default 16; 0: do not truncate it"},
      {"--refine", "N",
       "after the closed form, of entries or weights, make N passes of gradient descent over the\n"
       "texts. With 40 texts or more, a fifth is left out at first, and decides the number of\n"
       "passes, up to N. Default 0"},
      {"--refine-others", "K",
       "let the passes also change all other matrices of the layers, by rank K. Default 0"},
      {"--ridge", "X",
       "the penalty on large changes of a matrix in the closed form, relative to the data of the\n"
       "first 550 tokens of text; default 0.01, with --chat 0.1. A larger penalty recovers less, "
       "and unrelated\n"
       "text drifts less"},
      contextsOption(),
      strengthOption(),
      objectiveOption(),
      {"--protection", "X",
       "the weight of unrelated texts, relative to the others; default 0.3. Every second one\n"
       "is protected; the drift is measured on the others"},
      {"--matrices-only", "", "leave norms' scales as they are"},
      {"--gguf", "",
       "also write DIR/adapter.gguf, which llama.cpp loads with --lora; leaves norms' scales as\n"
       "they are"},
      anywayOption(),
      {"--html", "", "also write DIR/card.html, with answers side by side"},
      {"--curve", "", "also fit with lower ranks and with fewer texts, for the card"}};
  auto addInFront = [&](llvm::ArrayRef<OptionSpec> options) {
    command.options.insert(command.options.begin(), options.begin(), options.end());
  };
  addInFront(textOptions());
  addInFront(keepOptionSpecs());
  addInFront(own);
  return command;
}
