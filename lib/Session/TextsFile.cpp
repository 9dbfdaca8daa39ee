// Contexts and texts that stand in files.
#include "ctxc/Session/TextsFile.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"

using namespace ctxc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

static constexpr uint64_t maxTextBytes = 64 << 20;

Expected<std::string> ctxc::readTextFile(StringRef path, StringRef option) {
  Expected<std::string> text = readSmallFile(path, maxTextBytes);
  if (!text)
    return makeError(option + ": " + llvm::toString(text.takeError()));
  if (llvm::Error error = checkUtf8(*text, option + ": " + path))
    return std::move(error);
  if (text->empty())
    return makeError(option + ": " + path + " is empty; expected text");
  return text;
}

/// The tokens of `context` that also stand in front of every other text.
static std::vector<int64_t> frontOf(llvm::ArrayRef<int64_t> context,
                                    llvm::ArrayRef<int64_t> front) {
  return context.take_front(front.size()) == front ? front.vec() : std::vector<int64_t>();
}

Expected<ContextTexts> ctxc::contextOfTokens(std::vector<int64_t> tokens, Model &model) {
  ContextTexts texts;
  std::vector<int64_t> front;
  if (model.hasTokenizer())
    if (Error error = model.tokensInFront().moveInto(front))
      return std::move(error);
  texts.context = std::move(tokens);
  texts.front = frontOf(texts.context, front);
  if (texts.context.size() == texts.front.size())
    return makeError("context: found no token, expected some");
  return texts;
}

Expected<ContextTexts> ctxc::readContext(StringRef path, StringRef option, Model &model) {
  auto text = readTextFile(path, option);
  if (!text)
    return text.takeError();
  auto tokens = model.tokenize(*text);
  if (!tokens)
    return tokens.takeError();
  return contextOfTokens(std::move(*tokens), model);
}

Expected<std::vector<int64_t>> ctxc::readTokens(StringRef path, StringRef option, Model &model) {
  auto text = readTextFile(path, option);
  if (!text)
    return text.takeError();
  auto tokens = model.tokenizeInside(*text);
  if (tokens && tokens->empty())
    return makeError(option + ": " + path + " has no token; expected text");
  return tokens;
}

/// The tokens of a member, which is a text or a list of ids.
static Expected<std::vector<int64_t>> memberTokens(const llvm::json::Object &line, StringRef member,
                                                   Model &model) {
  const llvm::json::Value *value = line.get(member);
  if (!value)
    return std::vector<int64_t>();
  if (auto text = value->getAsString())
    return model.tokenizeInside(*text);
  std::vector<int64_t> ids;
  const llvm::json::Array *array = value->getAsArray();
  for (const llvm::json::Value &id : array ? *array : llvm::json::Array())
    if (auto number = id.getAsInteger(); number && *number >= 0)
      ids.push_back(*number);
  if (!array || ids.size() != array->size())
    return makeError("'" + member + "': expected a text, or a list of token ids");
  return ids;
}

/// A line's prompt and answer, of which either may be empty.
static Expected<TextSequence> parseLine(StringRef text, Model &model, const std::string &name) {
  auto value = parseStrictJson(text, name);
  if (!value)
    return value.takeError();
  const llvm::json::Object *line = value->getAsObject();
  if (!line)
    return makeError(name + ": expected an object with 'prompt' and 'answer'");
  auto prompt = memberTokens(*line, "prompt", model), answer = memberTokens(*line, "answer", model);
  if (!prompt || !answer)
    return makeError(name + ": " +
                     llvm::toString(llvm::joinErrors(prompt.takeError(), answer.takeError())));
  TextSequence sequence{std::move(*prompt), 0};
  sequence.prompt = sequence.tokens.size();
  llvm::append_range(sequence.tokens, *answer);
  return sequence;
}

Error ctxc::eachLine(StringRef text, StringRef path,
                     llvm::function_ref<Error(StringRef line, const std::string &name)> take) {
  size_t number = 0;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    ++number;
    if (!line.trim().empty())
      if (Error error = take(line, (path + ":" + llvm::Twine(number)).str()))
        return error;
  }
  return Error::success();
}

static Expected<std::vector<TextSequence>> parseLines(StringRef text, Model &model,
                                                      StringRef path) {
  std::vector<TextSequence> texts;
  Error error = eachLine(text, path, [&](StringRef line, const std::string &name) -> Error {
    auto sequence = parseLine(line, model, name);
    if (!sequence)
      return sequence.takeError();
    if (sequence->prompt == int64_t(sequence->tokens.size()))
      return makeError(name + ": has no 'answer', whose tokens are compared");
    texts.push_back(std::move(*sequence));
    return Error::success();
  });
  if (error)
    return std::move(error);
  return texts;
}

static bool isDivider(StringRef line) {
  line = line.rtrim();
  return line.size() >= 3 && line.find_first_not_of('-') == StringRef::npos;
}

static Expected<std::vector<TextSequence>> parsePlain(StringRef text, Model &model) {
  std::vector<TextSequence> texts;
  std::string part;
  auto finish = [&]() -> Error {
    if (StringRef(part).trim().empty())
      return Error::success();
    auto tokens = model.tokenizeInside(part);
    if (!tokens)
      return tokens.takeError();
    texts.push_back({std::move(*tokens), 0});
    part.clear();
    return Error::success();
  };
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    bool ends = rest.data() != line.data() + line.size(); // with a newline
    text = rest;
    if (!isDivider(line)) {
      part += line;
      if (ends)
        part += '\n';
    } else if (Error error = finish()) {
      return std::move(error);
    }
  }
  if (Error error = finish())
    return std::move(error);
  return texts;
}

Expected<std::vector<TextSequence>> ctxc::readTexts(StringRef path, StringRef option,
                                                    Model &model) {
  auto text = readTextFile(path, option);
  if (!text)
    return text.takeError();
  auto texts = path.ends_with(".jsonl") ? parseLines(*text, model, path) : parsePlain(*text, model);
  if (!texts)
    return makeError(option + ": " + llvm::toString(texts.takeError()));
  if (texts->empty())
    return makeError(option + ": " + path + ": found no text");
  return texts;
}

Expected<std::vector<std::vector<int64_t>>> ctxc::readPrompts(StringRef path, StringRef option,
                                                              Model &model) {
  auto text = readTextFile(path, option);
  if (!text)
    return text.takeError();
  std::vector<std::vector<int64_t>> prompts;
  Error error = eachLine(*text, path, [&](StringRef line, const std::string &name) -> Error {
    if (!path.ends_with(".jsonl"))
      return model.tokenizeInside(line.rtrim("\r")).moveInto(prompts.emplace_back());
    auto sequence = parseLine(line, model, name);
    if (!sequence)
      return sequence.takeError();
    sequence->tokens.resize(sequence->prompt);
    prompts.push_back(std::move(sequence->tokens));
    return Error::success();
  });
  if (error)
    return makeError(option + ": " + llvm::toString(std::move(error)));
  if (prompts.size() < 5)
    return makeError(option + ": " + path + ": found " + counted(prompts.size(), "prompt") +
                     ", expected at least five, of which one is for the card");
  return prompts;
}

std::vector<TextSequence> ctxc::takeHalf(std::vector<TextSequence> &texts) {
  std::vector<TextSequence> taken;
  for (size_t i = 0; texts.size() > 1 && i < texts.size(); ++i) {
    taken.push_back(std::move(texts[i]));
    texts.erase(texts.begin() + i);
  }
  return taken;
}

std::vector<TextSequence> ctxc::firstTokens(llvm::ArrayRef<TextSequence> texts, int64_t tokens) {
  std::vector<TextSequence> taken;
  int64_t sum = 0;
  for (const TextSequence &text : texts) {
    if (sum >= tokens)
      break;
    sum += text.tokens.size();
    taken.push_back(text);
  }
  return taken;
}
