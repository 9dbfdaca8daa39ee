// The pre-tokenizers of a tokenizer.json: how a text is split into the pieces
// that the model then turns into tokens, each alone.
#ifndef CTXC_LIB_TOKENIZER_PRETOKENIZER_H
#define CTXC_LIB_TOKENIZER_PRETOKENIZER_H

#include "Field.h"
#include <memory>

namespace ctxc::text {

/// A part of the text; `first` where the whole text begins with it.
struct Piece {
  std::string text;
  bool first = false;
};

class PreTokenizer {
public:
  virtual ~PreTokenizer() = default;
  /// Appends the pieces of `piece` to `out`; never empty ones.
  virtual llvm::Error split(Piece piece, std::vector<Piece> &out) const = 0;
};

/// Null for a null `field`.
llvm::Expected<std::unique_ptr<PreTokenizer>> readPreTokenizer(const Field &field);

/// When Metaspace adds a leading replacement; read from any of its three historical spellings.
enum class Prepend { Always, First, Never };
llvm::Expected<Prepend> readPrependScheme(const Field &metaspace);

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_PRETOKENIZER_H
