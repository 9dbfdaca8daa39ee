// ctxc distil --contexts: a file of lines, each with a context and its texts, as the options of one
// context have them. All are fitted together, and each alone, which tells what one costs the other.
#include "SeveralContexts.h"
#include "AdapterVerdict.h"
#include "Commands.h"
#include "OpenedContext.h"
#include "ctxc/Export/LastingAdapter.h"
#include "ctxc/Report/ContextsReport.h"
#include "ctxc/Session/ContextsFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "ctxc/Support/Timer.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <ctime>

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

/// A context and its texts.
struct Part {
  std::string name;
  bool isWritten; ///< the model wrote its texts
  ContextTexts context;
  DistilTexts texts;
  std::vector<TextSequence> choosing;
};

class SeveralContexts {
public:
  SeveralContexts(const Arguments &arguments, DistilRequest settings)
      : arguments(arguments), settings(std::move(settings)) {}
  Expected<int> run();

private:
  Error readPart(const ContextEntry &entry);
  DistilRequest requestFor(llvm::ArrayRef<Part> some) const;
  EvaluateRequest aboutOf(const Part &part) const;
  Error judge(const Adapter &adapter);
  Error writeTexts(std::vector<AdapterFile> &files);
  Expected<std::vector<AdapterFile>> files(const Adapter &adapter);

  const Arguments &arguments;
  DistilRequest settings;
  double strength = 1;
  Opened opened;
  std::vector<Part> parts;
  CardSettings::Fit fit;
  std::vector<ContextCard> cards;
};

} // namespace

/// The options of one context; its values must outlive them.
static Arguments optionsOf(const Arguments &arguments, const ContextEntry &entry,
                           const std::string &ids) {
  Arguments own = arguments;
  const std::pair<StringRef, StringRef> options[] = {
      {"--context", entry.context},  {"--context-tokens", ids},    {"--text", entry.text},
      {"--held-out", entry.heldOut}, {"--prompts", entry.prompts}, {"--system", entry.system},
      {"--messages", entry.messages}};
  for (auto [option, value] : options)
    if (!value.empty())
      own = own.with(option, value);
  if (entry.isChat())
    own = own.with("--chat", "");
  return own;
}

Error SeveralContexts::readPart(const ContextEntry &entry) {
  const std::string ids =
      llvm::join(llvm::map_range(entry.tokens, [](int64_t id) { return std::to_string(id); }), ",");
  const Arguments own = optionsOf(arguments, entry, ids);
  auto inLine = [&](Error error) {
    return makeError("--contexts: " + entry.where + ": " + llvm::toString(std::move(error)));
  };
  if (Error error = llvm::joinErrors(checkContextOptions(own), checkTextOptions(own)))
    return inLine(std::move(error));
  Part part{entry.name, entry.text.empty(), {}, {}, {}};
  if (Error error = readContext(own, *opened.model).moveInto(part.context))
    return inLine(std::move(error));
  if (!parts.empty() && part.context.front != parts.front().context.front)
    return inLine(makeError("begins with other tokens than the first context; one adapter needs "
                            "the same in front of every text"));
  if (Error error = distilTexts(own, *opened.model, part.context, opened.seed).moveInto(part.texts))
    return inLine(std::move(error));
  fit.texts += part.texts.fitted.size();
  if (settings.fit.passes > 0)
    part.choosing = takeFifth(part.texts.fitted);
  fit.choosingTexts += part.choosing.size();
  fit.splitsText |= part.texts.splitsText;
  fit.sampledTokens += part.texts.sampledTokens;
  fit.writtenPrompts += part.texts.writtenPrompts;
  fit.sampleSeconds += part.texts.seconds;
  parts.push_back(std::move(part));
  return Error::success();
}

DistilRequest SeveralContexts::requestFor(llvm::ArrayRef<Part> some) const {
  DistilRequest request = settings;
  request.context = some.front().context.context;
  request.prefix = some.front().context.front;
  request.texts = some.front().texts.fitted;
  request.choosing = some.front().choosing;
  for (const Part &part : some.drop_front())
    request.others.push_back({part.context.context, part.texts.fitted, part.choosing});
  for (const Part &part : parts) // the first that has some
    if (request.unrelated.empty())
      request.unrelated = part.texts.isProtected;
  return request;
}

EvaluateRequest SeveralContexts::aboutOf(const Part &part) const {
  Opened one;
  one.context = part.context;
  one.seed = opened.seed;
  EvaluateRequest about = driver::aboutOf(one);
  about.texts = part.texts.heldOut;
  for (const Part &each : parts)
    if (about.unrelated.empty())
      about.unrelated = each.texts.driftTexts;
  return about;
}

/// Fits each context alone, and compares.
Error SeveralContexts::judge(const Adapter &adapter) {
  for (const Part &part : parts) {
    ContextCard made;
    made.name = part.name;
    auto own = opened.model->distil(requestFor(part));
    if (!own)
      return own.takeError();
    scale(own->adapter, strength);
    EvaluateRequest about = aboutOf(part);
    if (Error error = opened.model->evaluate(adapter, about).moveInto(made.card))
      return error;
    if (Error error = opened.model->evaluate(own->adapter, about).moveInto(made.own))
      return error;
    opened.context = part.context;
    if (Error error = driver::settingsOf(opened, adapter).moveInto(made.settings))
      return error;
    made.settings.strength = strength;
    cards.push_back(std::move(made));
  }
  return Error::success();
}

Error SeveralContexts::writeTexts(std::vector<AdapterFile> &files) {
  auto add = [&](std::string name, llvm::ArrayRef<TextSequence> texts) -> Error {
    auto lines = textLines(texts, *opened.model);
    if (!lines)
      return lines.takeError();
    if (!lines->empty())
      files.push_back({std::move(name), std::move(*lines)});
    return Error::success();
  };
  bool areWritten = false;
  for (const Part &part : parts) {
    if (!part.isWritten)
      continue;
    areWritten = true;
    for (auto [what, texts] :
         {std::pair("texts", &part.texts.fitted), std::pair("choosing", &part.choosing),
          std::pair("held-out", &part.texts.heldOut)})
      if (Error error = add(part.name + "." + what + ".jsonl", *texts))
        return error;
  }
  if (!areWritten || arguments.has("--unrelated"))
    return Error::success();
  if (Error error = add("protected.jsonl", requestFor(parts).unrelated))
    return error;
  return add("unrelated.jsonl", aboutOf(parts.front()).unrelated);
}

Expected<std::vector<AdapterFile>> SeveralContexts::files(const Adapter &adapter) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeContexts(os, cards, fit);
  std::vector<AdapterFile> all = {
      {"card.txt", text}, {"card.json", llvm::formatv("{0:2}\n", contextsJson(cards, fit)).str()}};
  if (arguments.has("--gguf")) {
    auto bytes = lastingGguf(adapter, *opened.model->checkpoint());
    if (!bytes)
      return bytes.takeError();
    all.push_back({"adapter.gguf", std::move(*bytes)});
  }
  if (Error error = writeTexts(all))
    return std::move(error);
  return all;
}

Expected<int> SeveralContexts::run() {
  StringRef path = arguments.get("--contexts", "");
  auto entries = readContextsFile(path, "--contexts");
  if (!entries)
    return entries.takeError();
  if (entries->size() < 2)
    return makeError("--contexts: " + path +
                     ": found one context, expected at least two; for one, --context");
  if (Error error = strengthOf(arguments).moveInto(strength))
    return std::move(error);
  if (Error error = arguments.integer("--seed", 0, INT64_MAX / 4, 0).moveInto(opened.seed))
    return std::move(error);
  if (Error error = openForAdapters(arguments).moveInto(opened.model))
    return std::move(error);
  if (arguments.has("--gguf")) // before anything is fitted
    if (Error error = lastingGguf(Adapter(), *opened.model->checkpoint()).takeError())
      return std::move(error);
  for (const ContextEntry &entry : *entries)
    if (Error error = readPart(entry))
      return std::move(error);
  const std::clock_t start = std::clock();
  auto made = [&] {
    Timer timer(fit.seconds);
    return opened.model->distil(requestFor(parts));
  }();
  if (!made)
    return made.takeError();
  fit.processorSeconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  fit.seed = opened.seed;
  fit.tokens = made->tokens;
  fit.protectedTokens = made->protectedTokens;
  fit.mostPasses = settings.fit.passes;
  fit.passes = made->passes;
  fit.divergenceBefore = made->divergenceBefore;
  fit.divergenceAfter = made->divergenceAfter;
  scale(made->adapter, strength);
  if (Error error = judge(made->adapter))
    return std::move(error);
  for (auto [part, card] : llvm::zip_equal(parts, cards)) {
    opened.context = part.context;
    const EvaluateRequest about = aboutOf(part);
    auto refuses = isRefused(arguments, opened, {made->adapter, card.card, card.settings, about},
                             part.texts.fitted);
    if (!refuses)
      return refuses.takeError();
    if (*refuses)
      return ExitAgainst;
  }
  auto all = files(made->adapter);
  if (!all)
    return all.takeError();
  StringRef directory = arguments.get("-o", "");
  if (Error error =
          writeLastingAdapter(directory, made->adapter, *opened.model->checkpoint(), *all))
    return std::move(error);
  out() << all->front().content << "written to " << printableLine(directory) << "\n";
  return ExitGood;
}

OptionSpec driver::contextsOption() {
  return reads(
      {"--contexts", "FILE",
       "one adapter for several contexts, each in front of its own texts: JSON lines, each "
       "with\n'context', and 'text', 'held_out' or 'prompts', as these options have them; "
       "paths are\nrelative to FILE. The card says what one costs the other"});
}

Error driver::checkSeveralOptions(const Arguments &arguments) {
  for (StringRef option : {"--context", "--context-tokens", "--chat", "--system", "--messages",
                           "--text", "--held-out", "--prompts"})
    if (arguments.has(option))
      return makeError(option + ": each line of --contexts has its own; leave it out");
  for (StringRef option : {"--keep", "--keep-share", "--keep-unit", "--keep-cache",
                           "--prefix-cache", "--objective", "--html", "--curve"})
    if (arguments.has(option))
      return makeError(option + ": applies to one context; leave it out beside --contexts");
  return Error::success();
}

Expected<int> driver::distilSeveral(const Arguments &arguments, DistilRequest request) {
  return SeveralContexts(arguments, std::move(request)).run();
}
