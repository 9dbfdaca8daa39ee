//===- DistilTexts.h - what ctxc distil fits and judges by ----------------===//
#ifndef CTXC_TOOLS_CTXC_DISTILTEXTS_H
#define CTXC_TOOLS_CTXC_DISTILTEXTS_H

#include "ContextTexts.h"

namespace ctxc::driver {

/// --text, --held-out, --tokens, and how the model writes texts where --text is not given.
std::vector<OptionSpec> textOptions();

/// Fails where options do not go together. Quick.
llvm::Error checkTextOptions(const Arguments &arguments);

struct DistilTexts {
  std::vector<TextSequence> fitted, heldOut;
  std::vector<TextSequence> isProtected, driftTexts; ///< unrelated to the context
  bool splitsText = false;                           ///< `heldOut` is some of --text
  /// Of the texts that the model wrote.
  int64_t sampledTokens = 0;
  int64_t writtenPrompts = 0; ///< prompts that the model added to the given ones
  double seconds = 0;
  int64_t prompts = 0; ///< different ones of the fitted texts
};

/// Reads --text, --held-out and --unrelated; what is not given, the model writes (none of them
/// where --text is given). Shuffled by `seed`.
llvm::Expected<DistilTexts> distilTexts(const Arguments &arguments, Model &model,
                                        const ContextTexts &context, uint64_t seed);

/// Takes every fifth text away, to choose the number of passes. Fewer than eight would choose by
/// chance: of few texts, none is taken.
std::vector<TextSequence> takeFifth(std::vector<TextSequence> &texts);

/// The texts as JSON lines, which --text reads: ids, and beside them the text where there is a
/// tokenizer.
llvm::Expected<std::string> textLines(llvm::ArrayRef<TextSequence> texts, Model &model);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_DISTILTEXTS_H
