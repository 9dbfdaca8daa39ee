//===- EncodePrompt.h - a prompt that may spell out its first token ---------===//
#ifndef CTXC_TOKENIZER_ENCODEPROMPT_H
#define CTXC_TOKENIZER_ENCODEPROMPT_H

#include "ctxc/Tokenizer/Tokenizer.h"

namespace ctxc {

/// The ids of a prompt, with the special tokens around it. If the tokenizer puts a token in front,
/// and the text also spells it out, the token is there once, and `isRepeated` is set.
llvm::Expected<std::vector<int64_t>> encodePrompt(const Tokenizer &tokenizer, llvm::StringRef text,
                                                  bool &isRepeated);

} // namespace ctxc

#endif // CTXC_TOKENIZER_ENCODEPROMPT_H
