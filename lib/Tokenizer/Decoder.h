// The decoders of a tokenizer.json: how tokens become a text again.
#ifndef CTXC_LIB_TOKENIZER_DECODER_H
#define CTXC_LIB_TOKENIZER_DECODER_H

#include "Field.h"
#include <memory>

namespace ctxc::text {

class Decoder {
public:
  virtual ~Decoder() = default;
  /// The texts of `tokens`, which together are the decoded text. Bytes of an unfinished character
  /// are U+FFFD, or marked (Unicode.h).
  enum class Parts { Replaced, Kept };
  virtual llvm::Expected<std::vector<std::string>> apply(std::vector<std::string> tokens,
                                                         Parts parts = Parts::Replaced) const = 0;

  /// What `token` adds behind other text.
  std::string bytesOf(const std::string &token) const;
};

/// Null for a null `field`.
llvm::Expected<std::unique_ptr<Decoder>> readDecoder(const Field &field);

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_DECODER_H
