#include "PromptLine.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Session/Model.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Suggestion.h"
#include "ctxc/Tokenizer/EncodePrompt.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;
using namespace ctxc::batch;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

static constexpr StringRef makeWords[] = {"patch", "metrics", "layers"};

Expected<BatchMake> ctxc::batchMake(llvm::ArrayRef<StringRef> words) {
  BatchMake make;
  for (StringRef word : words) {
    if (!llvm::is_contained(makeWords, word))
      return makeError("make: found " + quoted(word) + ", expected some of " +
                       llvm::join(llvm::ArrayRef(makeWords), ", ") + suggestion(word, makeWords));
    (word == "patch" ? make.patch : word == "metrics" ? make.metrics : make.layers) = true;
  }
  if (words.empty())
    return makeError("make: found nothing, expected some of " +
                     llvm::join(llvm::ArrayRef(makeWords), ", "));
  return make;
}

namespace {

class Reader {
public:
  Reader(const Object &object, const BatchRequest &request, Model &model, PromptLine &line)
      : object(object), request(request), model(model), line(line) {}

  Error read() {
    for (auto read : {&Reader::readId, &Reader::checkNames, &Reader::readTokens, &Reader::readKept,
                      &Reader::readPositions, &Reader::readMake})
      if (Error error = (this->*read)())
        return error;
    return Error::success();
  }

private:
  Error readId() {
    const Value *id = object.get("id");
    if (!id || id->getAsNull())
      return Error::success();
    if (auto text = id->getAsString())
      line.id = text->str();
    else if (auto number = id->getAsInteger())
      line.id = std::to_string(*number);
    else
      return makeError("id: expected a text or an integer");
    return Error::success();
  }

  Error checkNames() {
    static constexpr StringRef names[] = {"id",   "prompt",    "tokens", "messages",
                                          "keep", "positions", "make"};
    for (auto &[name, value] : object)
      if (!llvm::is_contained(names, name.str()))
        return makeError("found the member " + quoted(name) + ", expected some of " +
                         llvm::join(llvm::ArrayRef(names), ", ") + suggestion(name.str(), names));
    return Error::success();
  }

  Error readTokens() {
    if (bool(object.get("prompt")) + bool(object.get("tokens")) + bool(object.get("messages")) != 1)
      return makeError("expected one of prompt, tokens and messages");
    Expected<std::vector<int64_t>> ids = std::vector<int64_t>();
    if (object.get("tokens"))
      ids = integers("tokens");
    else if (object.get("prompt"))
      ids = ofPrompt();
    else
      ids = ofMessages();
    if (!ids)
      return ids.takeError();
    line.tokens = toInputs(*ids);
    if (ids->size() < 2)
      return makeError("found " + counted(ids->size(), "token") +
                       ", expected at least two: a context, and the token after it");
    return Error::success();
  }

  Expected<std::vector<int64_t>> ofPrompt() {
    auto text = object.getString("prompt");
    if (!text)
      return makeError("prompt: expected a text");
    Expected<Tokenizer &> tokenizer = model.tokenizer();
    if (!tokenizer)
      return tokenizer.takeError();
    bool isRepeated;
    return encodePrompt(*tokenizer, *text, isRepeated);
  }

  Expected<std::vector<int64_t>> ofMessages() {
    std::vector<ChatMessage> messages;
    const Array *list = object.getArray("messages");
    for (const Value &value : list ? *list : Array()) {
      const Object *message = value.getAsObject();
      auto role = message ? message->getString("role") : std::nullopt;
      auto content = message ? message->getString("content") : std::nullopt;
      if (!role || !content || message->size() != 2)
        return makeError("messages: expected objects with a text for role and one for content");
      messages.push_back({role->str(), content->str()});
    }
    if (messages.empty())
      return makeError("messages: expected a list of messages");
    return model.chat(messages);
  }

  Error readKept() {
    const Value *given = object.get("keep");
    if (!given) {
      Expected<KeptTokens> kept = model.keptByDefault(line.tokens);
      if (!kept)
        return kept.takeError();
      line.kept = std::move(kept->positions);
      return Error::success();
    }
    if (given->getAsString() == StringRef("none"))
      return Error::success();
    return integers("keep").moveInto(line.kept);
  }

  Error readPositions() {
    const Value *given = object.get("positions");
    bool isAll = given ? given->getAsString() == StringRef("all") : request.allPositions;
    int64_t last = int64_t(line.tokens.size()) - 1;
    if (given && given->getAsArray())
      return integers("positions").moveInto(line.positions);
    if (given && !isAll && given->getAsString() != StringRef("last"))
      return makeError("positions: expected a list of positions, \"all\" or \"last\"");
    for (int64_t position = isAll ? 1 : last; position <= last; ++position)
      line.positions.push_back(position);
    return Error::success();
  }

  Error readMake() {
    line.make = request.make;
    const Value *given = object.get("make");
    if (!given)
      return Error::success();
    std::vector<StringRef> words;
    if (const Array *list = given->getAsArray())
      for (const Value &value : *list)
        words.push_back(value.getAsString().value_or(""));
    return batchMake(words).moveInto(line.make);
  }

  Expected<std::vector<int64_t>> integers(StringRef name) {
    std::vector<int64_t> numbers;
    const Array *list = object.getArray(name);
    for (const Value &value : list ? *list : Array()) {
      auto number = value.getAsInteger();
      if (!number || *number < 0)
        return makeError(name + ": expected integers, 0 or more");
      numbers.push_back(*number);
    }
    if (numbers.empty())
      return makeError(name + ": expected a list of integers");
    return numbers;
  }

  const Object &object;
  const BatchRequest &request;
  Model &model;
  PromptLine &line;
};

} // namespace

PromptLine batch::readPromptLine(const Line &text, const BatchRequest &request, Model &model) {
  PromptLine line;
  line.number = text.number;
  std::string name = "line " + std::to_string(text.number);
  if (text.isTooLong) {
    line.error = name + ": is longer than " + std::to_string(LineFile::longest >> 20) + " MiB";
    return line;
  }
  Expected<Value> value = parseStrictJson(text.text, name);
  if (!value) {
    line.error = llvm::toString(value.takeError());
    return line;
  }
  const Object *object = value->getAsObject();
  if (!object)
    line.error = name + ": expected a JSON object";
  else if (Error error = Reader(*object, request, model, line).read())
    line.error = name + ": " + llvm::toString(std::move(error));
  return line;
}
