// A normalization that sentencepiece has precompiled: which parts of a text become which others.
#ifndef CTXC_LIB_TOKENIZER_CHARSMAP_H
#define CTXC_LIB_TOKENIZER_CHARSMAP_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace ctxc::text {

class Charsmap {
public:
  /// `bytes`: the size of a double array (32 bits, little endian), the array (Darts' units of 32
  /// bits), and the replacements, each with a NUL behind it. Error: it is not that.
  static llvm::Expected<Charsmap> read(llvm::StringRef bytes, const std::string &where);

  /// As sentencepiece and llama.cpp do it: from left to right, the longest part that the map has.
  std::string replaceLongest(llvm::StringRef text) const;
  /// As the tokenizers package does it: each grapheme of less than six bytes, and else each of its
  /// characters, becomes what stands for the shortest part at its beginning.
  std::string replaceGraphemes(llvm::StringRef text) const;

private:
  std::vector<uint32_t> units;
  std::string replacements;

  /// Calls see(length, offset of the replacement) for each part of the map at the beginning of
  /// `text`, the shortest first, until it returns false.
  template <typename F> void parts(llvm::StringRef text, F see) const;
  std::optional<llvm::StringRef> shortest(llvm::StringRef text) const;
  llvm::StringRef replacement(uint32_t offset) const;
};

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_CHARSMAP_H
