// How a text is split before byte-pair encoding, by the names that GGUF files have for it
// (tokenizer.ggml.pre).
#ifndef CTXC_LIB_TOKENIZER_GGUFSPLITS_H
#define CTXC_LIB_TOKENIZER_GGUFSPLITS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace ctxc::text {

struct GgufSplit {
  llvm::StringLiteral names; ///< separated by spaces
  llvm::ArrayRef<llvm::StringLiteral>
      expressions; ///< one after the other; each isolates its matches
  /// IgnoreMerges: a piece that is a token is one. Bos: a begin-of-sequence token is put in front,
  /// where the file does not say; AlwaysBos: whatever the file says. NoBos: no token has this role
  /// by default. RawSpaces: tokens are spelled in UTF-8, with U+2581 for a space, not in the
  /// characters of bytes.
  enum Flag : unsigned { IgnoreMerges = 1, Bos = 2, AlwaysBos = 4, NoBos = 8, RawSpaces = 16 };
  unsigned flags;

  bool has(Flag flag) const { return flags & flag; }
  bool isNamed(llvm::StringRef name) const;
};

/// Null where no split has this name.
const GgufSplit *findGgufSplit(llvm::StringRef name);
llvm::ArrayRef<GgufSplit> ggufSplits();

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_GGUFSPLITS_H
