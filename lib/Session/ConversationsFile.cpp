#include "ctxc/Session/ConversationsFile.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;
using jinja::Value;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

Expected<ChatMessage> ctxc::readSystemMessage(StringRef path, StringRef option) {
  auto text = readTextFile(path, option);
  if (!text)
    return text.takeError();
  StringRef trimmed = StringRef(*text).trim();
  if (trimmed.empty())
    return makeError(option + ": " + path + " has nothing but white space; expected text");
  return ChatMessage{"system", trimmed.str()};
}

static Expected<ChatMessage> messageOf(const Value &value, const std::string &name) {
  ChatMessage message;
  if (!value.is(Value::Kind::Dict))
    return makeError(name + ": expected an object with 'role' and 'content'");
  for (const auto &[key, member] : value.entries()) {
    const bool isText = member.is(Value::Kind::String);
    if (key.string() == "role" && isText)
      message.role = member.string().str();
    else if (key.string() == "content" && isText)
      message.content = member.string().str();
    else if (key.string() == "role" || (key.string() == "content" && !member.is(Value::Kind::None)))
      return makeError(name + ": " + quoted(key.string()) + ": expected a text");
    else if (key.string() != "content")
      message.others.emplace_back(key.string().str(), member);
  }
  if (message.role.empty())
    return makeError(name + ": has no 'role'; expected system, user or assistant");
  return message;
}

static Expected<std::vector<ChatMessage>> messagesOf(const Value &list, const std::string &name) {
  if (!list.is(Value::Kind::List))
    return makeError(name + ": expected a list of messages, each with 'role' and 'content'");
  std::vector<ChatMessage> messages;
  for (auto [i, each] : llvm::enumerate(list.items()))
    if (Error error = messageOf(each, name + ": message " + std::to_string(i + 1))
                          .moveInto(messages.emplace_back()))
      return std::move(error);
  return messages;
}

Expected<ChatOpening> ctxc::readOpening(StringRef path, StringRef option) {
  auto text = readTextFile(path, option);
  if (!text)
    return text.takeError();
  const std::string name = (option + ": " + path).str();
  auto value = templateValue(*text, name);
  if (!value)
    return value.takeError();
  ChatOpening opening;
  Value list = *value;
  if (value->is(Value::Kind::Dict)) {
    list = Value();
    for (const auto &[key, member] : value->entries())
      if (key.string() == "messages")
        list = member;
      else if (key.string() == "tools" && member.is(Value::Kind::List))
        opening.tools = member;
      else
        return makeError(name + ": found " + quoted(key.string()) +
                         ", expected 'messages', and 'tools' with a list");
  }
  if (Error error = messagesOf(list, name).moveInto(opening.messages))
    return std::move(error);
  if (opening.messages.empty() && opening.tools.is(Value::Kind::None))
    return makeError(name + ": found no message");
  if (!opening.messages.empty() && opening.messages.back().role == "user")
    return makeError(name + ": ends with a user's message, which nobody answers; expected a system "
                            "message and turns with their answers");
  return opening;
}

/// Calls `take` with each line as an object, and its name for messages.
static Error
eachObject(StringRef text, StringRef path,
           llvm::function_ref<Error(const Value &line, const std::string &name)> take) {
  return eachLine(text, path, [&](StringRef line, const std::string &name) -> Error {
    auto value = templateValue(line, name);
    if (!value)
      return value.takeError();
    if (!value->is(Value::Kind::Dict))
      return makeError(name + ": expected an object with 'prompt' and 'answer', or 'messages'");
    return take(*value, name);
  });
}

/// The text of a member; empty where there is none.
static Expected<std::string> textOf(const Value &line, StringRef member, const std::string &name) {
  for (const auto &[key, value] : line.entries())
    if (key.string() == member) {
      if (!value.is(Value::Kind::String))
        return makeError(name + ": " + quoted(member) +
                         ": expected a text, since the chat template writes it");
      return value.string().str();
    }
  return std::string();
}

Expected<std::vector<std::string>> ctxc::readQuestions(StringRef path, StringRef option) {
  auto text = readTextFile(path, option);
  if (!text)
    return text.takeError();
  std::vector<std::string> questions;
  auto add = [&](StringRef question, const std::string &name) -> Error {
    if (question.trim().empty())
      return makeError(name + ": has no 'prompt', which the user asks");
    questions.push_back(question.trim().str());
    return Error::success();
  };
  Error error = [&] {
    if (!path.ends_with(".jsonl"))
      return eachLine(*text, path, add);
    return eachObject(*text, path, [&](const Value &line, const std::string &name) -> Error {
      auto prompt = textOf(line, "prompt", name);
      return prompt ? add(*prompt, name) : prompt.takeError();
    });
  }();
  if (error)
    return makeError(option + ": " + llvm::toString(std::move(error)));
  if (questions.empty())
    return makeError(option + ": " + path + ": found no question");
  return questions;
}

/// A line of token ids, as `ctxc distil` writes the texts that the model wrote; none where it has
/// other members.
static std::optional<TextSequence> writtenText(const Value &line) {
  TextSequence text;
  bool isWritten = false;
  for (const auto &[key, member] : line.entries()) {
    if (key.string() == "turn" && member.is(Value::Kind::Integer))
      text.turn = member.integer();
    if (!member.is(Value::Kind::List) || (key.string() != "prompt" && key.string() != "answer"))
      continue;
    std::vector<int64_t> ids;
    for (const Value &id : member.items()) {
      if (!id.is(Value::Kind::Integer) || id.integer() < 0)
        return std::nullopt;
      ids.push_back(id.integer());
    }
    const bool isPrompt = key.string() == "prompt";
    text.prompt += isPrompt * ids.size();
    text.tokens.insert(isPrompt ? text.tokens.begin() : text.tokens.end(), ids.begin(), ids.end());
    isWritten = true;
  }
  return isWritten ? std::optional(std::move(text)) : std::nullopt;
}

static Expected<Conversation> conversationOf(const Value &line, const std::string &name) {
  Conversation conversation;
  if ((conversation.written = writtenText(line)))
    return conversation;
  for (const auto &[key, member] : line.entries())
    if (key.string() == "messages")
      if (Error error = messagesOf(member, name).moveInto(conversation.turns))
        return std::move(error);
  if (conversation.turns.empty()) {
    auto prompt = textOf(line, "prompt", name), answer = textOf(line, "answer", name);
    if (!prompt || !answer)
      return llvm::joinErrors(prompt.takeError(), answer.takeError());
    if (prompt->empty())
      return makeError(name + ": has no 'prompt', which the user asks, and no 'messages'");
    conversation.turns = {{"user", *prompt}, {"assistant", *answer}};
  }
  if (conversation.turns.size() < 2 || conversation.turns.back().role != "assistant" ||
      conversation.turns.back().content.empty())
    return makeError(name + ": does not end with an answer of the assistant, whose tokens are "
                            "compared; expected 'answer', or a last message of the assistant");
  conversation.answer = conversation.turns.back().content;
  conversation.turns.pop_back();
  return conversation;
}

Expected<std::vector<Conversation>> ctxc::readConversations(StringRef path, StringRef option) {
  if (!path.ends_with(".jsonl"))
    return makeError(option + ": " + path +
                     ": found plain text, expected JSON lines (.jsonl) with 'prompt' and 'answer', "
                     "or 'messages', from which the chat template makes the text");
  auto text = readTextFile(path, option);
  if (!text)
    return text.takeError();
  std::vector<Conversation> all;
  Error error = eachObject(*text, path, [&](const Value &line, const std::string &name) -> Error {
    return conversationOf(line, name).moveInto(all.emplace_back());
  });
  if (error)
    return makeError(option + ": " + llvm::toString(std::move(error)));
  if (all.empty())
    return makeError(option + ": " + path + ": found no conversation");
  return all;
}

Expected<std::vector<TextSequence>> ctxc::readConversationTexts(StringRef path, StringRef option,
                                                                const Conversations &chat) {
  auto conversations = readConversations(path, option);
  if (!conversations)
    return conversations.takeError();
  std::vector<TextSequence> texts;
  for (const Conversation &each : *conversations)
    if (Error error = chat.textOf(each).moveInto(texts.emplace_back()))
      return makeError(option + ": " + path + ": " + llvm::toString(std::move(error)));
  return texts;
}

Expected<ContextTexts> ctxc::readChatContext(const ChatFiles &files, Model &model) {
  ChatOpening opening;
  if (!files.messages.empty())
    if (Error error = readOpening(files.messages, files.messagesOption).moveInto(opening))
      return std::move(error);
  if (!files.system.empty()) {
    if (!opening.messages.empty() && opening.messages.front().role == "system")
      return makeError(files.systemOption + ": " + files.messagesOption +
                       " begins with a system message too; expected one of them");
    auto message = readSystemMessage(files.system, files.systemOption);
    if (!message)
      return message.takeError();
    opening.messages.insert(opening.messages.begin(), std::move(*message));
  }
  auto chat = Conversations::make(model, std::move(opening));
  if (!chat)
    return chat.takeError();
  ContextTexts texts;
  texts.context = chat->context;
  texts.front = chat->front;
  texts.chat = std::make_shared<Conversations>(std::move(*chat));
  return std::move(texts);
}
