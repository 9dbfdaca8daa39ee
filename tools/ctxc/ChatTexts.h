//===- ChatTexts.h - a system message as the context: --chat --------------===//
#ifndef CTXC_TOOLS_CTXC_CHATTEXTS_H
#define CTXC_TOOLS_CTXC_CHATTEXTS_H

#include "DistilTexts.h"

namespace ctxc::driver {

/// --chat, --system and --messages.
std::vector<OptionSpec> chatOptions();

/// Fails where these options do not go together, or with what else gives a context. Quick.
llvm::Error checkChatContext(const Arguments &arguments);

/// How the model writes conversations.
struct ChatWriting {
  int64_t tokens = 0, length = 0; ///< of all answers that are fitted, and of one
  double temperature = 1;
  uint64_t seed = 0;
};

/// Has the model write conversations, for the fit and, without --held-out, for the card.
llvm::Error writeChatTexts(const Arguments &arguments, Model &model, const Conversations &chat,
                           const ChatWriting &writing, DistilTexts &all);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_CHATTEXTS_H
