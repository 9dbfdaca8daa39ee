#include "Prompt.h"
#include "ctxc/Checkpoint/MappedFile.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;

std::vector<OptionSpec> driver::promptOptions() {
  return {{"--prompt", "TEXT",
           "the context and the last token, as text after the begin-of-sequence\n"
           "token; @FILE reads it from a file"},
          {"--tokens", "IDS", "the same as token ids, separated by commas or spaces; or @FILE"}};
}

Error driver::checkPromptOptions(const Arguments &arguments) {
  bool tokens = arguments.has("--tokens"), prompt = arguments.has("--prompt");
  if (tokens == prompt)
    return makeError(tokens ? "--prompt and --tokens are both given; expected one of them"
                            : "expected --prompt TEXT or --tokens IDS");
  if (!tokens)
    return Error::success();
  return parseIntegers(arguments.get("--tokens", ""), "--tokens").takeError();
}

static Expected<std::string> promptText(llvm::StringRef prompt) {
  if (!prompt.consume_front("@"))
    return prompt.str();
  return readSmallFile(prompt, 64 << 20);
}

Expected<std::vector<int64_t>> driver::promptTokens(const Arguments &arguments, Session &session) {
  if (auto tokens = arguments.get("--tokens"))
    return parseIntegers(*tokens, "--tokens");
  Expected<std::string> text = promptText(arguments.get("--prompt", ""));
  if (!text)
    return text.takeError();
  Expected<Tokenizer *> tokenizer = session.tokenizer();
  if (!tokenizer)
    return tokenizer.takeError();
  auto tokens = (*tokenizer)->encode(*text, (*tokenizer)->addsSpecial());
  session.restTokenizer();
  return tokens;
}

OptionSpec driver::positionsOption() {
  return {"--positions", "RANGES",
          "in place of the last token each of these, after the tokens before it: the\n"
          "patches of all are made in one pass. As \"1-3,7\"; all: from 1 to the last,\n"
          "for the token at position 0 has no context"};
}

Expected<std::vector<int64_t>> driver::promptPositions(const Arguments &arguments, int64_t count) {
  auto text = arguments.get("--positions");
  if (!text)
    return std::vector<int64_t>();
  if (*text != "all") {
    Expected<std::vector<int64_t>> positions = parsePositions(*text, "--positions");
    if (positions && positions->empty())
      return makeError("--positions: found none, expected all, or some as \"1-3,7\"");
    return positions;
  }
  std::vector<int64_t> positions;
  for (int64_t position = 1; position < count; ++position)
    positions.push_back(position);
  return positions;
}
