// The normalizers of a tokenizer.json: they change a text before it is split.
#ifndef CTXC_LIB_TOKENIZER_NORMALIZER_H
#define CTXC_LIB_TOKENIZER_NORMALIZER_H

#include "Field.h"
#include <memory>

namespace ctxc::text {

class Normalizer {
public:
  virtual ~Normalizer() = default;
  virtual llvm::Expected<std::string> apply(std::string text) const = 0;
};

/// Null for a null `field`.
llvm::Expected<std::unique_ptr<Normalizer>> readNormalizer(const Field &field);

/// `text` with each byte as the printable character that stands for it in a
/// byte-level vocabulary, and the byte of such a character (-1: it is none).
std::string byteLevel(llvm::StringRef text);
int byteOfCharacter(char32_t c);

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_NORMALIZER_H
