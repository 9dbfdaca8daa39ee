#include "ctxc/Session/Conversations.h"
#include "ctxc/Session/TextsFile.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using Tokens = std::vector<int64_t>;

static size_t commonPrefix(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

static size_t commonSuffix(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  return std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin();
}

static ChatMessage user(llvm::StringRef text) { return {"user", text.str()}; }

/// Messages that begin and end with different tokens.
static constexpr llvm::StringLiteral probes[] = {"Why?", "Tell me more.", "x", "42 is a number"};

Expected<Tokens> Conversations::full(ArrayRef<ChatMessage> turns) const {
  std::vector<ChatMessage> all = opening.messages;
  llvm::append_range(all, turns);
  return model->chat(all, opening.tools);
}

/// Where texts begin behind the opening and without it.
Error Conversations::findFront() {
  std::vector<Tokens> with, without;
  size_t common = SIZE_MAX; // with a user's message and what is behind it
  for (llvm::StringRef probe : probes) {
    auto full = this->full(user(probe)), plain = model->chat(user(probe));
    if (!full || !plain)
      return llvm::joinErrors(full.takeError(), plain.takeError());
    if (*full == *plain)
      return makeError(model->name() + ": the chat template does nothing with what stands before "
                                       "the conversation");
    const size_t behind = commonSuffix(*full, *plain);
    if (!with.empty()) // what is behind the first difference of two messages is not in front
      common = std::min(common, behind + with.front().size() - full->size());
    else
      common = behind;
    with.push_back(std::move(*full));
    without.push_back(std::move(*plain));
  }
  size_t begins = with.front().size() - common, beginsPlain = without.front().size() - common;
  size_t message = SIZE_MAX; // where the user's message begins
  for (size_t i = 1; i < with.size(); ++i)
    message = std::min(message, commonPrefix(with.front(), with[i]));
  if (common > with.front().size() || begins > message)
    return makeError(model->name() + ": the chat template writes what stands before the "
                                     "conversation behind the user's message, so that no context "
                                     "is in front of every text");
  // With nothing in front, the first token would be attention's sink in the model without the
  // opening alone: it stays in front of both.
  if (beginsPlain == 0 && begins < message) {
    ++begins;
    ++beginsPlain;
  }
  context = ArrayRef(with.front()).take_front(begins).vec();
  front = ArrayRef(without.front()).take_front(beginsPlain).vec();
  if (begins < message)
    header = ArrayRef(with.front()).slice(begins, message - begins).vec();
  return Error::success();
}

/// What the template writes behind an answer, by two answers.
Error Conversations::findEndOfTurn() {
  Tokens all[2];
  const char *answers[] = {"x", "y"};
  for (auto [i, answer] : llvm::enumerate(answers))
    if (Error error =
            model->chat({user(probes[0]), {"assistant", answer}, user(probes[1])}).moveInto(all[i]))
      return error;
  const size_t at = commonPrefix(all[0], all[1]);
  if (at + 1 >= std::min(all[0].size(), all[1].size()) || all[0][at + 1] != all[1][at + 1])
    return makeError(model->name() + ": the chat template writes nothing behind an answer by which "
                                     "it ends");
  endOfTurn = all[0][at + 1];
  if (Error error = model->stopTokens().moveInto(stops))
    return error;
  if (!llvm::is_contained(stops, endOfTurn))
    stops.push_back(endOfTurn);
  return Error::success();
}

Expected<Conversations> Conversations::make(Model &model, ChatOpening opening) {
  Conversations made(model, std::move(opening));
  if (Error error = made.findFront())
    return std::move(error);
  if (Error error = made.findEndOfTurn())
    return std::move(error);
  return std::move(made);
}

Expected<Tokens> Conversations::textOf(ArrayRef<ChatMessage> turns) const {
  auto with = full(turns), without = model->chat(turns);
  if (!with || !without)
    return llvm::joinErrors(with.takeError(), without.takeError());
  ArrayRef<int64_t> all = *without;
  if (commonPrefix(all, front) < front.size() || commonPrefix(*with, context) < context.size() ||
      ArrayRef(*with).drop_front(context.size()) != all.drop_front(front.size()))
    return makeError(model->name() + ": the chat template writes a conversation otherwise where "
                                     "the system message is in front");
  return all.drop_front(front.size()).vec();
}

Expected<TextSequence> Conversations::textOf(const Conversation &conversation) const {
  if (conversation.written)
    return *conversation.written;
  auto tokens = textOf(conversation.turns);
  auto answer = model->tokenizeInside(conversation.answer);
  if (!tokens || !answer)
    return llvm::joinErrors(tokens.takeError(), answer.takeError());
  TextSequence text{std::move(*tokens)};
  text.prompt = text.tokens.size();
  text.turn = llvm::count_if(conversation.turns,
                             [](const ChatMessage &each) { return each.role == "user"; });
  llvm::append_range(text.tokens, *answer);
  text.tokens.push_back(endOfTurn);
  return std::move(text);
}

Expected<std::string> Conversations::messageOf(ArrayRef<int64_t> tokens) const {
  auto tokenizer = model->tokenizer();
  if (!tokenizer)
    return tokenizer.takeError();
  auto text = tokenizer->decode(tokens);
  if (!text)
    return text.takeError();
  return llvm::StringRef(*text).trim().str();
}
