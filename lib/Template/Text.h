// Python's operations on text, of code points. Text is UTF-8.
#ifndef CTXC_LIB_TEMPLATE_TEXT_H
#define CTXC_LIB_TEMPLATE_TEXT_H

#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace ctxc::jinja {

/// The code point at the front of `text`, which must not be empty; `size` is its length in bytes.
char32_t firstCharacter(llvm::StringRef text, size_t &size);
void appendCharacter(std::string &out, char32_t c);

bool isSpace(char32_t c);     ///< str.isspace
bool isPrintable(char32_t c); ///< str.isprintable
bool isCased(char32_t c, bool &upper);

size_t countCharacters(llvm::StringRef text);
/// Each character, as text.
std::vector<llvm::StringRef> characters(llvm::StringRef text);

/// Without the white space, or the characters of `set`, at the chosen ends.
llvm::StringRef strip(llvm::StringRef text, bool left, bool right);
llvm::StringRef strip(llvm::StringRef text, llvm::StringRef set, bool left, bool right);

// Letters whose other case is several letters stay as they are, but for ß.
std::string toUpper(llvm::StringRef text);
std::string toLower(llvm::StringRef text);
std::string capitalize(llvm::StringRef text);
/// str.title: the first letter after each character that is no letter is upper.
std::string titleByLetters(llvm::StringRef text);
/// Jinja's filter `title`: words begin after white space and after -({[<.
std::string titleByWords(llvm::StringRef text);

/// At most `most` of `from` replaced (all where negative). An empty `from` is between characters.
std::string replaceAll(llvm::StringRef text, llvm::StringRef from, llvm::StringRef to,
                       int64_t most);
/// str.split and str.rsplit with at most `most` splits (any number where negative): at `separator`,
/// which is not empty.
std::vector<llvm::StringRef> splitAt(llvm::StringRef text, llvm::StringRef separator, int64_t most,
                                     bool fromRight);
/// The same at white space.
std::vector<llvm::StringRef> splitWords(llvm::StringRef text, int64_t most, bool fromRight);
/// str.splitlines.
std::vector<llvm::StringRef> splitLines(llvm::StringRef text, bool keepEnds);

/// repr() of text: in quotes, with escapes.
std::string quotedText(llvm::StringRef text);
/// repr() of a float: the shortest digits that read back as the same number.
std::string realText(double value);

} // namespace ctxc::jinja

#endif // CTXC_LIB_TEMPLATE_TEXT_H
