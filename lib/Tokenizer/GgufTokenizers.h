// The parts of a GGUF file's tokenizer that its kinds share.
#ifndef CTXC_LIB_TOKENIZER_GGUFTOKENIZERS_H
#define CTXC_LIB_TOKENIZER_GGUFTOKENIZERS_H

#include "GgufVocabulary.h"
#include "ctxc/Tokenizer/Tokenizer.h"
#include "llvm/Support/JSON.h"

namespace ctxc::text {

/// The vocabulary's symbols as a tokenizer.json lists its added tokens.
llvm::json::Array symbolsOf(const GgufVocabulary &vocabulary);

/// An error that names the first of a key's texts that is not UTF-8.
llvm::Error checkTexts(llvm::StringRef path, llvm::StringRef key,
                       llvm::ArrayRef<llvm::StringRef> texts);

/// What reads a text without symbols, by a vocabulary of one kind; nothing is put around the text.
/// Errors: a key that is malformed, and those of the vocabulary itself.
using GgufTokenizerOr = llvm::Expected<std::unique_ptr<Tokenizer>>;
GgufTokenizerOr openGgufSentencePiece(const GgufVocabulary &vocabulary, const GgufFile &file);
GgufTokenizerOr openGgufWordPiece(const GgufVocabulary &vocabulary, const GgufFile &file);
GgufTokenizerOr openGgufBytePairs(const GgufVocabulary &vocabulary, const GgufFile &file);
GgufTokenizerOr openGgufUnigram(const GgufVocabulary &vocabulary, const GgufFile &file);

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_GGUFTOKENIZERS_H
