//===- TextsFile.h - contexts and texts that stand in files ---------------===//
//
// What ctxc distil, ctxc evaluate and the experiment on them read. In messages `option` names what
// asked for the file, such as "--text".
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SESSION_TEXTSFILE_H
#define CTXC_SESSION_TEXTSFILE_H

#include "ctxc/Session/Model.h"
#include <random>

namespace ctxc {

class Conversations;

struct ContextTexts {
  std::vector<int64_t> context; ///< with the tokens in front
  std::vector<int64_t> front;   ///< these alone
  /// Where the texts are conversations, which the chat template writes.
  std::shared_ptr<const Conversations> chat = nullptr;
};

/// The text in `path`. Errors: there is none; bytes that are no UTF-8.
llvm::Expected<std::string> readTextFile(llvm::StringRef path, llvm::StringRef option);

/// Calls `take` with each line that has more than white space, and its name for messages, FILE:3.
llvm::Error
eachLine(llvm::StringRef text, llvm::StringRef path,
         llvm::function_ref<llvm::Error(llvm::StringRef line, const std::string &name)> take);

/// The context that is the text in `path`, and one that is given as tokens, those in front
/// included. Errors: nothing beside the tokens in front; no text; bytes that are no UTF-8.
llvm::Expected<ContextTexts> readContext(llvm::StringRef path, llvm::StringRef option,
                                         Model &model);
llvm::Expected<ContextTexts> contextOfTokens(std::vector<int64_t> tokens, Model &model);

/// The tokens of the text in `path`, as it stands behind others. Errors: no text, bytes that are no
/// UTF-8.
llvm::Expected<std::vector<int64_t>> readTokens(llvm::StringRef path, llvm::StringRef option,
                                                Model &model);

/// The texts of a file: JSON lines (.jsonl), each with "prompt" and "answer", as text or as token
/// ids; or plain text, in which a line of dashes alone divides texts.
llvm::Expected<std::vector<TextSequence>> readTexts(llvm::StringRef path, llvm::StringRef option,
                                                    Model &model);

/// What texts begin with: JSON lines (.jsonl), each with "prompt"; or plain text, a prompt a line.
/// At least five.
llvm::Expected<std::vector<std::vector<int64_t>>> readPrompts(llvm::StringRef path,
                                                              llvm::StringRef option, Model &model);

/// Whether a token of the text's answer has one before it, from which it is predicted. What the
/// model writes may end at once.
inline bool hasPrediction(const TextSequence &text) {
  return int64_t(text.tokens.size()) > std::max<int64_t>(text.prompt, 1);
}

/// Shuffled by the seed, so that which texts are taken does not depend on their order in the file.
/// (std::shuffle is another on every standard library.)
template <typename T> void shuffle(std::vector<T> &texts, uint64_t seed) {
  std::mt19937_64 engine(seed);
  for (size_t i = texts.size(); i > 1; --i)
    std::swap(texts[i - 1], texts[engine() % i]);
}

/// Takes every second text of `texts` away.
std::vector<TextSequence> takeHalf(std::vector<TextSequence> &texts);

/// Texts up to `tokens` tokens, the last of them whole.
std::vector<TextSequence> firstTokens(llvm::ArrayRef<TextSequence> texts, int64_t tokens);

} // namespace ctxc

#endif // CTXC_SESSION_TEXTSFILE_H
