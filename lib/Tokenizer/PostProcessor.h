// The post-processors of a tokenizer.json: the tokens around a text.
#ifndef CTXC_LIB_TOKENIZER_POSTPROCESSOR_H
#define CTXC_LIB_TOKENIZER_POSTPROCESSOR_H

#include "Model.h"

namespace ctxc::text {

/// The special tokens `before` and `after` the tokens of a text.
struct PostProcessor {
  std::vector<int64_t> before, after;

  /// Errors: a malformed field, a kind that is not supported, an id without a token.
  static llvm::Expected<PostProcessor> read(const Field &field, const Vocabulary &vocabulary);
};

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_POSTPROCESSOR_H
