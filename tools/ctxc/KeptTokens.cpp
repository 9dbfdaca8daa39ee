// What of a context stays beside an adapter.
#include "KeptTokens.h"
#include "DistilEntries.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/ADT/StringSwitch.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

std::vector<OptionSpec> driver::keepOptionSpecs() {
  return {
      {"--keep-share", "X",
       "keep this share of the context's tokens in front of every text: the tokens that surprise\n"
       "the model most or that the fitted texts copy; fit the rest; default 0"},
      {"--keep-unit",
       "UNIT",
       "keep whole words, or sentences and lines, so that a person can read what is kept: those\n"
       "whose tokens are so on the average; default token",
       {"token", "word", "sentence"}},
      {"--keep-cache", "",
       "keep these tokens not as text, but as the keys and values that the model has for them\n"
       "after it has read the whole context; its KV cache then drops all others"},
      reads(
          {"--keep", "FILE", "keep this text in front, for instance a short form of the context"}),
      {"--prefix-cache", "",
       "also write DIR/prefix_cache.safetensors: the keys and values of what is kept, with which\n"
       "transformers' cache begins; a server then reads none of these tokens"}};
}

Expected<KeepOptions> driver::keepOptions(const Arguments &arguments) {
  KeepOptions options;
  if (arguments.has("--keep-share") && arguments.has("--keep"))
    return makeError("--keep-share and --keep both say what stays in front; expected one of them");
  StringRef text = arguments.get("--keep-share", "0");
  if (text.getAsDouble(options.share) || !(options.share >= 0) || options.share >= 1)
    return makeError("--keep-share: found '" + text + "', expected a number from 0 to below 1");
  for (StringRef option : {"--keep-cache", "--keep-unit"})
    if (arguments.has(option) && options.share == 0)
      return makeError(option + ": nothing is kept; expected --keep-share with it");
  if (arguments.has("--keep-cache") && arguments.has("--keep-unit"))
    return makeError("--keep-unit: with --keep-cache no text is kept that a person could read; "
                     "expected one of both");
  options.writesCache = arguments.has("--prefix-cache");
  if (options.writesCache && options.share == 0 && !arguments.has("--keep") &&
      !mayHaveEntries(arguments))
    return makeError("--prefix-cache: nothing is kept; expected --keep-share or --keep with it, or "
                     "entries in the place of weights");
  options.inCache = arguments.has("--keep-cache");
  options.unit = llvm::StringSwitch<TextUnit>(arguments.get("--keep-unit", "token"))
                     .Case("word", TextUnit::Word)
                     .Case("sentence", TextUnit::Sentence)
                     .Default(TextUnit::Token);
  if (auto path = arguments.get("--keep"))
    options.file = path->str();
  return options;
}

Error driver::keepFile(const KeepOptions &options, Opened &opened, DistilRequest &request) {
  if (options.unit != TextUnit::Token && !opened.model->hasTokenizer())
    return opened.model->tokenizer().takeError();
  if (options.writesCache)
    if (Error error = opened.model->checkPrefixCache())
      return error;
  if (!options.file)
    return Error::success();
  auto kept = readTokens(*options.file, "--keep", *opened.model);
  if (!kept)
    return kept.takeError();
  size_t most = opened.context.context.size() - opened.context.front.size();
  if (kept->size() >= most)
    return makeError("--keep: found a text of " + llvm::Twine(kept->size()) +
                     " tokens, expected fewer than the context's " + llvm::Twine(most));
  llvm::append_range(request.prefix, *kept);
  return Error::success();
}

/// The places of the tokens that are kept as text.
static Expected<std::vector<int64_t>> placesOfText(const KeepOptions &options, Opened &opened,
                                                   const DistilRequest &request, int64_t count) {
  Model &model = *opened.model;
  const std::vector<int64_t> &context = opened.context.context;
  const int64_t front = opened.context.front.size();
  std::vector<int64_t> starts; // of single tokens, none have to be said
  if (options.unit != TextUnit::Token) {
    auto tokenizer = model.tokenizer();
    if (!tokenizer)
      return tokenizer.takeError();
    if (Error error = unitStarts(*tokenizer, context, front, options.unit).moveInto(starts))
      return std::move(error);
  }
  auto scores = model.tellingScores(context, front, request.texts);
  if (!scores)
    return scores.takeError();
  std::vector<int64_t> places = mostTelling(*scores, front, count, starts);
  if (places.empty() && !starts.empty())
    return makeError("--keep-unit: every unit of the context has more than the " +
                     llvm::Twine(count) +
                     " tokens that --keep-share allows; expected a larger share or a smaller unit");
  return places;
}

Error driver::keepTokens(const KeepOptions &options, Opened &opened, DistilRequest &request) {
  if (options.share == 0)
    return Error::success();
  const ContextTexts &context = opened.context;
  const int64_t front = context.front.size();
  const int64_t count = options.share * (context.context.size() - front);
  auto places = options.inCache
                    ? opened.model->mostRead(context.context, front, count, request.texts)
                    : placesOfText(options, opened, request, count);
  if (!places)
    return places.takeError();
  if (options.inCache) {
    request.prefix = context.context;
    llvm::append_range(request.seen, llvm::seq<int64_t>(0, front));
    llvm::append_range(request.seen, *places);
    return Error::success();
  }
  for (int64_t place : *places)
    request.prefix.push_back(context.context[place]);
  return Error::success();
}

Error driver::warnOfEqualTokens(Opened &opened, const DistilRequest &request) {
  auto token =
      request.seen.empty() ? tokenBeforeItself(request.prefix, request.texts) : std::nullopt;
  if (!token || !opened.model->hasTokenizer())
    return Error::success();
  auto tokenizer = opened.model->tokenizer();
  if (!tokenizer)
    return tokenizer.takeError();
  auto stops = opened.model->stopTokens();
  if (!stops)
    return stops.takeError();
  int64_t other = *token == 0;
  for (int64_t stop : *stops)
    if (stop != *token)
      other = stop;
  err() << "ctxc: warning: nothing but " << quoted(tokenizer->piece(*token))
        << " stands in front of the texts, and they begin with it: equal tokens at the beginning "
           "have equal states, so that the second one says nothing; put another one in front, "
           "such as "
        << quoted(tokenizer->piece(other)) << "\n";
  return Error::success();
}
