//===- ConversationsFile.h - messages that stand in files -----------------===//
//
// In messages `option` names what asked for the file, such as "--messages".
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SESSION_CONVERSATIONSFILE_H
#define CTXC_SESSION_CONVERSATIONSFILE_H

#include "ctxc/Session/Conversations.h"
#include "ctxc/Session/TextsFile.h"

namespace ctxc {

/// The text in `path`, without white space around it, as a system message.
llvm::Expected<ChatMessage> readSystemMessage(llvm::StringRef path, llvm::StringRef option);

/// A list of messages, as transformers' apply_chat_template takes it, or an object with `messages`
/// and `tools`. Errors: a user's message at the end, which nobody answers; an unknown member.
llvm::Expected<ChatOpening> readOpening(llvm::StringRef path, llvm::StringRef option);

/// What a user asks: a question a line, or JSON lines (.jsonl) with "prompt".
llvm::Expected<std::vector<std::string>> readQuestions(llvm::StringRef path,
                                                       llvm::StringRef option);

/// JSON lines, each with "prompt" and "answer", or with "messages", of which the last is the
/// assistant's.
llvm::Expected<std::vector<Conversation>> readConversations(llvm::StringRef path,
                                                            llvm::StringRef option);

/// The conversations of a file, as the chat template writes them.
llvm::Expected<std::vector<TextSequence>>
readConversationTexts(llvm::StringRef path, llvm::StringRef option, const Conversations &chat);

/// A system message's file, and one of messages, either of which may be none (empty); and what
/// asked for them.
struct ChatFiles {
  llvm::StringRef system, messages;
  llvm::StringRef systemOption, messagesOption;
};
/// The context that they give, with which texts are conversations. Errors: two system messages;
/// those of Conversations::make.
llvm::Expected<ContextTexts> readChatContext(const ChatFiles &files, Model &model);

} // namespace ctxc

#endif // CTXC_SESSION_CONVERSATIONSFILE_H
