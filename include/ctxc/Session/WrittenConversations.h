//===- WrittenConversations.h - conversations that the model writes -------===//
#ifndef CTXC_SESSION_WRITTENCONVERSATIONS_H
#define CTXC_SESSION_WRITTENCONVERSATIONS_H

#include "ctxc/Session/Conversations.h"

namespace ctxc {

struct ConversationsRequest {
  std::vector<std::string> questions; ///< of which the conversations take one after the other
  size_t answers = 50;                ///< in all conversations together, about
  int64_t mostTurns = 4; ///< every second conversation has one, the others from two to so many
  int64_t length = 40;   ///< of an answer, in tokens, unless its turn ends earlier
  double temperature = 1;
  uint64_t seed = 0;
  ProgressCall written; ///< as SampleRequest's, of each turn
};

/// Conversations in which the model, with the opening in front, answers the questions. A text is a
/// conversation up to its last answer, which ends with the end of its turn where it is whole.
/// Errors: no question; those of sample.
llvm::Expected<Sampled> sampleConversations(Model &model, const Conversations &chat,
                                            const ConversationsRequest &request);

/// Up to `count` questions, none of them among `known`, that the model writes in the user's place,
/// with the opening in front. Errors: it writes none; those of sample.
llvm::Expected<std::vector<std::string>> writeQuestions(Model &model, const Conversations &chat,
                                                        llvm::ArrayRef<std::string> known,
                                                        size_t count, double temperature,
                                                        uint64_t seed);

} // namespace ctxc

#endif // CTXC_SESSION_WRITTENCONVERSATIONS_H
