//===- EncodePrompt.h - a prompt that may spell out its first token ---------===//
#ifndef CTXC_TOKENIZER_ENCODEPROMPT_H
#define CTXC_TOKENIZER_ENCODEPROMPT_H

#include "ctxc/Tokenizer/Tokenizer.h"

namespace ctxc {

/// The ids of a prompt, with the special tokens around it. Where the tokenizer puts a token in
/// front, and the text spells that token out as well, there is one of it, and `isRepeated` is set.
llvm::Expected<std::vector<int64_t>> encodePrompt(const Tokenizer &tokenizer, llvm::StringRef text,
                                                  bool &isRepeated);

} // namespace ctxc

#endif // CTXC_TOKENIZER_ENCODEPROMPT_H
