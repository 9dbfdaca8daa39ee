// The parts of Unicode that tokenizers need: code points, categories, normal forms. A thin
// layer over utf8proc. All text here is valid UTF-8, except validUtf8's argument.
#ifndef CTXC_LIB_TOKENIZER_UNICODE_H
#define CTXC_LIB_TOKENIZER_UNICODE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace ctxc::text {

/// `bytes` with U+FFFD for each maximal part that is not UTF-8.
std::string validUtf8(llvm::StringRef bytes);

/// `bytes` with a code point that no text has for each byte that is not UTF-8, so that what follows
/// can go on by code points; and the bytes again.
std::string withMarkedBytes(llvm::StringRef bytes);
std::string withoutMarks(llvm::StringRef text);

/// The first code point of `text`, which must not be empty; `size` is its length in bytes.
char32_t firstCodePoint(llvm::StringRef text, size_t &size);
void append(std::string &out, char32_t c);

/// Calls `see(code point, offset, size)` for each code point of `text`.
template <typename F> void forEachCodePoint(llvm::StringRef text, F see) {
  for (size_t at = 0, size; at < text.size(); at += size) {
    char32_t c = firstCodePoint(text.drop_front(at), size);
    see(c, at, size);
  }
}

bool isWhiteSpace(char32_t c); // White_Space
bool isNumeric(char32_t c);    // Nd, Nl, No
bool isPunctuation(
    char32_t c);         // P*, and all ASCII that is neither letter, digit, space nor control
bool isMark(char32_t c); // M*
bool isNonspacingMark(char32_t c);
bool isOther(char32_t c);   // Cc, Cf, Co
bool isWord(char32_t c);    // \w of UTS 18
bool isChinese(char32_t c); // as BERT's own tokenizer lists the ideographs

/// What a reader takes for characters (extended grapheme clusters).
std::vector<llvm::StringRef> graphemes(llvm::StringRef text);

enum class NormalForm { C, D, KC, KD };
llvm::Expected<std::string> normalize(llvm::StringRef text, NormalForm form);
std::string lowercase(llvm::StringRef text); // full, without the context of a final sigma

/// The byte of a token "<0xHH>", or −1.
int byteOfToken(llvm::StringRef token);

/// What a piece of a sentencepiece model stands for.
std::string bytesOfPiece(llvm::StringRef piece);

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_UNICODE_H
