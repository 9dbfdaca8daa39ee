#include "Prompt.h"
#include "ctxc/Checkpoint/Npy.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Support/Memory.h"
#include "ctxc/Tokenizer/EncodePrompt.h"
#include "tools/CommandLine/Streams.h"
#include "tools/CommandLine/Values.h"
#include "llvm/Support/JSON.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;

static constexpr uint64_t maxTextBytes = 64 << 20;

std::vector<OptionSpec> driver::promptOptions() {
  return {{"--prompt", "TEXT",
           "the context and the last token, as text after the begin-of-sequence\n"
           "token; @FILE reads it from a file, - from standard input"},
          {"--tokens", "IDS", "the same, as token ids separated by commas or spaces; or @FILE"},
          {"--chat", "",
           "--prompt is a message to the assistant: the checkpoint's chat template makes the\n"
           "text from it, up to the beginning of the answer"},
          {"--system", "TEXT", "with --chat, a system message before it; or @FILE"},
          {"--absorb",
           "PART",
           "with --chat, what the patch replaces: system. The reduced run keeps all tokens of\n"
           "the conversation that do not depend on the system message",
           {"system"}},
          reads({"--tokenizer", "PATH",
                 "a tokenizer in place of the model's own, as for an .mlir model: a checkpoint's\n"
                 "directory, a tokenizer.json, a tokenizer.model, or a GGUF file"})};
}

std::vector<OptionSpec> driver::embeddingsOptions() {
  return {reads({"--embeddings", "FILE.npy",
                 "embeddings in place of tokens, such as an image's soft tokens: the rows of a\n"
                 "matrix in float16, float32 or float64. Each replaces the embedding of a token\n"
                 "(after its constant factor, before positions are added), and has a position"}),
          {"--embeddings-at", "N",
           "the position in the prompt at which the embeddings are inserted; default 1,\n"
           "behind the begin-of-sequence token"},
          {"--replay", "TYPE",
           "type of the activations of the program that is to replay the patch, for which its\n"
           "error is predicted: f32, bf16 or f16; default: the type of the weights",
           storageNames()}};
}

/// Fails for options of a conversation that do not go together.
static Error checkChatOptions(const Arguments &arguments) {
  if (arguments.has("--chat") && !arguments.has("--prompt"))
    return makeError("--chat: applies to --prompt TEXT, which is not given");
  for (llvm::StringRef option : {"--system", "--absorb"})
    if (arguments.has(option) && !arguments.has("--chat"))
      return makeError(option + ": applies to --chat, which is not given");
  if (!arguments.has("--absorb"))
    return Error::success();
  if (!arguments.has("--system"))
    return makeError("--absorb: the message that is absorbed is not given; expected --system TEXT");
  for (llvm::StringRef option : {"--keep", "--embeddings"})
    if (arguments.has(option))
      return makeError("--absorb: does not go with " + option +
                       ": it chooses the positions that are kept");
  return Error::success();
}

Error driver::checkPromptOptions(const Arguments &arguments) {
  if (arguments.has("--embeddings-at") && !arguments.has("--embeddings"))
    return makeError("--embeddings-at: applies to --embeddings FILE.npy, which is not given");
  if (auto at = arguments.integer("--embeddings-at", 0, INT32_MAX, 1); !at)
    return at.takeError();
  bool tokens = arguments.has("--tokens"), prompt = arguments.has("--prompt");
  if (tokens && prompt)
    return makeError("--prompt and --tokens are both given; expected one of them");
  if (Error error = checkChatOptions(arguments))
    return error;
  if (!tokens && !prompt)
    return makeError("expected --prompt TEXT or --tokens IDS");
  if (!tokens)
    return Error::success();
  return parseIntegers(arguments.get("--tokens", ""), "--tokens").takeError();
}

/// The text of --prompt or --system.
static Expected<std::string> textOption(const Arguments &arguments, llvm::StringRef option) {
  llvm::StringRef value = arguments.get(option, "");
  bool isInput = option == "--prompt" && value == "-";
  std::string name = isInput ? "standard input" : value.drop_front(value.starts_with("@")).str();
  Expected<std::string> text = isInput                  ? readStandardInput(maxTextBytes)
                               : value.starts_with("@") ? readSmallFile(name, maxTextBytes)
                                                        : value.str();
  if (!text)
    return makeError(option + ": " + llvm::toString(text.takeError()));
  if (text->empty() && !value.empty())
    return makeError(option + ": " + name + " is empty; expected text");
  size_t bad;
  if (!llvm::json::isUTF8(*text, &bad))
    return makeError(option + ": " + (name == value ? "" : name + ": ") + "at byte " +
                     llvm::Twine(bad) + ": not valid UTF-8");
  return text;
}

/// The conversation that --system and --prompt make.
static Expected<std::vector<ChatMessage>> chatMessages(const Arguments &arguments,
                                                       llvm::StringRef prompt) {
  std::vector<ChatMessage> messages;
  if (arguments.has("--system")) {
    Expected<std::string> system = textOption(arguments, "--system");
    if (!system)
      return system.takeError();
    messages.push_back({"system", std::move(*system)});
  }
  messages.push_back({"user", prompt.str()});
  return messages;
}

/// The ids of --prompt.
static Expected<std::vector<int64_t>> encodeText(const Tokenizer &tokenizer, llvm::StringRef text) {
  bool isRepeated = false;
  auto tokens = encodePrompt(tokenizer, text, isRepeated);
  if (tokens && isRepeated)
    err() << "ctxc: warning: --prompt: the text begins with '"
          << printable(tokenizer.piece(tokens->front()))
          << "', which the tokenizer puts there itself; it is taken once\n";
  return tokens;
}

namespace {
struct Prompt {
  std::vector<int64_t> tokens;
  std::optional<std::vector<int64_t>> kept; ///< by --keep or --absorb
};
} // namespace

static Expected<Prompt> promptTokens(const Arguments &arguments, Model &model) {
  Prompt prompt;
  if (Error error = keptPositions(arguments).moveInto(prompt.kept))
    return std::move(error);
  if (auto tokens = arguments.get("--tokens")) {
    if (Error error = parseIntegers(*tokens, "--tokens").moveInto(prompt.tokens))
      return std::move(error);
    return prompt;
  }
  Expected<std::string> text = textOption(arguments, "--prompt");
  if (!text)
    return text.takeError();
  Expected<std::vector<ChatMessage>> messages = chatMessages(arguments, *text);
  if (!messages)
    return messages.takeError();
  Expected<Tokenizer &> tokenizer = model.tokenizer();
  if (!tokenizer)
    return tokenizer.takeError();
  giveBackMemory(); // before the tokenizer allocates memory
  Expected<std::vector<int64_t>> tokens =
      arguments.has("--chat") ? model.chat(*messages) : encodeText(*tokenizer, *text);
  if (!tokens)
    return tokens.takeError();
  prompt.tokens = std::move(*tokens);
  if (arguments.has("--absorb")) {
    Expected<std::vector<int64_t>> kept = model.positionsBesideSystem(*messages);
    if (!kept)
      return kept.takeError();
    llvm::erase_if(*kept, [&](int64_t position) { // the last token is the one that is patched
      return position + 1 >= int64_t(prompt.tokens.size());
    });
    prompt.kept = std::move(*kept);
  }
  tokenizer->releaseMemory();
  giveBackMemory();
  return prompt;
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

Error driver::readPrompt(const Arguments &arguments, Model &model, VerifySettings &settings) {
  RunRequest &request = settings.request;
  Expected<Prompt> prompt = promptTokens(arguments, model);
  if (!prompt)
    return prompt.takeError();
  Expected<std::vector<Input>> embeddings = givenEmbeddings(arguments);
  if (!embeddings)
    return embeddings.takeError();
  request.tokens = toInputs(prompt->tokens);
  int64_t count = request.tokens.size();
  auto at = arguments.integer("--embeddings-at", 0, INT32_MAX, std::min<int64_t>(1, count));
  if (!at)
    return at.takeError();
  if (*at > count)
    return makeError("--embeddings-at: found " + llvm::Twine(*at) + ", and the prompt has " +
                     counted(count, "token") + "; expected a position from 0 to " +
                     llvm::Twine(count));
  request.tokens.insert(request.tokens.begin() + *at, embeddings->begin(), embeddings->end());
  if (auto type = arguments.get("--replay"))
    settings.replay = type->str();
  Expected<KeptTokens> kept = model.keptByDefault(request.tokens);
  if (!kept)
    return kept.takeError();
  if (prompt->kept) {
    request.kept = std::move(*prompt->kept);
    settings.sink = request.kept.empty() ? kept->sink : std::nullopt;
    return Error::success();
  }
  request.kept = std::move(kept->positions);
  settings.whyKept = std::move(kept->why);
  return Error::success();
}

Expected<std::vector<Input>> driver::storedInputs(const Arguments &arguments,
                                                  const PatchMetadata &metadata) {
  std::vector<Input> inputs = toInputs(metadata.tokens);
  size_t wanted = llvm::count(metadata.tokens, -1);
  auto path = arguments.get("--embeddings");
  if (!wanted && path)
    return makeError("--embeddings: the patch was made without embeddings in place of tokens");
  if (wanted && !path)
    return makeError("--patch: the patch was made with " + counted(wanted, "embedding") +
                     " in place of tokens, which are not in its file; give them with "
                     "--embeddings FILE.npy");
  Expected<std::vector<Input>> embeddings = givenEmbeddings(arguments);
  if (!embeddings)
    return embeddings.takeError();
  if (embeddings->size() < wanted)
    return makeError("--embeddings: " + *path + " has " + counted(embeddings->size(), "embedding") +
                     ", and the patch was made with " + llvm::Twine(wanted));
  size_t next = 0;
  for (Input &input : inputs)
    if (input.token() == -1)
      input = (*embeddings)[next++];
  if (std::string digest = digestOfEmbeddings(inputs); digest != metadata.embeddingsDigest)
    return makeError("--embeddings: those of " + *path + " have digest " + digest + ", expected " +
                     metadata.embeddingsDigest + "; the patch was made with others");
  return inputs;
}

OptionSpec driver::positionsOption() {
  return {"--positions", "RANGES",
          "in place of the last token, each token at these positions, with the tokens before\n"
          "it as context: all patches are made in one pass. For example \"1-3,7\"; all: from\n"
          "1 to the last, since the token at position 0 has no context"};
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

std::string driver::generatedText(Model &model, llvm::ArrayRef<VerifyStep> steps) {
  if (!model.hasTokenizer())
    return "";
  Expected<Tokenizer &> tokenizer = model.tokenizer();
  std::vector<int64_t> ids;
  for (const VerifyStep &step : steps)
    ids.push_back(step.next);
  Expected<std::string> text = tokenizer ? tokenizer->decode(ids) : tokenizer.takeError();
  if (text)
    return *text;
  llvm::consumeError(text.takeError()); // the tokens in the table show the same text
  return "";
}
