#include "DistilTexts.h"
#include "ChatTexts.h"
#include "DistilEntries.h"
#include "ctxc/Session/WrittenPrompts.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/TokenProgress.h"
#include "llvm/Support/FormatVariadic.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

/// Of the answers that the model writes for the card, and of unrelated texts.
static constexpr int64_t heldOutTokens = 400, unrelatedTokens = 512;
/// Of --tokens where the model writes the texts: as many, or so many for each of --entries, since
/// many entries fit little text alone; but no more than takes minutes.
static constexpr int64_t leastSampled = 2000, sampledOfEntry = 100, mostSampled = 10000;

std::vector<OptionSpec> driver::textOptions() {
  return {
      reads({"--text", "FILE",
             "texts to fit; a fifth of them is held out for the card. Default: the model\n"
             "writes them, with the context in front, and unrelated ones without it"}),
      reads({"--held-out", "FILE", "texts for the card, in place of that fifth"}),
      {"--tokens", "N",
       "fit N tokens, rounded up to the end of a text; default: all of --text, or 2000,\n"
       "and with --entries N at least 100 N, up to 10000"},
      reads({"--prompts", "FILE",
             "the beginnings of texts that the model writes: a prompt on each line, or JSON\n"
             "lines (.jsonl). Without --held-out a fifth is used only for the card. Default:\n"
             "every second text begins with a few words of a text that the model wrote without\n"
             "the context"}),
      {"--more-prompts", "N",
       "the model adds N prompts to those of --prompts, like them. With --chat it writes\n"
       "questions in the user's place; default there: up to thirty together"},
      {"--turns", "N", "with --chat: the most turns of a conversation; default 4"},
      {"--length", "N", "length of an answer that the model writes, in tokens; default 40"},
      {"--temperature", "X", "temperature at which the model writes; default 1"}};
}

Error driver::checkTextOptions(const Arguments &arguments) {
  for (StringRef option : {"--prompts", "--more-prompts", "--length", "--temperature"})
    if (arguments.has("--text") && arguments.has(option))
      return makeError(option + ": applies where the model writes the texts, but --text is given");
  if (arguments.has("--turns") && (!arguments.has("--chat") || arguments.has("--text")))
    return makeError("--turns: applies to --chat where the model writes the conversations");
  if (arguments.has("--more-prompts") && !arguments.has("--prompts") && !arguments.has("--chat"))
    return makeError("--more-prompts: applies to --prompts FILE, which is not given");
  if (arguments.has("--protection") && arguments.has("--text") && !arguments.has("--unrelated"))
    return makeError("--protection: applies to --unrelated FILE, which is not given");
  return Error::success();
}

static Error readGiven(const Arguments &arguments, Model &model, const ContextTexts &context,
                       uint64_t seed, int64_t most, DistilTexts &all) {
  std::vector<TextSequence> texts;
  if (Error error = readTexts(arguments, "--text", model, context).moveInto(texts))
    return error;
  shuffle(texts, seed);
  if (!arguments.has("--held-out")) {
    size_t count = texts.size() / 5;
    if (count == 0)
      return makeError("--text: found " + llvm::Twine(texts.size()) +
                       " texts, expected at least five, of which one is held out for the card; or "
                       "--held-out FILE");
    all.heldOut.assign(texts.end() - count, texts.end());
    texts.resize(texts.size() - count);
    all.splitsText = true;
  }
  all.fitted = firstTokens(texts, most);
  return Error::success();
}

namespace {

/// Texts that the model writes.
class Writer {
public:
  static Expected<Writer> make(const Arguments &arguments, Model &model,
                               const ContextTexts &context, uint64_t seed);
  Error write(const Arguments &arguments, int64_t most, DistilTexts &all);

private:
  using Prompts = std::vector<std::vector<int64_t>>;

  Writer(Model &model, const ContextTexts &context, uint64_t seed)
      : model(model), context(context), seed(seed) {}
  Expected<std::vector<TextSequence>> sample(llvm::ArrayRef<int64_t> front, Prompts prompts,
                                             int64_t length, uint64_t stream, DistilTexts &all);
  Error writeUnrelated(DistilTexts &all);
  Error addPrompts(DistilTexts &all);
  Prompts openings(llvm::ArrayRef<TextSequence> unrelated, size_t count) const;

  Model &model;
  const ContextTexts &context;
  uint64_t seed;
  int64_t length = 40;
  double temperature = 1;
  std::vector<int64_t> stops;
  Prompts prompts;  ///< given
  int64_t more = 0; ///< so many that the model adds to them
};

} // namespace

Expected<Writer> Writer::make(const Arguments &arguments, Model &model, const ContextTexts &context,
                              uint64_t seed) {
  Writer writer(model, context, seed);
  auto length = arguments.integer("--length", 1, 1 << 20, writer.length);
  if (!length)
    return length.takeError();
  writer.length = *length;
  StringRef temperature = arguments.get("--temperature", "1");
  if (temperature.getAsDouble(writer.temperature) || !(writer.temperature >= 0) ||
      writer.temperature > 1e6)
    return makeError("--temperature: found '" + temperature + "', expected a number from 0 on");
  if (arguments.has("--prompts") && !context.chat)
    if (Error error = readPrompts(arguments, "--prompts", model).moveInto(writer.prompts))
      return std::move(error);
  auto more = arguments.integer("--more-prompts", 0, 1 << 20, 0);
  if (!more)
    return more.takeError();
  writer.more = *more;
  if (Error error = model.stopTokens().moveInto(writer.stops))
    return std::move(error);
  return writer;
}

/// Without those that ended before there was something to predict.
Expected<std::vector<TextSequence>> Writer::sample(llvm::ArrayRef<int64_t> front, Prompts prompts,
                                                   int64_t length, uint64_t stream,
                                                   DistilTexts &all) {
  SampleRequest request;
  request.context = front.vec();
  request.prompts = std::move(prompts);
  request.length = length;
  request.temperature = temperature;
  request.stops = stops;
  request.seed = seed * 3 + stream;
  request.written = progressOnTerminal();
  auto sampled = model.sample(request);
  if (!sampled)
    return sampled.takeError();
  all.sampledTokens += sampled->tokens;
  all.seconds += sampled->seconds;
  llvm::erase_if(sampled->texts, [](const TextSequence &text) { return !hasPrediction(text); });
  return std::move(sampled->texts);
}

/// Texts without the context. A model that has no token in front of a text cannot write such.
Error Writer::writeUnrelated(DistilTexts &all) {
  if (context.front.empty())
    return Error::success();
  constexpr int64_t size = 64;
  auto texts = sample(context.front, Prompts(2 * unrelatedTokens / size), size, 0, all);
  if (!texts)
    return texts.takeError();
  all.driftTexts = std::move(*texts);
  all.isProtected = takeHalf(all.driftTexts);
  return Error::success();
}

/// Every second one is empty, and the others are the first one to eight tokens of `unrelated`.
Writer::Prompts Writer::openings(llvm::ArrayRef<TextSequence> unrelated, size_t count) const {
  Prompts all(count);
  for (size_t i = 0; !unrelated.empty() && i < count; ++i) {
    llvm::ArrayRef<int64_t> text = unrelated[i / 2 % unrelated.size()].tokens;
    if (i % 2)
      all[i] = text.take_front(1 + i / 2 % 8).vec();
  }
  return all;
}

Error Writer::addPrompts(DistilTexts &all) {
  if (more == 0)
    return Error::success();
  PromptsRequest request{context.context, prompts, size_t(more), temperature, stops, seed};
  auto written = writePrompts(model, request);
  if (!written)
    return makeError("--more-prompts: " + llvm::toString(written.takeError()));
  all.writtenPrompts = written->size();
  llvm::append_range(prompts, *written);
  return Error::success();
}

Error Writer::write(const Arguments &arguments, int64_t most, DistilTexts &all) {
  if (context.chat)
    return writeChatTexts(arguments, model, *context.chat, {most, length, temperature, seed}, all);
  if (!arguments.has("--unrelated"))
    if (Error error = writeUnrelated(all))
      return error;
  const size_t fitted = std::max<int64_t>(most / length, 1);
  const size_t heldOut = std::max<int64_t>(heldOutTokens / length, 2);
  Prompts forFit, forCard;
  if (prompts.empty()) {
    // Other openings for the card: of the texts that are not fitted either.
    forFit = openings(all.isProtected, fitted);
    forCard = openings(all.driftTexts, heldOut);
  } else {
    shuffle(prompts, seed);
    const size_t apart = arguments.has("--held-out") ? 0 : prompts.size() / 5;
    const size_t own = prompts.size() - apart;
    for (size_t i = 0; apart > 0 && i < heldOut; ++i)
      forCard.push_back(prompts[own + i % apart]);
    prompts.resize(own);
    if (Error error = addPrompts(all))
      return error;
    for (size_t i = 0; i < fitted; ++i)
      forFit.push_back(prompts[i % prompts.size()]);
  }
  if (Error error = sample(context.context, forFit, length, 1, all).moveInto(all.fitted))
    return error;
  if (arguments.has("--held-out"))
    return Error::success();
  return sample(context.context, forCard, length, 2, all).moveInto(all.heldOut);
}

Expected<DistilTexts> driver::distilTexts(const Arguments &arguments, Model &model,
                                          const ContextTexts &context, uint64_t seed) {
  DistilTexts all;
  const int64_t sampled =
      std::clamp(sampledOfEntry * givenEntries(arguments), leastSampled, mostSampled);
  auto most =
      arguments.integer("--tokens", 1, INT32_MAX, arguments.has("--text") ? INT32_MAX : sampled);
  if (!most)
    return most.takeError();
  if (arguments.has("--unrelated")) {
    if (Error error = readTexts(arguments, "--unrelated", model, context).moveInto(all.driftTexts))
      return std::move(error);
    all.isProtected = takeHalf(all.driftTexts);
  }
  if (arguments.has("--text")) {
    if (Error error = readGiven(arguments, model, context, seed, *most, all))
      return std::move(error);
  } else {
    auto writer = Writer::make(arguments, model, context, seed);
    if (!writer)
      return writer.takeError();
    if (Error error = writer->write(arguments, *most, all))
      return std::move(error);
  }
  if (arguments.has("--held-out"))
    if (Error error = readTexts(arguments, "--held-out", model, context).moveInto(all.heldOut))
      return std::move(error);
  llvm::DenseSet<llvm::ArrayRef<int64_t>> begun;
  for (const TextSequence &text : all.fitted)
    begun.insert(llvm::ArrayRef(text.tokens).take_front(text.prompt));
  all.prompts = begun.size();
  return std::move(all);
}

std::vector<TextSequence> driver::takeFifth(std::vector<TextSequence> &texts) {
  constexpr size_t fewest = 40;
  std::vector<TextSequence> taken;
  if (texts.size() < fewest)
    return taken;
  for (size_t i = 4; i < texts.size(); i += 4) {
    taken.push_back(std::move(texts[i]));
    texts.erase(texts.begin() + i);
  }
  return taken;
}

Expected<std::string> driver::textLines(llvm::ArrayRef<TextSequence> texts, Model &model) {
  std::string lines;
  for (const TextSequence &text : texts) {
    llvm::ArrayRef<int64_t> tokens = text.tokens;
    llvm::json::Object line{{"prompt", llvm::json::Array(tokens.take_front(text.prompt))},
                            {"answer", llvm::json::Array(tokens.drop_front(text.prompt))}};
    if (text.turn > 1)
      line["turn"] = text.turn;
    if (model.hasTokenizer()) {
      auto tokenizer = model.tokenizer();
      if (!tokenizer)
        return tokenizer.takeError();
      for (auto [name, part] : {std::pair("prompt_text", tokens.take_front(text.prompt)),
                                std::pair("answer_text", tokens.drop_front(text.prompt))}) {
        auto decoded = tokenizer->decode(part);
        if (!decoded)
          return decoded.takeError();
        line[name] = std::move(*decoded);
      }
    }
    lines += llvm::formatv("{0}\n", llvm::json::Value(std::move(line)));
  }
  return lines;
}
