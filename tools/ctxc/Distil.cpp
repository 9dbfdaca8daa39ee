// ctxc distil, ctxc evaluate
#include "Commands.h"
#include "ContextTexts.h"
#include "ctxc/Export/LastingAdapter.h"
#include "ctxc/Report/CardReport.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "ctxc/Support/Timer.h"
#include "tools/CommandLine/Streams.h"
#include "tools/CommandLine/Values.h"
#include "llvm/Support/FormatVariadic.h"
#include <random>

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

/// Texts to fit and texts to judge by.
struct Split {
  std::vector<TextSequence> fitted, heldOut;
};

/// Shuffled by the seed, so that which texts are taken does not depend on their order in the file.
/// (std::shuffle is another on every standard library.)
void shuffle(std::vector<TextSequence> &texts, uint64_t seed) {
  std::mt19937_64 engine(seed);
  for (size_t i = texts.size(); i > 1; --i)
    std::swap(texts[i - 1], texts[engine() % i]);
}

Expected<Split> splitTexts(const Arguments &arguments, Model &model, uint64_t seed) {
  Split split;
  auto texts = readTexts(arguments, "--text", model);
  if (!texts)
    return texts.takeError();
  auto most = arguments.integer("--tokens", 1, INT32_MAX, INT32_MAX);
  if (!most)
    return most.takeError();
  shuffle(*texts, seed);
  if (arguments.has("--held-out")) {
    if (Error error = readTexts(arguments, "--held-out", model).moveInto(split.heldOut))
      return std::move(error);
  } else {
    size_t count = texts->size() / 5;
    if (count == 0)
      return makeError("--text: found " + llvm::Twine(texts->size()) +
                       " texts, expected at least five, of which one is held out for the card; or "
                       "--held-out FILE");
    split.heldOut.assign(texts->end() - count, texts->end());
    texts->resize(texts->size() - count);
  }
  int64_t tokens = 0;
  for (TextSequence &text : *texts) {
    if (tokens >= *most)
      break;
    tokens += text.tokens.size();
    split.fitted.push_back(std::move(text));
  }
  return split;
}

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
  if (arguments.has("--protection") && !arguments.has("--unrelated"))
    return makeError("--protection: applies to --unrelated FILE, which is not given");
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

CardSettings settingsOf(Model &model, const ContextTexts &texts, const Adapter &adapter) {
  CardSettings settings;
  settings.model = model.name().str();
  settings.contextTokens = texts.context.size();
  settings.prefix = adapter.prefix;
  settings.rank = adapter.rank();
  return settings;
}

Expected<int> runDistil(const Arguments &arguments) {
  if (Error error = checkContextOptions(arguments))
    return std::move(error);
  auto request = distilRequest(arguments);
  if (!request)
    return request.takeError();
  auto seed = arguments.integer("--seed", 0, INT64_MAX, 0);
  if (!seed)
    return seed.takeError();
  Expected<double> keeping = keptShare(arguments);
  if (!keeping)
    return keeping.takeError();
  StringRef directory = arguments.get("-o", "");
  if (llvm::sys::fs::exists(directory))
    return makeError("-o: " + directory + " already exists; name a directory that does not");
  auto opened = openForAdapters(arguments);
  if (!opened)
    return opened.takeError();
  Model &model = **opened;
  auto texts = readContext(arguments, model);
  if (!texts)
    return texts.takeError();
  auto split = splitTexts(arguments, model, *seed);
  if (!split)
    return split.takeError();
  EvaluateRequest about;
  about.context = request->context = texts->context;
  about.front = request->prefix = texts->front;
  if (*keeping > 0) {
    int64_t front = texts->front.size(), behind = texts->context.size() - front;
    auto kept = model.mostSurprising(texts->context, front, int64_t(*keeping * behind));
    if (!kept)
      return kept.takeError();
    llvm::append_range(request->prefix, *kept);
  }
  about.texts = std::move(split->heldOut);
  about.seed = *seed;
  request->texts = std::move(split->fitted);
  if (arguments.has("--unrelated")) {
    if (Error error = readTexts(arguments, "--unrelated", model).moveInto(about.unrelated))
      return std::move(error);
    // Every second text is protected, and the others tell the drift.
    for (size_t i = 0; about.unrelated.size() > 1 && i < about.unrelated.size(); ++i) {
      request->unrelated.push_back(std::move(about.unrelated[i]));
      about.unrelated.erase(about.unrelated.begin() + i);
    }
  }

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
  fit.texts = request->texts.size();
  fit.tokens = made->tokens;
  fit.protectedTokens = made->protectedTokens;
  fit.seed = *seed;
  fit.splitsText = !arguments.has("--held-out");
  CardSettings settings = settingsOf(model, *texts, made->adapter);
  settings.fit = fit;
  settings.bootstrapSeed = *seed;
  if (*keeping > 0) {
    Adapter alone;
    alone.prefix = made->adapter.prefix;
    auto cardOfKept = model.evaluate(alone, about);
    if (!cardOfKept)
      return cardOfKept.takeError();
    settings.keptShare = cardOfKept->all.share();
  }
  if (Error error = model.hash().moveInto(settings.modelHash))
    return std::move(error);
  std::string text;
  llvm::raw_string_ostream os(text);
  writeCard(os, *card, settings);
  const AdapterFile files[] = {{"card.txt", text}, {"card.json", jsonText(*card, settings)}};
  if (Error error = writeLastingAdapter(directory, made->adapter, *model.checkpoint(), files))
    return std::move(error);
  out() << text << "written to " << printableLine(directory) << "\n";
  return ExitGood;
}

Expected<int> runEvaluate(const Arguments &arguments) {
  if (Error error = checkContextOptions(arguments))
    return std::move(error);
  auto seed = arguments.integer("--seed", 0, INT64_MAX, 0);
  if (!seed)
    return seed.takeError();
  auto opened = openForAdapters(arguments);
  if (!opened)
    return opened.takeError();
  Model &model = **opened;
  auto texts = readContext(arguments, model);
  if (!texts)
    return texts.takeError();
  auto adapter = readLastingAdapter(arguments.positional(1), *model.checkpoint(), texts->front);
  if (!adapter)
    return adapter.takeError();
  EvaluateRequest about;
  about.context = texts->context;
  about.front = texts->front;
  about.seed = *seed;
  if (Error error = readTexts(arguments, "--text", model).moveInto(about.texts))
    return std::move(error);
  if (arguments.has("--unrelated"))
    if (Error error = readTexts(arguments, "--unrelated", model).moveInto(about.unrelated))
      return std::move(error);
  auto card = model.evaluate(*adapter, about);
  if (!card)
    return card.takeError();
  CardSettings settings = settingsOf(model, *texts, *adapter);
  settings.bootstrapSeed = *seed;
  if (Error error = model.hash().moveInto(settings.modelHash))
    return std::move(error);
  writeCard(out(), *card, settings);
  if (auto json = arguments.get("--json"))
    if (Error error = writeFile(*json, jsonText(*card, settings)))
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
      "  ctxc distil gemma-3-270m --context persona.txt --text chats.jsonl -o persona\n"
      "  ctxc distil gemma-3-270m --context persona.txt --text chats.jsonl --rank 4 -o small\n"
      "  ctxc evaluate gemma-3-270m persona --context persona.txt --text other.jsonl\n",
      runDistil};
  const OptionSpec own[] = {
      writesInto({"-o", "DIR", "the directory to write; it must not exist", {}, true}),
      reads({"--text", "FILE", "texts to fit; a fifth of them is held out for the card", {}, true}),
      reads({"--held-out", "FILE", "texts for the card, in place of that fifth"}),
      {"--rank", "K", "the rank of each matrix's change; default 16, 0: as it comes"},
      {"--tokens", "N", "fit so many tokens, up to the end of a text; default: all"},
      {"--protection", "X",
       "the weight of --unrelated, relative to the texts; default 0.3. Every second text of\n"
       "it is protected, the others tell the drift"},
      {"--keep-share", "X",
       "keep this share of the context's tokens in front, those that surprise the model most,\n"
       "and fit the rest; default 0"},
      {"--matrices-only", "", "leave norms' scales as they are"}};
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
