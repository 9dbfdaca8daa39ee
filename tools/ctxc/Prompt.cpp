#include "Prompt.h"
#include "ctxc/Checkpoint/Npy.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Support/Memory.h"
#include "tools/CommandLine/Values.h"

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

std::vector<OptionSpec> driver::embeddingsOptions() {
  return {reads({"--embeddings", "FILE.npy",
                 "rows of numbers in place of tokens, as an image's soft tokens are: float16,\n"
                 "float32 or float64, (rows, width). Each takes the place of a token's embedding\n"
                 "(after its constant factor, before positions are added), and has a position"}),
          {"--embeddings-at", "N",
           "at which position of the prompt the rows come in, in front of what is there;\n"
           "default 1, behind the begin-of-sequence token"}};
}

Error driver::checkPromptOptions(const Arguments &arguments) {
  if (arguments.has("--embeddings-at") && !arguments.has("--embeddings"))
    return makeError("--embeddings-at: applies to --embeddings FILE.npy, which is not given");
  if (auto at = arguments.integer("--embeddings-at", 0, INT32_MAX, 1); !at)
    return at.takeError();
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

Expected<std::vector<int64_t>> driver::promptTokens(const Arguments &arguments, Model &model) {
  if (auto tokens = arguments.get("--tokens"))
    return parseIntegers(*tokens, "--tokens");
  Expected<std::string> text = promptText(arguments.get("--prompt", ""));
  if (!text)
    return text.takeError();
  Expected<Tokenizer &> tokenizer = model.tokenizer();
  if (!tokenizer)
    return tokenizer.takeError();
  giveBackMemory(); // before the tokenizer allocates memory
  auto tokens = tokenizer->encode(*text, tokenizer->addsSpecial());
  tokenizer->releaseMemory();
  giveBackMemory();
  return tokens;
}

/// The embeddings that --embeddings names; none where the option is not given.
static Expected<std::vector<Input>> givenEmbeddings(const Arguments &arguments) {
  std::vector<Input> embeddings;
  auto path = arguments.get("--embeddings");
  if (!path)
    return embeddings;
  Expected<NpyMatrix> matrix = readNpyMatrix(*path);
  if (!matrix)
    return matrix.takeError();
  for (int64_t i = 0; i < matrix->rows; ++i)
    embeddings.push_back(Input::ofEmbedding(matrix->row(i).vec()));
  return embeddings;
}

Expected<std::vector<Input>> driver::promptInputs(const Arguments &arguments, Model &model) {
  Expected<std::vector<int64_t>> tokens = promptTokens(arguments, model);
  if (!tokens)
    return tokens.takeError();
  Expected<std::vector<Input>> rows = givenEmbeddings(arguments);
  if (!rows)
    return rows.takeError();
  std::vector<Input> inputs = toInputs(*tokens);
  int64_t count = inputs.size();
  auto at = arguments.integer("--embeddings-at", 0, INT32_MAX, std::min<int64_t>(1, count));
  if (!at)
    return at.takeError();
  if (*at > count)
    return makeError("--embeddings-at: found " + llvm::Twine(*at) + ", and the prompt has " +
                     counted(count, "token") + "; expected a position from 0 to " +
                     llvm::Twine(count));
  inputs.insert(inputs.begin() + *at, rows->begin(), rows->end());
  return inputs;
}

Expected<std::vector<Input>> driver::storedInputs(const Arguments &arguments,
                                                  const PatchMetadata &metadata) {
  std::vector<Input> inputs = toInputs(metadata.tokens);
  size_t wanted = llvm::count(metadata.tokens, -1);
  auto path = arguments.get("--embeddings");
  if (!wanted && path)
    return makeError("--embeddings: the patch was made without rows in place of tokens");
  if (wanted && !path)
    return makeError("--patch: the patch was made with " + counted(wanted, "row") +
                     " in place of tokens, which are not in its file; give them with "
                     "--embeddings FILE.npy");
  Expected<std::vector<Input>> rows = givenEmbeddings(arguments);
  if (!rows)
    return rows.takeError();
  if (rows->size() < wanted)
    return makeError("--embeddings: " + *path + " has " + counted(rows->size(), "row") +
                     ", and the patch was made with " + llvm::Twine(wanted));
  size_t next = 0;
  for (Input &input : inputs)
    if (input.token() == -1)
      input = (*rows)[next++];
  if (std::string digest = digestOfEmbeddings(inputs); digest != metadata.embeddingsDigest)
    return makeError("--embeddings: the rows of " + *path + " have digest " + digest +
                     ", expected " + metadata.embeddingsDigest +
                     "; the patch was made with other rows");
  return inputs;
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
