//===- Sample.h - texts that a model writes after a context ---------------===//
//
// What an adapter is fitted to should be like what the model will read and write. Where there is no
// such text, the model writes it itself: many texts at once, after the context has been read once,
// so that the weights are read once for a token of each.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_DISTIL_SAMPLE_H
#define CTXC_DISTIL_SAMPLE_H

#include "ctxc/Distil/Distil.h"

namespace ctxc {

struct SampleRequest {
  std::vector<int64_t> context;            ///< with the tokenizer's tokens in front; not empty
  const PinnedTokens *pinned = nullptr;    ///< the texts see these of its tokens, in place of it
  const VirtualEntries *entries = nullptr; ///< they see these in place of any context; no prompt
                                           ///< is then empty
  /// The beginnings of the texts, one for each text; each may be empty.
  std::vector<std::vector<int64_t>> prompts;
  int64_t length = 40;        ///< of an answer, in tokens, unless it ends earlier
  std::vector<int64_t> stops; ///< tokens that end an answer, and do not belong to it
  double temperature = 1;     ///< of the model's probabilities; 0: always the likeliest token
  uint64_t seed = 0;
  ProgressCall written; ///< progress over tokens, as if no answer ended early; may be empty
};

struct Sampled {
  std::vector<TextSequence> texts; ///< in the prompts' order; an answer may be empty
  int64_t tokens = 0;              ///< of all answers
  double seconds = 0;              ///< from the first to the last of them, without the context
};

/// A text depends only on its prompt, the seed and its number, not on threads or on how many texts
/// there are. Errors: less memory than it needs; no context; a temperature below zero; positions
/// that the model does not have; a model without a head; logits that are not finite.
llvm::Expected<Sampled> sample(SplitModel model, const SampleRequest &request);

} // namespace ctxc

#endif // CTXC_DISTIL_SAMPLE_H
