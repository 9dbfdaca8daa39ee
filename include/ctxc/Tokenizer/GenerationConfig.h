//===- GenerationConfig.h - where a model's text ends ---------------------===//
//
// generation_config.json, by which transformers' `generate` goes. Of it, the tokens that end a text
// are read. ctxc takes the most probable token each time; a key that makes transformers take
// another one is no error, since it changes no logit, but is said.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TOKENIZER_GENERATIONCONFIG_H
#define CTXC_TOKENIZER_GENERATIONCONFIG_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>
#include <vector>

namespace ctxc {

struct GenerationConfig {
  std::vector<int64_t> stops; ///< eos_token_id: after one of these tokens no other is generated
  std::string warning; ///< names the keys by which transformers may take other tokens, or is empty

  /// None where `directory` has no such file. Errors: it is no JSON object; eos_token_id is neither
  /// a token nor a list of tokens.
  static llvm::Expected<std::optional<GenerationConfig>> read(llvm::StringRef directory);
};

/// The value of an `eos_token_id`, which is a token, a list of tokens, or null, of which there may
/// be none. Errors begin with `path`.
llvm::Expected<std::vector<int64_t>> readStops(const llvm::json::Value &value,
                                               llvm::StringRef path);

} // namespace ctxc

#endif // CTXC_TOKENIZER_GENERATIONCONFIG_H
