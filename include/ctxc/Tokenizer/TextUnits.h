//===- TextUnits.h - the words and sentences of a tokenized text ----------===//
#ifndef CTXC_TOKENIZER_TEXTUNITS_H
#define CTXC_TOKENIZER_TEXTUNITS_H

#include "ctxc/Tokenizer/Tokenizer.h"

namespace ctxc {

enum class TextUnit { Token, Word, Sentence };

/// Where the units of `ids` begin, from its token `front` on: ascending places, of which the first
/// is `front` itself. A unit begins with a token, even where a word's first letter is inside one.
///
/// A word begins behind white space, or with a Chinese character. A sentence ends with a line, or
/// with a full stop, question mark or exclamation mark (and closing quotation marks and brackets)
/// before white space; the full-width ones need none. White space belongs to the unit before it
/// where it is a token of its own. Error: an id that the tokenizer lacks.
llvm::Expected<std::vector<int64_t>>
unitStarts(const Tokenizer &tokenizer, llvm::ArrayRef<int64_t> ids, int64_t front, TextUnit unit);

} // namespace ctxc

#endif // CTXC_TOKENIZER_TEXTUNITS_H
