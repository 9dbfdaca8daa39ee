//===- Conversations.h - a system message as a context, and what follows it ===//
//
// What a chat model reads is written by its template: what stands before the user's first message
// is the context, with the system message (and turns of an example, and tools) in it. Without them
// the template may write something else in front, such as a message of its own. From the first
// token on from which both are the same, texts begin.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SESSION_CONVERSATIONS_H
#define CTXC_SESSION_CONVERSATIONS_H

#include "ctxc/Session/Model.h"

namespace ctxc {

/// How all conversations begin: a system message, turns of an example, tools.
struct ChatOpening {
  std::vector<ChatMessage> messages;
  jinja::Value tools = jinja::Value::none();
};

/// A conversation whose last answer is not written yet, and that answer.
struct Conversation {
  std::vector<ChatMessage> turns; ///< the last one is a user's
  std::string answer;
  std::optional<TextSequence> written = std::nullopt; ///< as tokens, in the place of both
};

class Conversations {
public:
  /// Errors: the template does nothing with the opening, or writes it behind the user's message;
  /// the model has no template, or one that refuses the messages.
  static llvm::Expected<Conversations> make(Model &model, ChatOpening opening);

  /// The tokens up to where texts begin, with the opening and without it; at least one each.
  std::vector<int64_t> context, front;
  /// What follows both in front of the user's first message.
  std::vector<int64_t> header;
  /// The token that ends an answer, and belongs to it.
  int64_t endOfTurn = 0;
  /// The tokens that end what the model writes: endOfTurn, and config.json's.
  std::vector<int64_t> stops;

  /// The tokens of some turns, up to the beginning of the answer. Errors: the template writes the
  /// turns otherwise with the opening.
  llvm::Expected<std::vector<int64_t>> textOf(llvm::ArrayRef<ChatMessage> turns) const;
  /// The same with the answer behind it, and the end of its turn.
  llvm::Expected<TextSequence> textOf(const Conversation &conversation) const;
  /// `tokens`, which the model wrote, as the text of a message.
  llvm::Expected<std::string> messageOf(llvm::ArrayRef<int64_t> tokens) const;

private:
  Conversations(Model &model, ChatOpening opening) : model(&model), opening(std::move(opening)) {}
  llvm::Error findFront();
  llvm::Error findEndOfTurn();
  llvm::Expected<std::vector<int64_t>> full(llvm::ArrayRef<ChatMessage> turns) const;

  Model *model;
  ChatOpening opening;
};

} // namespace ctxc

#endif // CTXC_SESSION_CONVERSATIONS_H
